// Past runs: search, status, what became of them.

import { getJson } from "../api.js";
import { fill, h, keyed, put } from "../dom.js";
import { ago, count, isOver, moment, statusOf } from "../format.js";
import { runPath } from "../nav.js";
import { empty, failure, loading, pill, select } from "../parts.js";

const STATUS_FILTER = [
  ["", "Any status"],
  ["open", "Under way"],
  ["waiting", "Waits for you"],
  ["passed", "Passed"],
  ["quality_warning", "Quality warning"],
  ["insufficient_evidence", "Insufficient evidence"],
  ["budget_stopped", "Stopped by its budget"],
  ["halted", "Halted"],
  ["cancelled", "Cancelled"],
];
const MANY = 200;
const AGAIN_MS = 8000;

export async function runsView() {
  const query = h("input", {
    type: "search",
    placeholder: "Search the questions",
    "aria-label": "Search the questions",
    dir: "auto",
    oninput: () => draw(),
  });
  const status = select(STATUS_FILTER, "", { "aria-label": "Status", onchange: () => draw() });
  const told = h("p.hint", { role: "status" });
  const list = h("ul.plain.runs");
  const none = h("div");
  const box = h("div", {}, loading(5));
  const node = h(
    ".page.list",
    {},
    h(".page-head", {}, h("h1", {}, "Runs"), h(".filters", {}, query, status)),
    told,
    box,
  );
  let sessions = [];
  let timer = 0;

  function draw() {
    const words = query.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const shown = sessions.filter(
      (run) => fits(run, status.value) && words.every((word) => run.question.toLocaleLowerCase().includes(word)),
    );
    put(told, sessions.length === shown.length ? "" : `${count(shown.length, "run")} of ${sessions.length}`);
    keyed(list, shown, (run) => run.id, row, update);
    fill(
      none,
      !sessions.length
        ? empty("No runs yet", "What you ask appears here.", h("a.button.primary", { href: "/" }, "Ask a question"))
        : !shown.length && empty("Nothing fits", "No run has these words and this status."),
    );
  }

  async function load() {
    try {
      ({ sessions } = await getJson(`/v1/research?limit=${MANY}`));
      if (list.parentNode !== box) fill(box, list, none);
      draw();
      timer = sessions.some((run) => !isOver(run.status))
        ? setTimeout(load, document.hidden ? AGAIN_MS * 4 : AGAIN_MS)
        : 0;
    } catch (error) {
      if (sessions.length) timer = setTimeout(load, AGAIN_MS * 2);
      else fill(box, failure(error, { retry: load, lead: "The runs cannot be listed" }));
    }
  }
  load();
  return { title: "Runs", node, dispose: () => clearTimeout(timer) };
}

const fits = (run, status) => !status || (status === "open" ? !isOver(run.status) : run.status === status);

function row(run) {
  return h(
    "li",
    {},
    h(
      "a.row",
      { href: runPath(run.id) },
      h("span.row-title", { dir: "auto" }, run.question),
      h("span.row-status"),
      h("time", { datetime: run.created_at, title: moment(run.created_at) }),
    ),
  );
}

function update(node, run) {
  const at = node.querySelector(".row-status");
  if (at.dataset.status !== run.status) {
    at.dataset.status = run.status;
    fill(at, pill(run.status));
  }
  put(node.querySelector("time"), ago(run.created_at));
  node.dataset.tone = statusOf(run.status).tone;
}
