// A report's sections as prose: runs of sentences under their marks, lists, tables, run-in labels.

import { h } from "../dom.js";
import { verdictOf, WORST } from "../format.js";
import { gapBetween, inline, oneLine } from "../inline.js";

const FLAGGED = new Set(["unsupported", "contradicted"]);
const LEAD = /^\*\*[^*]{1,120}\*\* /;

export class Prose {
  /** `passages.mark(element, {source, sentences})` opens what a mark stands for. */
  constructor(report, passages) {
    this.passages = passages;
    this.evidence = new Map(report.evidence.map((e) => [e.id, e]));
    this.numbers = new Map(report.references.map((r) => [r.source, r.number]));
  }

  section(section) {
    return this.blocks(section.blocks ?? [], section.sentences ?? []);
  }

  /** The blocks in order; sentences that no block holds follow as a paragraph. */
  blocks(blocks, sentences) {
    const held = new Set(blocks.flatMap((b) => Array.from({ length: b.end - b.start }, (_, n) => b.start + n)));
    const rest = sentences.filter((_, n) => !held.has(n));
    const pieces = withLabels(
      blocks.map((block) => ({ ...block, sentences: sentences.slice(block.start, block.end) })),
    );
    if (rest.length) pieces.push({ kind: "paragraph", sentences: rest });
    const nodes = [];
    for (let n = 0; n < pieces.length; n++) {
      if (pieces[n].kind !== "bullet" && pieces[n].kind !== "ordered") {
        nodes.push(this.piece(pieces[n]));
        continue;
      }
      let end = n;
      while (["bullet", "ordered"].includes(pieces[end + 1]?.kind)) end++;
      nodes.push(...this.lists(pieces.slice(n, end + 1)));
      n = end;
    }
    return nodes;
  }

  piece(piece) {
    const prose = this.prose(piece);
    switch (piece.kind) {
      case "heading":
        return h(`h${Math.min(6, 2 + Math.max(1, piece.level))}`, { dir: "auto" }, inline(oneLine(piece.text)), prose);
      case "label":
        return h("p", { dir: "auto" }, h("strong.label", {}, inline(oneLine(piece.text))), " ", prose);
      case "code":
      case "formula":
        return [
          h(`pre.${piece.kind}`, { tabIndex: 0, dir: "ltr" }, h("code", {}, piece.text.replace(/^\n+|\n+$/g, ""))),
          prose.length ? h("p", { dir: "auto" }, prose) : null,
        ];
      case "table":
        return this.table(piece);
      case "quote":
        return h("blockquote", { dir: "auto" }, h("p", {}, prose));
      default:
        return h("p", { dir: "auto" }, prose);
    }
  }

  /** Items as nested lists, by their level and kind. */
  lists(pieces) {
    const [done, stack] = [[], []];
    for (const piece of pieces) {
      const level = Math.max(0, piece.level ?? 0);
      const top = () => stack.at(-1);
      while (top() && (level < top().level || (level === top().level && piece.kind !== top().kind))) stack.pop();
      if (!top() || level > top().level) {
        const list = h(piece.kind === "ordered" ? "ol" : "ul");
        if (top()) top().list.lastElementChild.append(list);
        else done.push(list);
        stack.push({ kind: piece.kind, level, list });
      }
      top().list.append(h("li", { dir: "auto" }, this.prose(piece)));
    }
    return done;
  }

  /** Rows of any length: the longest sets the columns; without a header and with one column it is a list. */
  table(piece) {
    const header = cells(piece.text ?? "");
    const rows = piece.sentences.map((sentence) => [cells(sentence.text), sentence]);
    const width = Math.max(header.length, ...rows.map(([row]) => row.length));
    if (!header.length && width <= 1)
      return h(
        "ul",
        {},
        rows.map(([, s]) => h("li", { dir: "auto" }, this.runs([s]))),
      );
    const padded = (row) => [...row, ...Array(width - row.length).fill("")];
    return h(
      ".table-box",
      { tabIndex: 0, role: "group", "aria-label": "Table" },
      h(
        "table",
        {},
        header.length
          ? h(
              "thead",
              {},
              h(
                "tr",
                {},
                padded(header).map((cell) => h("th", { scope: "col", dir: "auto" }, inline(cell))),
              ),
            )
          : null,
        h(
          "tbody",
          {},
          rows.map(([row, sentence]) =>
            h(
              "tr",
              {},
              padded(row).map((cell, n) =>
                h("td", { dir: "auto" }, inline(cell), n === width - 1 ? this.marks([sentence]) : null),
              ),
            ),
          ),
        ),
      ),
    );
  }

