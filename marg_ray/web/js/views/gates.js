// What waits for you: the plan before research begins, the draft before it is delivered.

import { fill, h, icon, say, unique } from "../dom.js";
import { meter, problemIn } from "../parts.js";
import { draftPreview } from "./draft.js";

const SCORES = { accuracy: 0.8, coverage: 0.75, clarity: 0.7, objectivity: 0.75 };

function gate(title, lead, ...children) {
  const id = unique("gate");
  return h(
    "section.gate",
    { "aria-labelledby": id },
    h("h2", { id, tabIndex: -1 }, icon("owner"), title),
    h("p.hint", {}, lead),
    children,
  );
}

/** Sends a decision; one that came too late is told in words. */
async function decide(run, body, failed, box) {
  const buttons = [...box.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await run.send("/decision", body);
    problemIn(failed, null);
    say("Decided. The agents go on.");
    fill(box, h("p.hint", {}, "Decided. The agents go on…"));
  } catch (error) {
    const late = error.status === 409;
    problemIn(
      failed,
      late
        ? { message: `Too late: ${error.message}.`.replace("..", "."), hint: "The board shows how it stands now." }
        : error,
    );
    for (const button of buttons) button.disabled = false;
  }
}

function timeout(session) {
  const { on_timeout: then, gate_timeout_s: seconds } = session.request ?? {};
  if (!then || then === "wait") return "It waits until you decide.";
  const minutes = Math.max(1, Math.round(seconds / 60));
  return `Without your word it ${then === "cancel" ? "is cancelled" : "goes on as if approved"} after ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`;
}

// ---- the plan

export function planGate(run, session) {
  const { plan } = session;
  const list = h("ol.plain.plan-editor");
  const failed = h("div", { hidden: true });
  const note = h("textarea", {
    rows: 2,
    dir: "auto",
    "aria-label": "What should be different?",
    placeholder: "What should be different?",
  });
  const refuse = h(
    ".reject",
    { hidden: true },
    note,
    h(
      "button.danger",
      { type: "button", onclick: () => say2(note) && act("reject", { note: note.value.trim() }) },
      "Send it back",
    ),
  );
  plan.sections.forEach((section) => list.append(item(list, section)));
  const first = JSON.stringify(outline(list));
  const act = (what, more = {}) => {
    const mine = outline(list);
    const changed = JSON.stringify(mine) !== first;
    if (what !== "reject" && mine.some((s) => !s.title))
      return problemIn(failed, { message: "Each section needs a title." });
    if (what === "edit" && !changed) return problemIn(failed, { message: "Nothing was changed." });
    return decide(
      run,
      { what, on: plan.revision, ...(what !== "reject" && changed ? { outline: mine } : {}), ...more },
      failed,
      box,
    );
  };
  const box = h(
    "div",
    {},
    list,
    h(
      "button.quiet",
      {
        type: "button",
        onclick: () =>
          list.append(item(list, { title: "", queries: [] })) && list.lastElementChild.querySelector("input").focus(),
      },
      icon("plus"),
      "Add a section",
    ),
    h(
      ".actions",
      {},
      h("button.primary", { type: "button", onclick: () => act("approve") }, icon("check"), "Approve"),
      h("button", { type: "button", onclick: () => act("edit") }, "Save the changes only"),
      h("button.quiet", { type: "button", onclick: () => ((refuse.hidden = false), note.focus()) }, "Reject…"),
    ),
    refuse,
  );
  return gate(
    "The plan waits for you",
    `Change titles, order and questions as you like. ${timeout(session)}`,
    failed,
    box,
  );
}

function say2(note) {
  if (note.value.trim()) return true;
  note.setAttribute("aria-invalid", "true");
  note.focus();
  return false;
}

const outline = (list) =>
  [...list.children].map((row) => ({
    title: row.querySelector("input").value.trim(),
    queries: row
      .querySelector("textarea")
      .value.split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  }));

