// The report, made for reading: contents, text with its marks, disagreements, charts, references, and how it was checked.

import { download, getJson, run as runUrl } from "../api.js";
import { fill, h, say } from "../dom.js";
import { VERDICTS, whole } from "../format.js";
import { runPath } from "../nav.js";
import { empty, failure, loading, menu, notice, problemIn } from "../parts.js";
import { checkedSection } from "./checked.js";
import { FollowUp } from "./followup.js";
import { Passages } from "./passage.js";
import { Prose } from "./prose.js";
import { OUTCOMES, ReportText } from "./text.js";

const FORMATS = [
  ["md", "Markdown", "text with numbered references"],
  ["html", "Web page", "one file, with every passage"],
  ["pdf", "PDF", "for print"],
  ["docx", "Word", "to go on writing"],
  ["json", "JSON", "everything, for programs"],
  ["bib", "BibTeX", "the references"],
  ["ris", "RIS", "the references"],
];
const kept = new Map(); // the reports seen last, by their digest: they never change

export function reportTab(run) {
  const node = h(".report-place", {}, loading(8, "Loading the report"));
  let shown = null;
  if (isRefusal(run.session.report)) fill(node, refusal(run));
  else load();
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
          : error.code === "NoReport"
            ? refusal(run)
            : failure(error, { retry: load, lead: "The report cannot be shown" }),
      );
    }
  }
  return { node, dispose: () => shown?.dispose() };
}

const isRefusal = (report) =>
  report?.status === "insufficient_evidence" || (report?.status === "budget_stopped" && !report.words);

/** A run that is over without a report: why, and what may help. */
function refusal(run) {
  const { status } = run.session;
  const [tone, name, text] = OUTCOMES[status] ?? ["quiet", "No report", ""];
  const reason = (run.session.report?.verdict ?? "").replace(/\.$/, "");
  const told = text.toLowerCase().includes(reason.toLowerCase()) ? "" : reason;
  return h(
    ".refusal",
    {},
    notice(
      tone,
      h("p", { dir: "auto" }, h("strong", {}, `${name}. `), text, told && ` ${told[0].toUpperCase()}${told.slice(1)}.`),
    ),
    status === "insufficient_evidence" &&
      h(
        "p",
        {},
        "Nothing was written, because what is written must stand in a source. Other sources, other words or a narrower question may help.",
      ),
    run.session.notes.length > 0 &&
      h(
        "ul",
        {},
        run.session.notes.map((note) => h("li", { dir: "auto" }, note.text)),
      ),
    h(
      ".actions",
      {},
      h("a.button", { href: runPath(run.id, "progress") }, "See what was searched"),
      h("a.button.quiet", { href: "/" }, "Ask in another way"),
    ),
  );
}

class ReportView {
  constructor(run, report) {
    Object.assign(this, { run, report });
    this.passages = new Passages(run.id, report);
    const prose = new Prose(report, this.passages);
    this.text = new ReportText(run.id, report, this.passages, prose);
    this.follow = new FollowUp(run.id, prose);
    const rest = [checkedSection(this.text), this.follow.node];
    this.text.parts.push(["ask", "Ask about this report"]);
    this.node = h(".report", {}, this.side(), h(".report-main", {}, this.text.node, rest), this.passages.node);
  }

  dispose() {
    this.passages.dispose();
    this.follow.dispose();
    this.text.dispose();
    this.watcher?.disconnect();
  }

  // ---- beside the text

  side() {
    const links = this.text.parts.map(([id, title]) => h("li", {}, h("a", { href: `#${id}` }, h("bdi", {}, title))));
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
      h(".view", {}, h("label.check", {}, verdicts, h("span", {}, "Show verdicts")), this.legend()),
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
    this.text.node.classList.toggle("show-verdicts", on);
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
}
