// How a report was checked, what it cost, and what happened step by step.

import { h } from "../dom.js";
import { clock, count, duration, money, ROLES, VERDICTS, whole } from "../format.js";
import { issueItem, scores } from "./gates.js";

export function checkedSection(view) {
  const { report } = view;
  const titles = new Map(report.sections.map((s) => [s.id, s.title]));
  const section = view.part(
    "checks",
    "How this report was checked",
    { class: "checked" },
    report.verdict && h("p", { dir: "auto" }, report.verdict),
    report.scores && scores(report.scores),
    h(
      "ul.figures",
      {},
      figures(report).map((text) => h("li", {}, text)),
    ),
    report.issues.length
      ? h(
          "details",
          {},
          h("summary", {}, `${count(report.issues.length, "remark")} of the last review`),
          h(
            "ul.issues",
            {},
            report.issues.map((issue) => issueItem(issue, titles)),
          ),
        )
      : null,
    usage(report),
    report.trace.length
      ? h("details", {}, h("summary", {}, "What happened, step by step"), h("ol.trace", {}, report.trace.map(traced)))
      : null,
    report.notes.length
      ? [
          h("h3", {}, "Notes"),
          h(
            "ul",
            {},
            report.notes.map((note) =>
              h(
                "li",
                { dir: "auto" },
                titles.has(note.section) && h("em", {}, `${titles.get(note.section)}: `),
                note.text,
              ),
            ),
          ),
        ]
      : null,
  );
  return section;
}

function figures(report) {
  const { usage: spent } = report;
  const sentences = report.sections.flatMap((s) => s.sentences);
  const named = Object.entries(VERDICTS).map(([name, { label }]) => [
    sentences.filter((s) => s.verdict === name).length,
    label.toLowerCase(),
  ]);
  const calls = [
    count(spent.calls, "model call"),
    (spent.tokens_in || spent.tokens_out) && `${whole(spent.tokens_in)} tokens in, ${whole(spent.tokens_out)} out`,
    spent.searches && count(spent.searches, "search", "searches"),
    spent.fetches && `${count(spent.fetches, "page")} fetched`,
    spent.reused && `${count(spent.reused, "call")} reused`,
    money(spent.cost),
  ];
  return [
    [
      `${count(sentences.length, "sentence")}: `,
      named
        .filter(([n]) => n)
        .map(([n, label]) => `${n} ${label}`)
        .join(", ") || "nothing to check",
    ],
    `${count(report.iterations, "round")} of review`,
    calls.filter(Boolean).join(", "),
    [
      "Written by ",
      h("code", {}, report.model),
      ` in ${duration(report.usage.wall_seconds)}, run `,
      h("code", {}, report.session_id),
    ],
  ];
}

function usage(report) {
  const roles = Object.entries(report.usage.by_role ?? {});
  if (!roles.length) return null;
  const heads = ["Agent", "Calls", "Tokens in", "Tokens out", "Seconds", "Cost"];
  const row = ([role, u]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ROLES[role] ?? role),
      [whole(u.calls), whole(u.tokens_in), whole(u.tokens_out), u.seconds.toFixed(1), money(u.cost)].map((cell) =>
        h("td.number", {}, cell),
      ),
    );
  return h(
    "details",
    {},
    h("summary", {}, "Usage by agent"),
    h(
      ".table-box",
      { tabIndex: 0, role: "group", "aria-label": "Usage by agent" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map((label, n) => h("th", { scope: "col", class: n ? "number" : "" }, label)),
          ),
        ),
        h("tbody", {}, roles.map(row)),
      ),
    ),
  );
}

const traced = (t) =>
  h(
    "li",
    { value: t.seq },
    t.at && h("time", { datetime: t.at }, `${clock(t.at)} `),
    h("b", {}, `${ROLES[t.role] ?? t.role} `),
    h("span", { dir: "auto" }, t.text || t.task),
  );
