// The live board: what waits for you, who works on what, how far each section is, what it has cost, what happened.

import { fill, h, icon, keyed, put, say } from "../dom.js";
import { count, isOver, whole } from "../format.js";
import { runPath } from "../nav.js";
import { confirmed, notice, problemIn } from "../parts.js";
import { drawFigures, runFigures, worked } from "./figures.js";
import { planGate, reviewGate } from "./gates.js";
import { Team } from "./team.js";
import { Timeline } from "./timeline.js";

const STAGES = { planned: 0, searching: 1, reading: 2, drafting: 3, grounding: 4, done: 5, gap: 5 };
const STAGE_WORDS = {
  planned: "planned",
  searching: "searching",
  reading: "reading",
  drafting: "writing",
  grounding: "checking",
  done: "done",
  gap: "no source",
};
/** What waits: "plan 1", "review 2", or nothing. It is drawn when what is to be decided on has come, too. */
function gateOf({ status, waiting_for: gate, plan, review }) {
  if (isOver(status)) return "";
  if (gate === "plan" && plan) return `plan ${plan.revision}`;
  return gate === "review" && review ? `review ${review.round}` : "";
}

export class Board {
  constructor(run) {
    this.run = run;
    this.link = h("p.link-state", { role: "status" });
    this.gate = h(".gate-place");
    this.over = h("div");
    this.facts = h("dl.facts");
    this.team = new Team();
    this.rows = h("tbody");
    this.sections = this.table();
    this.notes = h(
      "section.notes",
      { hidden: true, "aria-labelledby": "notes-title" },
      h("h2", { id: "notes-title" }, "Notes"),
      h("ul"),
    );
    this.failed = h("div", { hidden: true });
    this.timeline = new Timeline();
    this.node = h(
      ".board",
      {},
      this.link,
      this.gate,
      this.over,
      this.failed,
      this.facts,
      h(
        ".board-columns",
        {},
        h(
          ".board-main",
          {},
          this.sections,
          h(
            "section",
            { "aria-labelledby": "team-title" },
            h("h2", { id: "team-title" }, "Who does what now"),
            this.team.node,
          ),
          this.notes,
        ),
        this.timeline.node,
      ),
    );
    this.clock = setInterval(() => this.tick(), 1000);
  }

  dispose() {
    clearInterval(this.clock);
  }

