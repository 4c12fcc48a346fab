// A finished run once more: its log played back, with a scrubber and a lane for each agent.

import { run as runUrl } from "../api.js";
import { fill, h, icon, keyed, put, s } from "../dom.js";
import { duration, isOver, money, ROLES, short, whole } from "../format.js";
import { runPath } from "../nav.js";
import { check, empty, failure, loading } from "../parts.js";
import { follow } from "../stream.js";
import { drawFigures, figure } from "./figures.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [1, 4, 16];
const LONG_WAIT = 3; // seconds that a longer wait is cut to
const LANES = ["planner", "researcher", "synthesizer", "critic", "analyst", "formatter", "owner"];
const WIDTH = 1000;
const LANE = 22;

export function replayTab(run) {
  const node = h(".replay-place", {}, loading(6, "Loading the log"));
  if (!isOver(run.session.status)) {
    fill(
      node,
      empty(
        "Not over yet",
        "A run can be played back when it is over.",
        h("a.button.primary", { href: runPath(run.id, "progress") }, "Watch it live"),
      ),
    );
    return { node };
  }
  const entries = [];
  let player = null;
  const show = () => {
    if (player || !node.isConnected) return;
    if (!entries.length) return fill(node, empty("Nothing to play", "The log of this run is empty."));
    player = new Player(run.session, entries);
    fill(node, player.node);
  };
  const load = () =>
    follow(
      runUrl(run.id, "/events"),
      {
        entry: (e) => entries.push(e),
        end: show,
        failed: (error) => fill(node, failure(error, { lead: "The log cannot be read", retry: () => (stop = load()) })),
      },
      { board: false },
    );
  let stop = load();
  return { node, dispose: () => (stop(), player?.pause()) };
}

/** Seconds from the start for each entry; with `cut`, long waits are shortened. */
export function times(entries, cut) {
  let at = 0;
  return entries.map((entry, n) => {
    if (n) {
      const gap = Math.max(0, (Date.parse(entry.at) - Date.parse(entries[n - 1].at)) / 1000);
      at += cut ? Math.min(gap, LONG_WAIT) : gap;
    }
    return at;
  });
}

class Player {
  constructor(session, entries) {
    Object.assign(this, { session, entries, at: 0, shown: -1, speed: 4, cut: true, frame: 0 });
    this.timeline = new Timeline({ title: "What happened until then" });
    this.button = h("button.primary.play", { type: "button", onclick: () => this.toggle() });
    this.range = h("input", {
      type: "range",
      min: 0,
      step: "any",
      value: 0,
      "aria-label": "Moment of the run",
      oninput: () => (this.pause(), this.seek(Number(this.range.value))),
    });
    this.where = h("span.moment");
    this.lanes = h(".lanes");
    this.facts = h("dl.facts");
    this.rows = h("tbody");
    this.now = h("p.now", { dir: "auto" });
    this.node = h(
      ".replay",
      {},
      h(
        ".player",
        {},
        this.button,
        this.range,
        this.where,
        this.speeds(),
        check("Cut long waits", { checked: true, onchange: (event) => this.setCut(event.target.checked) }),
      ),
      this.lanes,
      this.now,
      this.facts,
      h(
        ".board-columns",
        {},
        h(
          ".board-main",
          {},
          h(
            "section",
            { "aria-labelledby": "replay-sections" },
            h("h2", { id: "replay-sections" }, "Sections"),
            h(
              ".table-box",
              {},
              h(
                "table.sections",
                {},
                h(
                  "thead",
                  {},
                  h(
                    "tr",
                    {},
                    ["Section", "Searches", "Sources", "Drafts", "Checked"].map((label, n) =>
                      h("th", { scope: "col", class: n ? "number" : "" }, label),
                    ),
                  ),
                ),
                this.rows,
              ),
            ),
          ),
        ),
        this.timeline.node,
      ),
    );
    this.setCut(true);
    this.drawButton();
  }

