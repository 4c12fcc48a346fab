// The panel beside the text: a passage where it stands in its source, and what the check of the sentence found.

import { getJson, getText, run as runUrl } from "../api.js";
import { fill, h, icon, say, unique } from "../dom.js";
import { day, KINDS, verdictOf } from "../format.js";
import { linked, oneLine } from "../inline.js";
import { dialog, loading, problemIn, verdictBadge } from "../parts.js";

const AROUND = 400; // letters before and after a passage

export class Passages {
  /** `draft`: the report is not finished. */
  constructor(session, report, { draft = false } = {}) {
    Object.assign(this, { session, draft });
    this.sources = new Map(report.sources.map((s) => [s.id, s]));
    this.evidence = new Map(report.evidence.map((e) => [e.id, e]));
    this.numbers = new Map(report.references.map((r) => [r.source, r.number]));
    this.contexts = new Map();
    const id = unique("passage");
    this.title = h("h2", { id, tabIndex: -1 });
    this.body = h(".passage-body");
    this.node = h(
      "aside.passage",
      { "aria-labelledby": id, hidden: true, onkeydown: (event) => event.key === "Escape" && this.close() },
      h(
        ".passage-head",
        {},
        this.title,
        h(
          "button.quiet.round",
          { type: "button", "aria-label": "Close the passage", title: "Close (Esc)", onclick: () => this.close() },
          icon("close"),
        ),
      ),
      this.body,
    );
    this.from = null;
  }

  /** Makes `button` open what it stands for: a source's passages under some sentences, or the lack of any. */
  mark(button, what) {
    button.addEventListener("click", () =>
      this.from === button && !this.node.hidden ? this.close() : this.open(button, what),
    );
    button.addEventListener("keydown", (event) => event.key === "Escape" && !this.node.hidden && this.close());
  }

  close() {
    this.node.hidden = true;
    document.body.classList.remove("with-passage");
    this.from?.setAttribute("aria-expanded", "false");
    if (this.from?.isConnected) this.from.focus();
    this.from = null;
  }

  dispose() {
    document.body.classList.remove("with-passage");
  }

  open(button, { source, sentences = [], only = null }) {
    this.from?.setAttribute("aria-expanded", "false");
    this.from = button;
    button.setAttribute("aria-expanded", "true");
    const cited = [...new Set(sentences.flatMap((s) => s.citations ?? []))].filter(
      (id) => this.evidence.get(id)?.source === source,
    );
    const ids = only ? [only] : cited;
    const about = this.sources.get(source);
    fill(this.title, about ? `Reference ${this.numbers.get(source) ?? ""}` : "No source");
    fill(
      this.body,
      about ? this.head(about) : h("p", {}, "This sentence cites nothing that supports it."),
      ids.map((id) => this.quote(id, about, sentences)),
      sentences.length ? checks(sentences) : null,
      about && this.foot(about),
    );
    this.body.scrollTop = 0;
    this.node.hidden = false;
    document.body.classList.add("with-passage");
    this.title.focus({ preventScroll: true });
  }

  head(source) {
    const title = oneLine(source.title) || source.location;
    const facts = [
      KINDS[source.kind] ?? source.kind,
      source.published && `published ${source.published}`,
      source.fetched_at && `read ${day(source.fetched_at)}`,
    ].filter(Boolean);
    return h(
      "header.source",
      {},
      h("p.source-title", {}, linked(source.location, [h("bdi", {}, title)]) ?? h("bdi", {}, title)),
      title !== source.location && h("p.place", { dir: "ltr" }, source.location),
      h(
        "p.hint",
        {},
        facts.flatMap((fact, n) => (n ? [" · ", h("bdi", {}, fact)] : [h("bdi", {}, fact)])),
      ),
      source.injections?.length || source.injections > 0
        ? h("p.warn", {}, icon("warn"), "Instruction-like text was cut out of this source before it was used.")
        : null,
    );
  }

