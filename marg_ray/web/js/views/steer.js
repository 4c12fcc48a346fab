// Steering: a question more, a page to read, a source not to use, more to spend.

import { h, say } from "../dom.js";
import { clearWrong, field, markWrong, problemIn, select } from "../parts.js";

const ACTIONS = [
  ["add", "Ask one thing more"],
  ["pin", "Read this page"],
  ["ban", "Do not use a source"],
  ["raise", "Raise the limits"],
];

export function steerForm(run, close) {
  const { sections, limits } = run.session;
  const c = {
    query: h("textarea", { rows: 2, dir: "auto" }),
    section: select([["", "as a section of its own"], ...sections.map((s) => [s.id, s.title])], ""),
    url: h("input", { type: "url", placeholder: "https://…", dir: "ltr" }),
    location: h("input", { type: "text", placeholder: "example.com, or a whole address", dir: "ltr" }),
    pinSection: select([["", "for all sections"], ...sections.map((s) => [s.id, s.title])], ""),
    tokens: h("input", { type: "number", min: 0, step: 1000, placeholder: limits.tokens ?? "no limit" }),
    cost: h("input", { type: "number", min: 0, step: 0.05, placeholder: limits.cost ?? "no limit" }),
    minutes: h("input", {
      type: "number",
      min: 0.5,
      step: 0.5,
      placeholder: limits.seconds ? limits.seconds / 60 : "no limit",
    }),
  };
  const parts = {
    add: [field("Question", c.query, { name: "query" }), field("Where", c.section, { name: "section" })],
    pin: [field("Address of the page", c.url, { name: "url" }), field("Where", c.pinSection)],
    ban: [
      field("Site, page or file", c.location, {
        name: "location",
        hint: "What it said is taken out of the draft as well.",
      }),
    ],
    raise: [
      h(
        ".triple",
        {},
        field("Tokens", c.tokens, { name: "limits.tokens" }),
        field("US $", c.cost, { name: "limits.cost" }),
        field("Minutes of work", c.minutes, { name: "limits.seconds" }),
      ),
      h("p.hint", {}, "The new limits in all. What stopped for want of budget is taken up again."),
    ],
  };
  const place = h(".steer-fields");
  const failed = h("div", { hidden: true });
  let action = "add";
  const show = (name) => {
    action = name;
    place.replaceChildren(...parts[name]);
  };
  show("add");
  const form = h(
    "form.steer",
    { novalidate: true, onsubmit: (event) => (event.preventDefault(), send()) },
    h(
      "fieldset.segments",
      {},
      h("legend.hidden-text", {}, "What"),
      ACTIONS.map(([name, label]) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "steer",
            value: name,
            checked: name === "add",
            onchange: () => show(name),
          }),
          h("span", {}, label),
        ),
      ),
    ),
    place,
    failed,
    h(
      ".actions",
      {},
      h("button.primary", { type: "submit" }, "Do it"),
      h("button.quiet", { type: "button", onclick: close }, "Never mind"),
    ),
  );

  async function send() {
    clearWrong(form);
    const body = bodyOf(action, c);
    if (typeof body === "string") return markWrong(form, body, "This is missing.");
    try {
      await run.send("/steer", body);
      say("Done. The agents take it up.");
      close();
    } catch (error) {
      for (const { field: at, problem } of error.fields ?? []) markWrong(form, at.replace(/^body\./, ""), problem);
      problemIn(failed, error);
    }
  }
  return form;
}

/** The body, or the name of the field that is missing. */
function bodyOf(action, c) {
  switch (action) {
    case "add":
      return c.query.value.trim() ? { action, query: c.query.value.trim(), section: c.section.value } : "query";
    case "pin":
      return c.url.value.trim() ? { action, url: c.url.value.trim(), section: c.pinSection.value } : "url";
    case "ban":
      return c.location.value.trim() ? { action, location: c.location.value.trim() } : "location";
    default: {
      const limits = {};
      if (c.tokens.value) limits.tokens = Number(c.tokens.value);
      if (c.cost.value) limits.cost = Number(c.cost.value);
      if (c.minutes.value) limits.seconds = Number(c.minutes.value) * 60;
      return Object.keys(limits).length ? { action, limits } : "limits.tokens";
    }
  }
}