  speeds() {
    return h(
      "fieldset.segments",
      {},
      h("legend.hidden-text", {}, "Speed"),
      SPEEDS.map((speed) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "speed",
            value: speed,
            checked: speed === this.speed,
            onchange: () => (this.speed = speed),
          }),
          h("span", {}, `${speed}×`),
        ),
      ),
    );
  }

  setCut(cut) {
    const share = this.length ? this.at / this.length : 0;
    this.cut = cut;
    this.times = times(this.entries, cut);
    this.length = Math.max(this.times.at(-1), 0.01);
    this.range.max = String(this.length);
    this.drawLanes();
    this.seek(share * this.length);
  }

  // ---- playing

  toggle() {
    if (this.frame) return this.pause();
    if (this.at >= this.length) this.seek(0);
    let last = performance.now();
    const step = (now) => {
      this.seek(this.at + ((now - last) / 1000) * this.speed);
      last = now;
      if (this.at >= this.length) return this.pause();
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
    this.drawButton();
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.drawButton();
  }

  drawButton() {
    fill(this.button, icon(this.frame ? "pause" : "play"), this.frame ? "Pause" : "Play");
  }

  seek(at) {
    this.at = Math.min(this.length, Math.max(0, at));
    this.range.value = String(this.at);
    const words = `${duration(this.at)} of ${duration(this.length)}`;
    this.range.setAttribute("aria-valuetext", words);
    put(this.where, words);
    this.head?.setAttribute("transform", `translate(${(this.at / this.length) * WIDTH} 0)`);
    const shown = this.times.findLastIndex((time) => time <= this.at + 1e-6);
    if (shown === this.shown) return;
    if (shown > this.shown && shown - this.shown < 50)
      for (let n = this.shown + 1; n <= shown; n++) this.timeline.add(this.entries[n]);
    else this.timeline.reset(this.entries.slice(0, shown + 1));
    this.shown = shown;
    this.drawState(this.entries.slice(0, shown + 1));
  }

  // ---- what is drawn

  drawLanes() {
    const used = LANES.filter((role) => this.entries.some((e) => (e.role || "owner") === role));
    const height = used.length * LANE;
    const x = (seconds) => (seconds / this.length) * WIDTH;
    const marks = this.entries.flatMap((entry, n) => {
      const lane = used.indexOf(entry.role || "owner");
      if (lane < 0) return [];
      const took = Math.min(entry.seconds ?? 0, this.times[n]);
      const width = Math.max(3, x(took));
      return [
        s("rect", {
          x: Math.max(0, x(this.times[n]) - width),
          y: lane * LANE + 6,
          width,
          height: LANE - 12,
          rx: 2,
          class: `lane-mark r-${entry.role || "owner"}`,
        }),
      ];
    });
    this.head = s(
      "g",
      { class: "playhead" },
      s("line", { x1: 0, x2: 0, y1: 0, y2: height, "vector-effect": "non-scaling-stroke" }),
    );
    const svg = s(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${height}`,
        preserveAspectRatio: "none",
        class: "lane-chart",
        role: "img",
        "aria-label": `When each agent answered, over ${duration(this.length)}`,
      },
      used.map((_, n) =>
        s("line", { x1: 0, x2: WIDTH, y1: n * LANE + LANE / 2, y2: n * LANE + LANE / 2, class: "lane-rail" }),
      ),
      marks,
      this.head,
    );
    svg.style.height = `${height}px`;
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      this.pause();
      this.seek(((event.clientX - box.left) / box.width) * this.length);
    });
    fill(
      this.lanes,
      h(
        "ul.plain.lane-names",
        { "aria-hidden": "true" },
        used.map((role) => h(`li.r-${role}`, {}, icon(role), h("span", {}, ROLES[role]))),
      ),
      svg,
    );
  }

  drawState(entries) {
    const last = entries.at(-1);
    put(this.now, last ? last.text : "");
    const sum = (of) => entries.reduce((total, entry) => total + (of(entry) ?? 0), 0);
    drawFigures(this.facts, [
      figure("events", "Events", entries.length, null, whole),
      figure(
        "tokens",
        "Tokens",
        sum((e) => e.tokens),
        null,
        short,
      ),
      figure(
        "cost",
        "Cost",
        sum((e) => e.cost),
        null,
        money,
      ),
      figure("searches", "Searches", entries.filter((e) => e.kind === "search_done").length, null, whole),
      figure(
        "sources",
        "Sources read",
        entries.filter((e) => e.kind === "source_read" && e.status !== "unavailable").length,
        null,
        whole,
      ),
    ]);
    const planned = entries.some((e) => e.kind === "plan_ready");
    const count = (id, kind) => entries.filter((e) => e.section === id && e.kind === kind).length;
    keyed(
      this.rows,
      planned ? this.session.sections : [],
      (section) => section.id,
      (section) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, h("bdi", {}, section.title)),
          ["search_done", "source_read", "draft_ready", "draft_grounded"].map((kind) =>
            h("td.number", { data: { of: kind } }),
          ),
        ),
      (node, section) => {
        for (const cell of node.querySelectorAll("[data-of]")) put(cell, whole(count(section.id, cell.dataset.of)));
      },
    );
  }
}
