// Your documents: put some in, take some out, search them.

import { getJson, send } from "../api.js";
import { dotted, fill, h, icon, keyed, put, say } from "../dom.js";
import { count, moment, size } from "../format.js";
import { confirmed, empty, failure, loading, problemIn } from "../parts.js";

const KNOWLEDGE = "/v1/knowledge";
const AGAIN_MS = 3000; // while documents are being indexed
const TYPES = ".pdf,.docx,.pptx,.xlsx,.csv,.md,.txt,.html,.htm,.epub";

export async function libraryView() {
  const view = new Library();
  view.load();
  return { title: "Library", node: view.node, dispose: () => clearTimeout(view.timer) };
}

class Library {
  constructor() {
    this.documents = [];
    this.asked = 0;
    this.picker = h("input.hidden-text", {
      type: "file",
      multiple: true,
      accept: TYPES,
      id: "library-files",
      onchange: () => this.add(this.picker.files),
    });
    this.list = h("ul.plain.documents", { "aria-label": "Documents" });
    this.box = h("div", {}, loading(3));
    this.under = h("ul.plain.uploads", { "aria-label": "Uploads", role: "status" });
    this.failed = h("div", { hidden: true });
    this.told = h("span.hint");
    this.found = h("div", { "aria-live": "polite" });
    this.drop = h(
      ".drop",
      { data: { over: "" } },
      icon("upload"),
      h(
        "p",
        {},
        h("label.button.primary", { for: "library-files" }, "Choose files"),
        this.picker,
        h("span", {}, " or drop them here"),
      ),
      h(
        "p.hint",
        {},
        "PDF, Word, PowerPoint, Excel, CSV, Markdown, text, HTML, EPUB. They stay on this server, and only your runs read them.",
      ),
    );
    this.node = h(
      ".page.list",
      {},
      h(".page-head", {}, h("h1", { tabIndex: -1 }, "Library"), this.told),
      this.drop,
      this.under,
      this.failed,
      this.search(),
      this.found,
      this.box,
    );
    this.listen();
  }

