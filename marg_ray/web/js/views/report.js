// The report, made for reading: contents, text with its marks, disagreements, charts, references, and how it was checked.

import { download, getBlob, getJson, run as runUrl } from "../api.js";
import { fill, h, icon, say, unique } from "../dom.js";
import { count, day, directionOf, KINDS, whole, VERDICTS } from "../format.js";
import { linked, oneLine } from "../inline.js";
import { runPath } from "../nav.js";
import { empty, failure, loading, menu, notice, problemIn } from "../parts.js";
import { checkedSection } from "./checked.js";
import { FollowUp } from "./followup.js";
import { Passages } from "./passage.js";
import { Prose } from "./prose.js";

const FORMATS = [
  ["md", "Markdown", "text with numbered references"],
  ["html", "Web page", "one file, with every passage"],
  ["pdf", "PDF", "for print"],
  ["docx", "Word", "to go on writing"],
  ["json", "JSON", "everything, for programs"],
  ["bib", "BibTeX", "the references"],
  ["ris", "RIS", "the references"],
];
const OUTCOMES = {
  passed: ["green", "Passed", "Every factual sentence was checked against the passages it cites."],
  quality_warning: ["amber", "Quality warning", "This report did not pass its own check. Read it as a draft."],
  insufficient_evidence: ["red", "Insufficient evidence", "The sources do not answer the question."],
  budget_stopped: [
    "amber",
    "Stopped by its budget",
    "A limit was reached before the report was finished; this had been written.",
  ],
  cancelled: ["amber", "Cancelled", "The run was cancelled; this had been written."],
};

const kept = new Map(); // the reports seen last, by their digest: they never change

export function reportTab(run) {
  const node = h(".report-place", {}, loading(8, "Loading the report"));
  let shown = null;
  load();
  async function load() {
    try {
      const digest = run.session.report?.artefact ?? "";
      const report = kept.get(digest) ?? (await getJson(runUrl(run.id, "/report")));
      if (digest) kept.set(digest, report);
      if (kept.size > 8) kept.delete(kept.keys().next().value);
      shown = new ReportView(run, report);
      fill(node, shown.node);
      shown.watch();
    } catch (error) {
      fill(
        node,
        error.code === "NotReady"
          ? empty(
              "No report yet",
              error.message,
              h("a.button.primary", { href: runPath(run.id, "progress") }, "Watch it"),
            )
          : failure(error, { retry: load, lead: "The report cannot be shown" }),
      );
    }
  }
  return { node, dispose: () => shown?.dispose() };
}

class ReportView {
  constructor(run, report) {
    Object.assign(this, { run, report, urls: [] });
    this.passages = new Passages(run.id, report);
    this.prose = new Prose(report, this.passages);
    this.numbers = new Map(report.references.map((r) => [r.source, r.number]));
    this.sources = new Map(report.sources.map((s) => [s.id, s]));
    this.parts = []; // [id, title] of the contents
    this.refused =
      report.status === "insufficient_evidence" &&
      !report.summary.length &&
      !report.sections.some((s) => s.sentences.length);
    this.follow = this.refused ? null : new FollowUp(run.id, this.prose);
    const article = this.article();
    this.node = h(".report", {}, this.side(), article, this.passages.node);
  }

  dispose() {
    this.passages.dispose();
    this.follow?.dispose();
    this.watcher?.disconnect();
    for (const url of this.urls) URL.revokeObjectURL(url);
  }

  // ---- beside the text

