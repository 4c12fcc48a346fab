// One run: its head, its controls, and the tab that is open: progress, report or replay.

import { getJson, postJson, run as runUrl } from "../api.js";
import { fill, h, icon, put, say } from "../dom.js";
import { duration, isOver, moment } from "../format.js";
import { go, rename, runPath } from "../nav.js";
import { confirmed, dialog, notice, pill, problemIn } from "../parts.js";
import { follow } from "../stream.js";
import { Board } from "./board.js";
import { replayTab } from "./replay.js";
import { reportTab } from "./report.js";
import { steerForm } from "./steer.js";

const TABS = [
  ["progress", "Progress"],
  ["report", "Report"],
  ["replay", "Replay"],
];

export async function runView(id, tab) {
  const session = await getJson(runUrl(id));
  const own = session.report && isOver(session.status) ? "report" : "progress";
  const view = new Run(id, session, tab || own);
  const shown = () => {
    if (!tab && own === "report") rename(runPath(id, own) + location.search);
    view.start();
  };
  return { title: session.question, node: view.node, dispose: () => view.dispose(), shown };
}

class Run {
  constructor(id, session, tab) {
    Object.assign(this, { id, session, tab, entries: [], stop: () => {}, wasOver: isOver(session.status) });
    this.status = h("span.run-status");
    this.facts = h("span.hint");
    this.controls = h(".controls");
    this.failed = h("div", { hidden: true });
    this.body = h(".run-body");
    this.tabs = h("nav.tabs", { "aria-label": "This run" });
    this.node = h(
      `.page.run.on-${tab}`,
      {},
      h(
        "header.run-head",
        {},
        h(".run-line", {}, this.status, this.facts),
        h("h1", { dir: "auto", tabIndex: -1 }, session.question),
        h(".run-bar", {}, this.tabs, this.controls),
      ),
      new URLSearchParams(location.search).has("known") && this.known(),
      this.failed,
      this.body,
    );
    this.drawHead();
  }

  start() {
    if (this.tab === "report") this.open(reportTab(this));
    else if (this.tab === "replay") this.open(replayTab(this));
    else this.follow();
  }

  open({ node, dispose }) {
    fill(this.body, node);
    this.stop = dispose ?? (() => {});
  }

  dispose() {
    this.stop();
  }

  known() {
    return notice(
      "accent",
      h(
        "p",
        {},
        h("strong", {}, "This was asked before. "),
        `Here is the report of ${moment(this.session.created_at)}. `,
        "To research it anew, tick “Research anew” under “More” when you ask.",
      ),
    );
  }

  // ---- the head

  drawHead() {
    const { session } = this;
    if (this.status.dataset.status !== session.status) {
      this.status.dataset.status = session.status;
      fill(this.status, pill(session.status, session.position ? `Queued, place ${session.position}` : ""));
    }
    const took = isOver(session.status)
      ? ` · ${duration((Date.parse(session.updated_at) - Date.parse(session.created_at)) / 1000)}`
      : "";
    put(this.facts, `${session.depth ?? ""} · asked ${moment(session.created_at)}${took}`.replace(/^ · /, ""));
    fill(
      this.tabs,
      TABS.filter(([name]) => name !== "report" || session.report || this.tab === name).map(([name, label]) =>
        h("a", { href: runPath(this.id, name), "aria-current": name === this.tab ? "page" : null }, label),
      ),
    );
    this.drawControls();
  }

  drawControls() {
    const { status } = this.session;
    const wanted =
      this.tab === "progress"
        ? isOver(status)
          ? status === "halted"
            ? "resume"
            : ""
          : status === "paused"
            ? "resume steer cancel"
            : "pause steer cancel"
        : "";
    if (this.controls.dataset.has === wanted) return;
    this.controls.dataset.has = wanted;
    const buttons = {
      pause: () => h("button", { type: "button", onclick: () => this.act("pause") }, icon("pause"), "Pause"),
      resume: () => h("button.primary", { type: "button", onclick: () => this.act("resume") }, icon("play"), "Resume"),
      steer: () => h("button", { type: "button", onclick: () => this.steer() }, icon("steer"), "Steer"),
      cancel: () => h("button.danger-quiet", { type: "button", onclick: () => this.cancel() }, icon("stop"), "Cancel"),
    };
    fill(
      this.controls,
      wanted
        .split(" ")
        .filter(Boolean)
        .map((name) => buttons[name]()),
    );
  }

  async act(what) {
    try {
      const { status } = await postJson(runUrl(this.id, `/${what}`), undefined);
      problemIn(this.failed, null);
      this.session = { ...this.session, status };
      this.drawHead();
      say({ pause: "Paused.", resume: "Going on.", cancel: "Cancelled." }[what]);
      if (what === "resume" && this.wasOver) this.restart();
    } catch (error) {
      problemIn(this.failed, error);
    }
  }

  async cancel() {
    if (
      await confirmed(
        "Cancel this run?",
        "The agents stop at once. What has been found stays; nothing more is written.",
        "Cancel the run",
        { danger: true },
      )
    )
      this.act("cancel");
  }

  steer() {
    const close = dialog(
      "Steer the run",
      steerForm(this, () => close()),
      {},
    );
  }

  /** A call that changes the run; throws what the server says. */
  async send(path, body) {
    const answer = await postJson(runUrl(this.id, path), body);
    this.session = { ...this.session, status: answer.status ?? this.session.status };
    this.drawHead();
    return answer;
  }

  // ---- live

  restart() {
    this.stop();
    [this.wasOver, this.entries] = [false, []];
    this.follow();
  }

  follow() {
    const board = new Board(this);
    fill(this.body, board.node);
    board.draw(this.session);
    const stop = follow(runUrl(this.id, "/events"), {
      entry: (entry) => {
        this.entries.push(entry);
        board.entry(entry);
      },
      board: (session) => this.update(board, session),
      resync: () => {
        this.entries = [];
        board.timeline.reset([]);
      },
      end: ({ status }) => this.ended(board, status),
      state: (state, seconds) => board.connection(state, seconds),
      failed: (error) => {
        board.connection("ended");
        problemIn(this.failed, error);
      },
    });
    this.stop = () => (stop(), board.dispose());
  }

  update(board, session) {
    this.session = session;
    const sign = { waiting: "(!) ", halted: "(!) ", running: "… ", paused: "‖ " }[session.status] ?? "";
    document.title = `${sign}${session.question} · MARG-Ray`; // seen while another tab is in front
    this.drawHead();
    board.draw(session);
  }

  async ended(board, status) {
    board.connection("ended");
    try {
      this.update(board, await getJson(runUrl(this.id)));
    } catch {
      this.update(board, { ...this.session, status, running: [] });
    }
    if (this.wasOver) return;
    this.wasOver = true;
    const ready = Boolean(this.session.report);
    say(ready ? "The report is ready." : `The run is over: ${status.replaceAll("_", " ")}.`);
    const busy = document.querySelector("dialog[open]") || document.activeElement?.closest?.("input, textarea, select");
    if (ready && status !== "cancelled" && !busy && this.node.isConnected)
      go(runPath(this.id, "report"), { replace: true });
  }
}