  listen() {
    const over = (event, is) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      this.drop.dataset.over = is ? "yes" : "";
    };
    this.node.addEventListener("dragover", (event) => over(event, true));
    this.node.addEventListener("dragleave", (event) => this.node.contains(event.relatedTarget) || over(event, false));
    this.node.addEventListener("drop", (event) => {
      over(event, false);
      if (event.dataTransfer.files.length) this.add(event.dataTransfer.files);
    });
  }

  search() {
    const input = h("input", {
      type: "search",
      placeholder: "Search in the documents",
      "aria-label": "Search in the documents",
      dir: "auto",
    });
    return (this.form = h(
      "form.search-line",
      {
        role: "search",
        hidden: true,
        onsubmit: (event) => {
          event.preventDefault();
          this.look(input.value.trim());
        },
        oninput: () => input.value || fill(this.found),
      },
      input,
      h("button", { type: "submit" }, icon("researcher"), "Search"),
    ));
  }

  async load() {
    const mine = ++this.asked;
    try {
      const answer = await getJson(KNOWLEDGE);
      if (mine !== this.asked) return; // what has happened since is not in it
      this.documents = answer.documents;
      this.draw();
      clearTimeout(this.timer);
      if (this.documents.some((d) => d.state === "waiting")) this.timer = setTimeout(() => this.load(), AGAIN_MS);
    } catch (error) {
      if (this.documents.length) return problemIn(this.failed, error);
      fill(this.box, failure(error, { retry: () => this.load(), lead: "The library cannot be listed" }));
    }
  }

  draw() {
    put(this.told, this.documents.length ? count(this.documents.length, "document") : "");
    this.form.hidden = !this.documents.length;
    keyed(
      this.list,
      this.documents,
      (d) => `${d.id} ${d.state}`,
      (d) => this.row(d),
    );
    if (!this.documents.length)
      fill(this.box, empty("No documents yet", "Add some, and tick “My library” when you ask."));
    else if (this.list.parentNode !== this.box) fill(this.box, this.list);
  }

  row(doc) {
    const { name } = doc;
    const facts = [
      doc.title !== name && doc.title,
      doc.pages > 0 && count(doc.pages, "page"),
      size(doc.size),
      `added ${moment(doc.added_at)}`,
      doc.same_as && "the same as another one",
      doc.tainted && "instruction-like text is cut out of it",
    ];
    const state = { waiting: "being indexed…", failed: `cannot be read: ${doc.why}` }[doc.state];
    return h(
      "li.document",
      {},
      icon("formatter"),
      h(
        ".document-text",
        {},
        h("bdi.document-name", {}, name),
        h("small", {}, dotted(facts)),
        state && h(`small.doc-state.t-${doc.state === "failed" ? "red" : "accent"}`, {}, state),
      ),
      h(
        "button.quiet.round",
        { type: "button", "aria-label": `Remove ${name}`, title: "Remove", onclick: () => this.remove(doc, name) },
        icon("trash"),
      ),
    );
  }

  async remove(doc, name) {
    if (
      !(await confirmed(
        "Remove this document?",
        `${name} is taken out of your library. Reports that cite it keep the passages.`,
        "Remove",
        { danger: true },
      ))
    )
      return;
    try {
      await send("DELETE", `${KNOWLEDGE}/${encodeURIComponent(doc.id)}`);
      problemIn(this.failed, null);
      say(`${name} was removed`);
    } catch (error) {
      if (error.status !== 404) return problemIn(this.failed, error);
    }
    await this.load();
    this.node.querySelector("h1").focus();
  }

  async add(files) {
    problemIn(this.failed, null);
    for (const file of [...files]) await this.upload(file);
    this.picker.value = "";
    await this.load();
  }

  async upload(file) {
    const state = h("span", {}, "uploading…");
    const row = h("li.upload", {}, h("bdi", {}, file.name), " ", h("small", {}, size(file.size)), " ", state);
    this.under.append(row);
    const form = new FormData();
    form.append("file", file, file.name);
    try {
      const kept = await (await send("POST", KNOWLEDGE, { form })).json();
      this.asked++;
      this.documents = [kept, ...this.documents.filter((d) => d.id !== kept.id)];
      this.draw();
      state.textContent = "added";
      row.classList.add("t-green");
      setTimeout(() => row.remove(), 4000);
    } catch (error) {
      row.classList.add("t-red");
      fill(
        state,
        error.message,
        error.hint && ` (${error.hint})`,
        " ",
        h("button.quiet.small", { type: "button", onclick: () => row.remove() }, "Dismiss"),
      );
    }
  }

  async look(words) {
    if (!words) return fill(this.found);
    fill(this.found, loading(2, "Searching"));
    try {
      const answer = await getJson(`${KNOWLEDGE}/search?q=${encodeURIComponent(words)}`);
      fill(this.found, results(answer));
    } catch (error) {
      problemIn(fill(this.found, h("div")).firstChild, error);
    }
  }
}

function results({ passages, zone, missing_terms: missing, waiting }) {
  const told = [
    !passages.length && "No document says anything near to this.",
    passages.length > 0 && zone !== "answer" && "They do not answer it directly; this is the nearest.",
    missing.length > 0 && `In no document: ${missing.join(", ")}.`,
    waiting > 0 && `${count(waiting, "document")} not indexed yet.`,
  ];
  return h(
    "section.found",
    { "aria-label": "Found" },
    h("h2", {}, passages.length ? count(passages.length, "passage") : "Nothing found"),
    h("p.hint", {}, told.filter(Boolean).join(" ")),
    h("ol.plain", {}, passages.map(passage)),
  );
}

const passage = ({ name, title, text, heading, page }) =>
  h(
    "li.quote",
    {},
    h("blockquote", { dir: "auto" }, text),
    h("p.where", {}, dotted([h("strong", {}, title || name), heading, page && `page ${page}`])),
  );