  side() {
    const links = this.parts.map(([id, title]) => h("li", {}, h("a", { href: `#${id}` }, h("bdi", {}, title))));
    const verdicts = h("input", {
      type: "checkbox",
      checked: localStorage.getItem("marg-verdicts") !== "off",
      onchange: () => (
        localStorage.setItem("marg-verdicts", verdicts.checked ? "on" : "off"),
        this.showVerdicts(verdicts.checked)
      ),
    });
    this.showVerdicts(verdicts.checked);
    const failed = h("div", { hidden: true });
    const exports = FORMATS.map(([ext, name, hint]) => [name, () => this.save(ext, name, failed), hint]);
    const wide = matchMedia("(min-width: 68rem)").matches;
    return h(
      ".side",
      {},
      h(".side-tools", {}, menu("Export", "download", exports), failed),
      h(
        "details.contents",
        { open: wide },
        h("summary", {}, "Contents"),
        h("nav", { "aria-label": "Contents of the report" }, h("ol.plain.toc", {}, links)),
      ),
      this.refused
        ? null
        : h(".view", {}, h("label.check", {}, verdicts, h("span", {}, "Show verdicts")), this.legend()),
    );
  }

  legend() {
    const all = this.report.sections.flatMap((s) => s.sentences);
    const counts = Object.entries(VERDICTS).map(([name, about]) => [
      name,
      about,
      all.filter((s) => s.verdict === name).length,
    ]);
    return h(
      "ul.plain.legend",
      { "aria-label": "Sentences by verdict" },
      counts
        .filter(([, , n]) => n)
        .map(([name, { label, sign }, n]) =>
          h(
            `li.v-${name}`,
            {},
            h("span", {}, h("span.sign", { "aria-hidden": "true" }, sign), label),
            h("b", {}, whole(n)),
          ),
        ),
    );
  }

  showVerdicts(on) {
    this.body?.classList.toggle("show-verdicts", on);
  }

  async save(ext, name, failed) {
    problemIn(failed, null);
    say(`Making the ${name} file.`);
    try {
      say(`Saved as ${await download(runUrl(this.run.id, `/report.${ext}?download=1`), `report.${ext}`)}.`);
    } catch (error) {
      problemIn(failed, error);
    }
  }

  /** Marks in the contents where the reader is. */
  watch() {
    const links = new Map([...this.node.querySelectorAll(".toc a")].map((a) => [a.hash.slice(1), a]));
    const visible = new Set();
    this.watcher = new IntersectionObserver(
      (seen) => {
        for (const { target, isIntersecting } of seen) visible[isIntersecting ? "add" : "delete"](target.id);
        const first = [...links.keys()].find((id) => visible.has(id));
        for (const [id, link] of links)
          id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
      },
      { rootMargin: "-10% 0px -55% 0px" },
    );
    for (const id of links.keys()) {
      const part = document.getElementById(id);
      if (part) this.watcher.observe(part);
    }
    if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }

  part(id, title, props, ...children) {
    this.parts.push([id, title]);
    const heading = unique("part");
    return h(
      "section",
      { id, "aria-labelledby": heading, ...props },
      h("h2", { id: heading, dir: "auto" }, title),
      children,
    );
  }

  // ---- the text

  article() {
    const { report } = this;
    this.body = h("article.prose.report-text", { lang: report.language || null, dir: directionOf(report.language) });
    fill(
      this.body,
      this.front(),
      this.refused
        ? this.nothing()
        : [
            this.brief(),
            report.sections.map((section, n) => this.section(section, n)),
            this.disagreements(),
            this.unanswered(),
            this.references(),
          ],
    );
    const rest = [checkedSection(this), this.follow?.node];
    if (this.follow) this.parts.push(["ask", "Ask about this report"]);
    return h(".report-main", {}, this.body, rest);
  }

  front() {
    const { report } = this;
    const [tone, name, text] = OUTCOMES[report.status] ?? ["quiet", report.status, ""];
    const plain = report.model.split(":")[0] === "extractive";
    const origin = `Sources read: ${report.sources.length}, cited: ${report.references.length}.`;
    const title = oneLine(report.title).replace(/[?.]$/, "");
    return h(
      "header.front",
      { lang: "en", dir: "ltr" },
      title && title !== oneLine(report.question).replace(/[?.]$/, "")
        ? h("p.report-title", { dir: "auto", lang: report.language || null }, report.title)
        : null,
      this.refused
        ? null
        : h(
            "p.disclosure",
            {},
            h("strong", {}, plain ? "Composed without a language model " : "AI-generated "),
            plain
              ? `from verbatim quotations. ${origin}`
              : ["by ", h("bdi", {}, report.model), `. ${origin} Each mark leads to the passage it rests on.`],
          ),
      notice(tone, h("p", {}, h("strong", {}, `${name}. `), text)),
      this.nearest(),
    );
  }

