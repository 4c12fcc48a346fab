// Your documents: put some in, take some out, search them.

import { getJson, send } from "../api.js";
import { fill, h, icon, keyed, put, say } from "../dom.js";
import { count, moment, size } from "../format.js";
import { confirmed, empty, failure, loading, problemIn } from "../parts.js";

const KNOWLEDGE = "/v1/knowledge";
const TYPES = ".pdf,.docx,.pptx,.xlsx,.csv,.md,.txt,.html,.htm,.epub";

export async function libraryView() {
  const view = new Library();
  view.load();
  return { title: "Library", node: view.node };
}

class Library {
  constructor() {
    this.documents = [];
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
      ".page",
      {},
      h(".page-head", {}, h("h1", {}, "Library"), this.told),
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
    try {
      const answer = await getJson(KNOWLEDGE);
      this.documents = answer.documents ?? [];
      this.draw();
    } catch (error) {
      fill(this.box, failure(error, { retry: () => this.load(), lead: "The library cannot be listed" }));
    }
  }

  draw() {
    put(this.told, this.documents.length ? count(this.documents.length, "document") : "");
    this.form.hidden = !this.documents.length;
    keyed(
      this.list,
      this.documents,
      (d) => d.id,
      (d) => this.row(d),
    );
    fill(
      this.box,
      this.documents.length ? this.list : empty("No documents yet", "Add some, and tick “My library” when you ask."),
    );
  }

  row(doc) {
    const name = doc.name ?? doc.title ?? doc.id;
    const facts = [
      doc.title && doc.title !== name && h("bdi", {}, doc.title),
      doc.passages !== undefined && count(doc.passages, "passage"),
      doc.bytes !== undefined && size(doc.bytes),
      doc.added_at && moment(doc.added_at),
      doc.note ?? doc.problem,
    ].filter(Boolean);
    return h(
      "li.document",
      {},
      icon("formatter"),
      h(
        ".document-text",
        {},
        h("span.document-name", { dir: "auto" }, name),
        h(
          "small",
          {},
          facts.flatMap((fact, n) => (n ? [" · ", fact] : [fact])),
        ),
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
      await send("POST", KNOWLEDGE, { form });
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
      const passages = answer.passages ?? answer.results ?? [];
      fill(
        this.found,
        h(
          "section.found",
          {},
          h("h2", {}, passages.length ? count(passages.length, "passage") : "Nothing found"),
          passages.length
            ? h("ol.plain", {}, passages.map(passage))
            : h("p.hint", {}, "No document says anything near to this."),
        ),
      );
    } catch (error) {
      problemIn(fill(this.found, h("div")).firstChild, error);
    }
  }
}

function passage(hit) {
  const where = [hit.title ?? hit.name, hit.heading, hit.page && `page ${hit.page}`].filter(Boolean);
  return h(
    "li.quote",
    {},
    h("blockquote", { dir: "auto" }, hit.text ?? hit.quote ?? hit.snippet ?? ""),
    h(
      "p.where",
      {},
      where.flatMap((part, n) => (n ? [" · ", h("bdi", {}, part)] : [h("bdi", {}, part)])),
    ),
  );
}
