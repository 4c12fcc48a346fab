// A report's text from its front to its references.

import { getBlob, run as runUrl } from "../api.js";
import { fill, h, icon, unique } from "../dom.js";
import { count, day, directionOf, KINDS } from "../format.js";
import { linked, oneLine } from "../inline.js";
import { loading, notice } from "../parts.js";

export const OUTCOMES = {
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

export class ReportText {
  constructor(session, report, passages, prose) {
    Object.assign(this, { session, report, passages, prose, urls: [] });
    this.numbers = new Map(report.references.map((r) => [r.source, r.number]));
    this.sources = new Map(report.sources.map((s) => [s.id, s]));
    this.parts = []; // [id, title] of the contents
    this.node = h("article.prose.report-text", { lang: report.language || null, dir: directionOf(report.language) });
    fill(
      this.node,
      this.front(),
      this.brief(),
      report.sections.map((section, n) => this.section(section, n)),
      this.disagreements(),
      this.unanswered(),
      this.references(),
    );
  }

  dispose() {
    for (const url of this.urls) URL.revokeObjectURL(url);
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
      h(
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
    if (!found || found.zone === "answer") return null;
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
            { lang: "en", dir: "ltr" },
            icon("info"),
            h("span", { dir: "auto" }, `Nothing was found for this section: ${section.gap}.`),
          )
        : null,
    );
  }

  chart(chart) {
    const picture = h("span.chart-picture", {}, loading(3, "Drawing the chart"));
    getBlob(runUrl(this.session, `/charts/${encodeURIComponent(chart.id)}.svg`)).then(
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
      { class: "disagree", lang: "en", dir: "ltr" },
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
      { lang: "en", dir: "ltr" },
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