  nearest() {
    const found = this.report.answerability;
    if (!found || found.zone === "answer" || this.refused) return null;
    return notice(
      "amber",
      h(
        "p",
        { dir: "auto" },
        h("strong", {}, "Nearest material. "),
        "The sources do not state this directly. What follows is the nearest material in them.",
        found.missing_terms.length ? ` Found in no document: ${found.missing_terms.join(", ")}.` : "",
      ),
    );
  }

  nothing() {
    const { verdict, answerability } = this.report;
    return h(
      "section.refusal",
      { lang: "en" },
      verdict && h("p", { dir: "auto" }, verdict),
      answerability?.missing_terms.length
        ? h("p", { dir: "auto" }, `Found in no document: ${answerability.missing_terms.join(", ")}.`)
        : null,
      answerability?.nearest.length
        ? [
            h("p", {}, "Nearest to it:"),
            h(
              "ul",
              {},
              answerability.nearest.map((title) => h("li", { dir: "auto" }, title)),
            ),
          ]
        : null,
    );
  }

  brief() {
    const { summary, summary_blocks: blocks } = this.report;
    return summary.length
      ? this.part("in-brief", "In brief", { class: "brief" }, this.prose.blocks(blocks, summary))
      : null;
  }

  section(section, n) {
    const charts = (this.report.charts ?? []).filter((chart) => chart.section === section.id);
    return this.part(
      `section-${n + 1}`,
      section.title,
      {},
      section.quoted_only
        ? h("p.aside", { lang: "en", dir: "ltr" }, "The passages found for this section, word for word:")
        : null,
      this.prose.section(section),
      charts.map((chart) => this.chart(chart)),
      section.gap
        ? h(
            "p.gap",
            { lang: "en" },
            icon("info"),
            h("span", { dir: "auto" }, `Nothing was found for this section: ${section.gap}.`),
          )
        : null,
    );
  }