function item(list, { title, queries }) {
  const names = () => row.querySelector("input").value || "this section";
  const move = (by) => {
    const other = by < 0 ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    other[by < 0 ? "before" : "after"](row);
    row.querySelector(by < 0 ? ".up" : ".down").focus();
    say(`${names()}: place ${[...list.children].indexOf(row) + 1} of ${list.children.length}`);
  };
  const remove = () => {
    const near = row.nextElementSibling ?? row.previousElementSibling;
    say(`${names()} removed`);
    row.remove();
    (near?.querySelector("input") ?? list.nextElementSibling)?.focus();
  };
  const row = h(
    "li.plan-item",
    {},
    h(
      ".plan-fields",
      {},
      h("input", { type: "text", value: title, dir: "auto", "aria-label": "Title of the section", maxlength: 200 }),
      h("textarea", {
        rows: Math.max(1, queries.length),
        dir: "auto",
        value: queries.join("\n"),
        "aria-label": "Questions, one a line",
        placeholder: "Questions, one a line",
      }),
    ),
    h(
      ".plan-tools",
      {},
      h(
        "button.quiet.round.up",
        { type: "button", "aria-label": "Move up", title: "Move up", onclick: () => move(-1) },
        icon("up"),
      ),
      h(
        "button.quiet.round.down",
        { type: "button", "aria-label": "Move down", title: "Move down", onclick: () => move(1) },
        icon("down"),
      ),
      h(
        "button.quiet.round",
        { type: "button", "aria-label": "Remove", title: "Remove", onclick: remove },
        icon("trash"),
      ),
    ),
  );
  return row;
}

// ---- the draft

export function reviewGate(run, session) {
  const { review } = session;
  const titles = new Map(session.sections.map((s) => [s.id, s.title]));
  const failed = h("div", { hidden: true });
  const note = h("textarea", {
    rows: 2,
    dir: "auto",
    "aria-label": "What should be different?",
    placeholder: "What should be different? The writer reads this.",
  });
  const refuse = h(
    ".reject",
    { hidden: true },
    note,
    h(
      "button.danger",
      { type: "button", onclick: () => say2(note) && act("reject", note.value.trim()) },
      "Send it back",
    ),
  );
  const act = (what, text = "") => decide(run, { what, on: review.round, note: text }, failed, box);
  const box = h(
    "div",
    {},
    h(
      ".actions",
      {},
      h("button.primary", { type: "button", onclick: () => act("approve") }, icon("check"), "Approve"),
      h("button", { type: "button", onclick: () => act("extend") }, "One more round"),
      h(
        "button.quiet",
        { type: "button", onclick: () => ((refuse.hidden = false), note.focus()) },
        "Reject with a note…",
      ),
    ),
    refuse,
  );
  return gate(
    "The draft waits for you",
    `The critic's verdict after round ${review.round}: ${review.verdict.replaceAll("_", " ").toLowerCase()}. ${timeout(session)}`,
    scores(review.scores),
    review.issues.length
      ? h(
          "ul.issues",
          {},
          review.issues.map((issue) => issueItem(issue, titles)),
        )
      : null,
    draftPreview(run),
    failed,
    box,
  );
}

/** The critic's four scores, each with the mark that it has to reach. */
export function scores(values) {
  return h(
    "dl.scores",
    {},
    Object.entries(SCORES).map(([name, least]) => {
      const value = values[name];
      const words = `${value.toFixed(2)}${value < least ? `, below ${least.toFixed(2)}` : ""}`;
      return h(
        "div",
        {},
        h("dt", {}, name),
        h("dd", {}, meter(value, `${name} ${words}`, value < least ? "amber" : "green"), h("span", {}, words)),
      );
    }),
  );
}

export function issueItem(issue, titles) {
  const where = titles.get(issue.section);
  return h(
    "li",
    {},
    h(
      "span.badge.severity",
      { data: { severity: issue.severity } },
      `${issue.kind.replaceAll("_", " ")}, ${issue.severity}`,
    ),
    " ",
    where && h("bdi.issue-where", {}, `${where}: `),
    h("span", { dir: "auto" }, issue.detail),
  );
}