  table() {
    const heads = ["Section", "State", "Searches", "Sources", "Passages", "Words"];
    return h(
      "section",
      { "aria-labelledby": "sections-title" },
      h("h2", { id: "sections-title" }, "Sections"),
      h("p.hint.unplanned", {}, "The sections appear as soon as there is a plan."),
      h(
        ".table-box",
        { hidden: true },
        h(
          "table.sections",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              heads.map((label, n) => h("th", { scope: "col", class: n > 1 ? "number" : "" }, label)),
              h("th", { scope: "col" }, h("span.hidden-text", {}, "Drop")),
            ),
          ),
          this.rows,
        ),
      ),
    );
  }

  entry(entry) {
    this.timeline.add(entry);
  }

  connection(state, seconds = 0) {
    const words = { live: "", connecting: "Connecting…", ended: "" };
    const text =
      words[state] ??
      (seconds ? `The connection broke off. Trying again in ${Math.ceil(seconds)} s…` : "Reconnecting…");
    this.link.dataset.state = state;
    put(this.link, text);
  }

  draw(session) {
    const before = this.session;
    this.session = session;
    this.drawGate(session);
    this.drawOver(session);
    this.drawFacts(session);
    this.team.draw(session);
    this.drawSections(session);
    this.drawNotes(session);
    if (before && before.status !== session.status && session.status === "paused") say("The run is paused.");
  }

  // ---- what waits, and what came out

  drawGate(session) {
    const wanted = gateOf(session);
    if (wanted === this.gated) return;
    const again = this.gated && wanted.split(" ")[0] === this.gated.split(" ")[0];
    this.gated = wanted;
    if (!wanted) return fill(this.gate);
    const [kind] = wanted.split(" ");
    fill(this.gate, kind === "plan" ? planGate(this.run, session) : reviewGate(this.run, session));
    say(
      again
        ? `The ${kind} has changed and waits for you.`
        : kind === "plan"
          ? "The plan waits for your approval."
          : "The draft waits for your review.",
    );
  }

  drawOver(session) {
    const wanted = `${session.status}${session.halt}${Boolean(session.report)}`;
    if (wanted === this.overAs) return;
    this.overAs = wanted;
    const read = session.report && h("a.button.primary", { href: runPath(session.id, "report") }, "Read the report");
    if (session.status === "halted")
      fill(
        this.over,
        notice(
          "red",
          h("p", { dir: "auto" }, h("strong", {}, "The run has stopped: "), session.halt),
          h("p.hint", {}, "Nothing is lost. Resume it when the cause is mended: what was paid for is not paid again."),
        ),
      );
    else if (session.status === "cancelled")
      fill(
        this.over,
        notice("quiet", h("p", {}, h("strong", {}, "Cancelled. "), "What was found until then is below."), read),
      );
    else if (session.report)
      fill(
        this.over,
        notice(
          session.status === "passed" ? "green" : "amber",
          h("p", { dir: "auto" }, h("strong", {}, "The report is ready. "), session.report.verdict),
          read,
        ),
      );
    else if (session.position)
      fill(
        this.over,
        notice(
          "quiet",
          h(
            "p",
            {},
            h("strong", {}, `Place ${session.position} in the queue. `),
            "It begins by itself as soon as there is room.",
          ),
        ),
      );
    else fill(this.over);
  }

  tick() {
    if (!this.session || isOver(this.session.status)) return;
    this.drawFacts(this.session);
    this.team.tick();
  }

  drawFacts(session) {
    drawFigures(this.facts, runFigures(session, worked(this.run.entries, session)));
  }

  // ---- sections

  drawSections(session) {
    const any = session.sections.length > 0;
    this.sections.querySelector(".unplanned").hidden = any;
    this.sections.querySelector(".table-box").hidden = !any;
    const queries = new Map((session.plan?.sections ?? []).map((s) => [s.id, s.queries]));
    keyed(
      this.rows,
      session.sections,
      (s) => `${s.id} ${s.title} ${queries.get(s.id)?.length}`,
      (s) => this.row(s, queries.get(s.id) ?? []),
      (node, s) => {
        const stage = node.querySelector(".stage");
        if (stage.dataset.state !== s.state) {
          stage.dataset.state = s.state;
          stage.style.setProperty("--done", String(STAGES[s.state] / 5));
          put(stage.querySelector("span"), STAGE_WORDS[s.state] ?? s.state);
        }
        for (const name of ["searches", "sources", "evidence", "words"])
          put(node.querySelector(`[data-of="${name}"]`), whole(s[name]));
        node.querySelector(".drop-section").hidden =
          isOver(session.status) || session.sections.length < 2 || session.waiting_for === "plan";
      },
    );
  }

  row(section, queries) {
    const number = (name) => h("td.number", { data: { of: name } });
    return h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h(
          "details.queries",
          {},
          h("summary", {}, h("bdi", {}, section.title)),
          h(
            "ul",
            { "aria-label": "Questions" },
            queries.map((query) => this.query(section, query, queries.length)),
          ),
        ),
      ),
      h("td", {}, h("span.stage", {}, h("i", { "aria-hidden": "true" }), h("span"))),
      ["searches", "sources", "evidence", "words"].map(number),
      h(
        "td",
        {},
        h(
          "button.quiet.round.drop-section",
          {
            type: "button",
            "aria-label": `Drop the section ${section.title}`,
            title: "Drop this section",
            onclick: () => this.drop({ section: section.id }, `“${section.title}” is left out of the report.`),
          },
          icon("trash"),
        ),
      ),
    );
  }

  query(section, query, of) {
    const button =
      of > 1 &&
      !isOver(this.session.status) &&
      h(
        "button.quiet.small",
        {
          type: "button",
          onclick: () => this.drop({ section: section.id, query }, `“${query}” is not asked any more.`),
        },
        "Drop",
      );
    return h("li", {}, h("span", { dir: "auto" }, query), " ", button);
  }

  async drop(what, text) {
    if (!(await confirmed("Drop it?", text, "Drop it", { danger: true }))) return;
    try {
      await this.run.send("/steer", { action: "drop", ...what });
      problemIn(this.failed, null);
    } catch (error) {
      problemIn(this.failed, error);
    }
  }

  drawNotes(session) {
    this.notes.hidden = !session.notes.length;
    keyed(
      this.notes.querySelector("ul"),
      session.notes.slice(-40),
      (note) => note.kind + note.text,
      (note) => h("li", { dir: "auto" }, note.text),
    );
    const hidden = session.notes.length - 40;
    put(
      this.notes.querySelector("h2"),
      hidden > 0 ? `Notes (the last 40 of ${count(session.notes.length, "note")})` : "Notes",
    );
  }
}
