// What happened, newest first.

import { h, icon, put } from "../dom.js";
import { clock, ROLES, whole } from "../format.js";

const SHOWN = 150;

export class Timeline {
  constructor({ title = "What happened" } = {}) {
    this.entries = [];
    this.list = h("ol.plain.events", { reversed: true });
    this.count = h("span.hint");
    this.more = h("button.quiet.small", { type: "button", hidden: true, onclick: () => this.all() });
    this.node = h(
      "section.timeline",
      { "aria-labelledby": "timeline-title" },
      h("h2", { id: "timeline-title" }, title, " ", this.count),
      h(".events-box", { tabIndex: 0, role: "group", "aria-label": title }, this.list, this.more),
    );
    this.limit = SHOWN;
  }

  add(entry) {
    this.entries.push(entry);
    this.list.prepend(this.item(entry));
    while (this.list.children.length > this.limit) this.list.lastElementChild.remove();
    this.tell();
  }

  tell() {
    put(this.count, this.entries.length ? whole(this.entries.length) : "");
    const hidden = this.entries.length - this.list.children.length;
    this.more.hidden = hidden <= 0;
    put(this.more, `Show ${whole(hidden)} earlier`);
  }

  all() {
    this.limit = Infinity;
    const missing = this.entries.slice(0, this.entries.length - this.list.children.length).reverse();
    this.list.append(...missing.map((entry) => this.item(entry)));
    this.tell();
    this.list.parentElement.focus();
  }

  /** Shows just these. */
  reset(entries) {
    this.entries = [...entries];
    this.list.replaceChildren(
      ...this.entries
        .slice(-this.limit)
        .reverse()
        .map((entry) => this.item(entry)),
    );
    this.tell();
  }

  item(entry) {
    const who = ROLES[entry.role] ?? entry.role;
    return h(
      `li.event.r-${entry.role || "clock"}`,
      { data: { seq: entry.seq, kind: entry.kind } },
      h("span.event-icon", { title: who }, icon(entry.role || "clock")),
      h(
        ".event-text",
        {},
        h("p", { dir: "auto" }, entry.text),
        h("p.event-meta", {}, who, " · ", h("time", { datetime: entry.at }, clock(entry.at))),
      ),
    );
  }
}
