// Who does what now: a card for each agent, with what it has in hand and since when.

import { h, icon, keyed, put } from "../dom.js";
import { duration, isOver, ROLES } from "../format.js";

const AT_WORK = ["planner", "researcher", "analyst", "synthesizer", "critic", "formatter"];
const KIND_WORDS = {
  search: "searches",
  read: "reads",
  draft: "writes",
  ground: "checks",
  plan: "plans",
  analyse: "compares the evidence",
  review: "reviews the draft",
  summarise: "writes the summary",
  format: "makes the report",
};

function resting(session) {
  if (isOver(session.status)) return "done";
  if (session.status === "paused") return "paused";
  return session.position ? "waits for its place" : "idle";
}

export class Team {
  constructor() {
    this.node = h("ul.plain.team");
    this.since = new Map(); // task to the moment it began, on this machine's clock
  }

  tick() {
    for (const task of this.session?.running ?? []) this.showSince(task);
  }

  draw(session) {
    this.session = session;
    const now = performance.now() / 1000;
    for (const task of session.running) this.since.set(task.id, now - task.since);
    const roles = AT_WORK.map((role) => ({ role, tasks: session.running.filter((task) => task.role === role) }));
    keyed(
      this.node,
      roles,
      (r) => r.role,
      ({ role }) =>
        h(
          `li.agent.r-${role}`,
          {},
          h(".agent-head", {}, icon(role), h("span.agent-name", {}, ROLES[role]), h("span.agent-state")),
          h("ul.plain.tasks"),
        ),
      (node, { role, tasks }) => {
        node.dataset.busy = tasks.length ? "yes" : "";
        put(
          node.querySelector(".agent-state"),
          tasks.length ? (tasks.length > 1 ? `${tasks.length} at once` : "at work") : resting(session),
        );
        const list = node.querySelector(".tasks");
        const shown = tasks.length > 4 ? tasks.slice(0, 3) : tasks;
        const more = tasks.length > 4 ? [{ id: "more", more: tasks.length - 3 }] : [];
        keyed(
          list,
          [...shown, ...more],
          (t) => t.id,
          (t) => this.task(t),
          (item, t) => t.more && put(item, `and ${t.more} more`),
        );
        for (const task of shown) this.showSince(task);
      },
    );
  }

  task(task) {
    if (task.more) return h("li.task.hint");
    const title = this.titleOf(task.section);
    return h(
      "li.task",
      { data: { task: task.id } },
      h("span.task-kind", {}, KIND_WORDS[task.kind] ?? task.kind),
      h("bdi.task-target", { title: task.target || title }, task.target || title),
      h("time"),
      task.target && title && h("bdi.task-where", {}, `for ${title}`),
    );
  }

  showSince(task) {
    const at = this.node.querySelector(`[data-task="${CSS.escape(task.id)}"] time`);
    if (at) put(at, duration(Math.floor(performance.now() / 1000 - this.since.get(task.id))));
  }

  titleOf(section) {
    const words = { scout: "first look", summary: "summary" };
    return words[section] ?? this.session.sections.find((s) => s.id === section)?.title ?? section;
  }
}