  /** The quotation at once, and what stands around it as soon as it is there. */
  quote(id, source, sentences) {
    const e = this.evidence.get(id);
    const [before, after] = [h("span.around"), h("span.around")];
    const where = [e.heading, e.page !== null && e.page !== undefined && `page ${e.page}`].filter(Boolean);
    const failed = h("div", { hidden: true });
    const figure = h(
      "figure.quote",
      {},
      h("blockquote", { dir: "auto" }, before, h("mark", {}, deciding(e, sentences)), after),
      h(
        "figcaption",
        {},
        where.flatMap((part) => [h("bdi", {}, part), " · "]),
        h("button.link", { type: "button", onclick: () => this.whole(e, source) }, "Read it in the whole text"),
      ),
      failed,
    );
    this.context(id).then(
      (found) => {
        fill(before, found.before);
        fill(after, found.after);
        if (found.before.length >= AROUND) before.prepend("…");
        if (found.after.length >= AROUND) after.append("…");
      },
      (error) => problemIn(failed, error),
    );
    return figure;
  }

  context(id) {
    if (!this.contexts.has(id)) {
      const asked = this.draft ? this.around(id) : getJson(runUrl(this.session, `/evidence/${encodeURIComponent(id)}`));
      asked.catch(() => this.contexts.delete(id));
      this.contexts.set(id, asked);
    }
    return this.contexts.get(id);
  }

  /** The same for a draft, of which the server keeps no evidence yet. */
  async around(id) {
    const { source, start, end } = this.evidence.get(id);
    const letters = Array.from(await this.text(source)); // offsets count characters, not UTF-16 units
    return {
      before: letters.slice(Math.max(0, start - AROUND), start).join(""),
      after: letters.slice(end, end + AROUND).join(""),
    };
  }

  text(source) {
    return getText(runUrl(this.session, `/sources/${encodeURIComponent(source)}`));
  }

  foot(source) {
    return h(
      "p.frozen",
      {},
      "Frozen text ",
      h("code", { title: source.id }, source.id.slice(0, 16)),
      ". What is quoted stands in it letter by letter.",
    );
  }

  /** The source's frozen text with the passage marked in it. */
  whole(evidence, source) {
    const box = h(".whole", { tabIndex: 0, role: "group", "aria-label": "Text of the source" }, loading(6));
    dialog(oneLine(source.title) || "Source", box, { wide: true });
    this.text(source.id).then(
      (text) => {
        const letters = Array.from(text);
        const mark = h("mark", { tabIndex: -1 }, letters.slice(evidence.start, evidence.end).join(""));
        fill(
          box,
          h(
            "p.whole-text",
            { dir: "auto" },
            letters.slice(0, evidence.start).join(""),
            mark,
            letters.slice(evidence.end).join(""),
          ),
        );
        mark.scrollIntoView({ block: "center" });
        say("The passage is marked in the text.");
      },
      (error) => problemIn(fill(box, h("div")).firstChild, error),
    );
  }
}

/** A passage's words, the stretches that decided on the sentences set off from the rest. */
function deciding(evidence, sentences) {
  const letters = Array.from(evidence.quote); // offsets count characters, not UTF-16 units
  const spans = sentences
    .flatMap((s) => [s, ...(s.claims ?? [])])
    .filter((s) => s.evidence === evidence.id && s.span)
    .map((s) => s.span)
    .sort((a, b) => a[0] - b[0]);
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    if (end <= at) continue;
    const from = Math.max(start, at);
    parts.push(letters.slice(at, from).join(""), h("span.deciding", {}, letters.slice(from, end).join("")));
    at = end;
  }
  return [...parts, letters.slice(at).join("")];
}

/** What the check found: sentences of which it found the same are told together. */
function checks(sentences) {
  const groups = Map.groupBy(sentences, (s) => `${s.verdict} ${s.reason}`);
  return h(
    "ul.plain.checks",
    { "aria-label": "What the check found" },
    [...groups.values()].map((group) =>
      h(
        "li",
        {},
        verdictBadge(group[0].verdict),
        h("p.reason", { dir: "auto" }, group[0].reason || verdictOf(group[0].verdict).text),
        sentences.length > 1 && group.map((s) => h("q.of", { dir: "auto" }, oneLine(s.text))),
        group.some((s) => s.checked_by === "figures") &&
          h("p.hint", {}, "Of this language only figures, dates, names and words are compared."),
        claims(group),
      ),
    ),
  );
}

/** The statements of sentences that make several, each with its own verdict. */
function claims(sentences) {
  const found = sentences.flatMap((s) => s.claims ?? []);
  return (
    found.length > 0 &&
    h(
      "ul.plain.claims",
      { "aria-label": "Statement by statement" },
      found.map((c) => h("li", {}, verdictBadge(c.verdict), h("q.of", { dir: "auto" }, oneLine(c.text)))),
    )
  );
}