  // ---- sentences and their marks

  prose(piece) {
    const nodes = this.runs(piece.sentences ?? []);
    if (!piece.label) return nodes;
    const label = oneLine(piece.label);
    return [h("strong.label", {}, inline(label), /[.:?!。：]$/.test(label) ? "" : "."), " ", ...nodes];
  }

  /** Sentences in a row that cite the same share one mark, at the end of the last. */
  runs(sentences) {
    const nodes = [];
    let last = "";
    for (const run of grouped(sentences)) {
      const marks = this.marks(run);
      run.forEach((sentence, n) => {
        const words = this.words(sentence);
        const plain = words.map((w) => (typeof w === "string" ? w : w.textContent)).join("");
        nodes.push(gapBetween(last, plain));
        const span = h(`span.s.v-${sentence.verdict}`, {}, words);
        if (n === run.length - 1 && marks.length) nodes.push(span, "\u2060", h("span.marks", {}, marks));
        else nodes.push(span);
        last = plain;
      });
    }
    return nodes;
  }

  /** What stands verbatim in a cited passage is shown letter by letter; the rest is read as Markdown. */
  words(sentence) {
    const text = oneLine(sentence.text);
    const lead = LEAD.exec(text)?.[0] ?? "";
    const body = text.slice(lead.length);
    const bare = body.replace(/\.+$/, "") || body;
    const verbatim =
      body &&
      (sentence.citations ?? []).some(
        (id) => this.evidence.has(id) && oneLine(this.evidence.get(id).quote).includes(bare),
      );
    return verbatim ? [...inline(lead.trim()), lead ? ` ${body}` : body] : inline(text);
  }

  marks(run) {
    const worst = run
      .map((s) => s.verdict)
      .sort((a, b) => WORST.indexOf(a) - WORST.indexOf(b))
      .at(-1);
    const sources = [
      ...new Set(
        (run[0].citations ?? []).map((id) => this.evidence.get(id)?.source).filter((id) => this.numbers.has(id)),
      ),
    ];
    if (!sources.length)
      return FLAGGED.has(worst) ? [this.mark("!", "No source", worst, { source: null, sentences: run })] : [];
    sources.sort((a, b) => this.numbers.get(a) - this.numbers.get(b));
    return sources.map((source) =>
      this.mark(String(this.numbers.get(source)), `Reference ${this.numbers.get(source)}`, worst, {
        source,
        sentences: run,
      }),
    );
  }

  mark(text, name, verdict, what) {
    const { label, sign } = verdictOf(verdict);
    const calm = ["supported", "not_factual"].includes(verdict) || text === "!";
    const button = h(
      `button.mark.v-${verdict}`,
      { type: "button", "aria-label": `${name}, ${label.toLowerCase()}`, "aria-expanded": "false", title: label },
      text,
      !calm && h("span.sign", { "aria-hidden": "true" }, sign),
    );
    this.passages.mark(button, what);
    return button;
  }
}

const sharedKey = (s) => `${(s.citations ?? []).join(" ")}|${FLAGGED.has(s.verdict) ? s.verdict : ""}`;

function grouped(sentences) {
  const runs = [];
  for (const sentence of sentences) {
    if (runs.length && sharedKey(runs.at(-1)[0]) === sharedKey(sentence)) runs.at(-1).push(sentence);
    else runs.push([sentence]);
  }
  return runs;
}

/** A label runs into the prose that follows it; on its own it is a line of its own. */
function withLabels(blocks) {
  const out = [];
  let label = null;
  for (const block of blocks) {
    let piece = block;
    if (label && ["paragraph", "bullet", "ordered"].includes(piece.kind) && !label.sentences.length)
      piece = { ...piece, label: label.text };
    else if (label) out.push(label);
    label = piece.kind === "label" ? piece : null;
    if (!label) out.push(piece);
  }
  if (label) out.push(label);
  return out;
}

function cells(row) {
  const text = oneLine(row)
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  const parts = text.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
  return parts.some(Boolean) ? parts : [];
}