  chart(chart) {
    const picture = h("span.chart-picture", {}, loading(3, "Drawing the chart"));
    getBlob(runUrl(this.run.id, `/charts/${encodeURIComponent(chart.id)}.svg`)).then(
      (blob) => {
        const url = URL.createObjectURL(new Blob([blob], { type: "image/svg+xml" }));
        this.urls.push(url);
        fill(picture, h("img", { src: url, alt: `Chart: ${chart.title}. The figures are in the table below.` }));
      },
      () => fill(picture, h("span.hint", {}, "The chart cannot be drawn; its figures are in the table.")),
    );
    const numbers = chart.numbers.map((n) =>
      h("a.mark", { href: `#ref-${n}`, "aria-label": `Reference ${n}` }, String(n)),
    );
    const rows = chart.labels.map((label, n) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", dir: "auto" }, label),
        chart.series.map((series) => h("td.number", {}, series.values[n] ?? "–")),
      ),
    );
    return h(
      "figure.chart",
      {},
      picture,
      h("figcaption", { dir: "auto" }, chart.title, " ", numbers),
      h(
        "details",
        {},
        h("summary", {}, "Figures"),
        h(
          ".table-box",
          { tabIndex: 0, role: "group", "aria-label": `Figures: ${chart.title}` },
          h(
            "table",
            {},
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                h("th", { scope: "col", dir: "auto" }, chart.x),
                chart.series.map((series) => h("th.number", { scope: "col", dir: "auto" }, series.name || chart.y)),
              ),
            ),
            h("tbody", {}, rows),
          ),
        ),
      ),
      chart.notes?.length ? h("p.hint", { dir: "auto" }, chart.notes.join(" ")) : null,
    );
  }

  disagreements() {
    const { contradictions } = this.report;
    if (!contradictions.length) return null;
    return this.part(
      "disagreements",
      "Where the sources disagree",
      { class: "disagree", lang: "en" },
      contradictions.map((dispute) =>
        h(
          ".dispute",
          {},
          h("h3", { dir: "auto" }, dispute.subject),
          dispute.note && h("p", { dir: "auto" }, dispute.note),
          h(
            "ul.plain.sides",
            {},
            dispute.sides.map((side) => this.disputeSide(side)),
          ),
        ),
      ),
    );
  }

  disputeSide(side) {
    const source = this.sources.get(this.passages.evidence.get(side.evidence)?.source);
    return h(
      "li",
      {},
      h("span.value", { dir: "auto" }, side.value),
      source &&
        h(
          "button.link",
          {
            type: "button",
            "aria-expanded": "false",
            onclick: (event) => this.passages.open(event.currentTarget, { source: source.id, only: side.evidence }),
          },
          h("bdi", {}, oneLine(source.title) || source.location),
        ),
      side.date && h("small", {}, ` (${side.date})`),
    );
  }

  unanswered() {
    const { gaps, unknowns, sections } = this.report;
    if (!gaps.length && !unknowns.length) return null;
    const titles = new Map(sections.map((s) => [s.id, s.title]));
    return this.part(
      "unanswered",
      "Not answered by the documents",
      { lang: "en" },
      h(
        "ul",
        {},
        gaps.map((gap) =>
          h("li", { dir: "auto" }, h("strong", {}, titles.get(gap.section) ?? gap.section), `: ${gap.reason}`),
        ),
        unknowns.map((text) => h("li", { dir: "auto" }, text)),
      ),
    );
  }

  references() {
    const { references, sources, evidence } = this.report;
    if (!references.length) return null;
    const cited = new Set(references.map((r) => r.source));
    const others = sources.filter((s) => !cited.has(s.id));
    return this.part(
      "references",
      "References",
      { lang: "en", dir: "ltr" },
      h(
        "ol.references",
        {},
        references.map((r) =>
          this.reference(
            r.number,
            this.sources.get(r.source),
            evidence.filter((e) => e.source === r.source),
          ),
        ),
      ),
      others.length
        ? h(
            "details.others",
            {},
            h("summary", {}, `${count(others.length, "more source")} read, not cited`),
            h(
              "ul",
              {},
              others.map((s) =>
                h("li", { dir: "auto" }, this.titled(s), " ", h("small", {}, `read ${day(s.fetched_at)}`)),
              ),
            ),
          )
        : null,
    );
  }

  titled(source) {
    const title = h("bdi", {}, oneLine(source.title) || source.location || KINDS[source.kind]);
    return linked(source.location, [title]) ?? title;
  }

  reference(number, source, passages) {
    const facts = [
      KINDS[source.kind],
      source.published && `published ${source.published}`,
      `read ${day(source.fetched_at)}`,
    ]
      .filter(Boolean)
      .join(", ");
    return h(
      "li",
      { id: `ref-${number}`, value: number, tabIndex: -1 },
      h("p.ref-title", {}, this.titled(source)),
      source.location && source.location !== source.title ? h("p.place", { dir: "ltr" }, source.location) : null,
      h(
        "p.hint",
        {},
        facts,
        source.injections.length ? h("span.warn", {}, " · instruction-like text was cut out") : null,
      ),
      h(
        "details",
        {},
        h("summary", {}, `${count(passages.length, "passage")} cited`),
        passages.map((e) =>
          h(
            "figure.quote",
            {},
            h("blockquote", { dir: "auto" }, e.quote),
            h(
              "figcaption",
              {},
              [e.heading, e.page && `page ${e.page}`].filter(Boolean).flatMap((w) => [h("bdi", {}, w), " · "]),
              h(
                "button.link",
                {
                  type: "button",
                  "aria-expanded": "false",
                  onclick: (event) => this.passages.open(event.currentTarget, { source: source.id, only: e.id }),
                },
                "in context",
              ),
            ),
          ),
        ),
      ),
    );
  }
}
