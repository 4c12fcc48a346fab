// Pieces that several views share: status pills, failures, dialogs, fields, menus.

import { h, icon, set, unique } from "./dom.js";
import { ROLES, statusOf, verdictOf } from "./format.js";

export function pill(status, text = "") {
  const { label, tone, sign } = statusOf(status);
  return h(`span.pill.t-${tone}`, { data: { status } }, h("span.sign", { "aria-hidden": "true" }, sign), text || label);
}

export function verdictBadge(verdict) {
  const { label, sign, text } = verdictOf(verdict);
  return h(`span.badge.v-${verdict}`, { title: text }, h("span.sign", { "aria-hidden": "true" }, sign), label);
}

export const roleMark = (role) => h(`span.role.r-${role}`, {}, icon(role), h("span", {}, ROLES[role] ?? role));

/** A failed call in words: what happened, what to do, and a button that tries again. */
export function failure(error, { retry, lead = "" } = {}) {
  const nothing = error.status === 404;
  const told = nothing
    ? h("p", {}, "There is nothing at this address, or it belongs to somebody else.")
    : h(
        ".problem",
        { role: "alert" },
        h("p", { dir: "auto" }, error.message),
        error.hint && h("p.hint", { dir: "auto" }, error.hint),
      );
  return h(
    ".page.narrow",
    {},
    h("h1", {}, lead || (nothing ? "Not found" : error.status === 0 ? "No answer" : "That did not work")),
    told,
    h(
      ".actions",
      {},
      retry && !nothing && h("button", { type: "button", onclick: retry }, "Try again"),
      nothing && h("a.button", { href: "/runs" }, "Your runs"),
      h("a.button.quiet", { href: "/" }, "Ask a question"),
    ),
  );
}

/** The same in one place of a view; `at` is filled, or emptied without an error. */
export function problemIn(at, error) {
  at.replaceChildren();
  at.hidden = !error;
  if (!error) return;
  at.append(
    h(
      ".problem",
      { role: "alert" },
      h("p", { dir: "auto" }, error.message),
      error.hint && h("p.hint", { dir: "auto" }, error.hint),
    ),
  );
}

/** A label, its control, a hint, and a place for what is wrong with it. `name`: as the server calls the field. */
export function field(label, control, { hint = "", name = "" } = {}) {
  const id = control.id || (control.id = unique("field"));
  const hinted = hint && h("p.hint", { id: `${id}-hint` }, hint);
  const wrong = h("p.wrong", { id: `${id}-wrong`, hidden: true, role: "alert" });
  set(control, {
    "aria-describedby": [hinted && `${id}-hint`, `${id}-wrong`].filter(Boolean).join(" "),
    data: { field: name },
  });
  return h(".field", { data: { field: name } }, h("label", { for: id }, label), control, hinted, wrong);
}

/** Shows a field's fault beside it; returns whether the form has such a field. */
export function markWrong(form, name, text) {
  const control = form.querySelector(`[data-field="${CSS.escape(name)}"]:is(input, textarea, select)`);
  if (!control) return false;
  const wrong = document.getElementById(`${control.id}-wrong`);
  control.setAttribute("aria-invalid", "true");
  wrong.hidden = false;
  wrong.textContent = text;
  control.closest("details")?.setAttribute("open", "");
  return true;
}

export function clearWrong(form) {
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  for (const wrong of form.querySelectorAll(".wrong")) [wrong.hidden, wrong.textContent] = [true, ""];
}

export function check(label, props, hint = "") {
  const id = unique("check");
  return h(
    "label.check",
    { for: id },
    h("input", { type: "checkbox", id, ...props }),
    h("span", {}, label, hint && h("small", {}, hint)),
  );
}

export function select(options, value, props = {}) {
  return h(
    "select",
    props,
    options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)),
  );
}

/** A modal dialog; returns a function that closes it with a result. Focus goes back to where it was. */
export function dialog(title, content, { closed = () => {}, wide = false } = {}) {
  const id = unique("dialog");
  const back = document.activeElement;
  let result;
  const box = h(
    "dialog.dialog",
    { "aria-labelledby": id, class: wide ? "wide" : "" },
    h(
      ".dialog-head",
      {},
      h("h2", { id }, title),
      h("button.quiet.round", { type: "button", "aria-label": "Close", onclick: () => box.close() }, icon("close")),
    ),
    h(".dialog-body", {}, content),
  );
  box.addEventListener("close", () => {
    box.remove();
    back?.isConnected && back.focus();
    closed(result);
  });
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return (value) => {
    result = value;
    box.close();
  };
}

/** Asks yes or no; resolves to whether it was yes. */
export function confirmed(title, text, yes, { danger = false } = {}) {
  return new Promise((resolve) => {
    const button = h(
      "button",
      { type: "button", class: danger ? "danger" : "primary", onclick: () => close(true) },
      yes,
    );
    const close = dialog(
      title,
      [
        h("p", { dir: "auto" }, text),
        h(".actions", {}, button, h("button.quiet", { type: "button", onclick: () => close(false) }, "Keep it")),
      ],
      {
        closed: (result) => resolve(Boolean(result)),
      },
    );
    button.focus();
  });
}

/** A button that opens a list of actions. `items`: [label, act, hint]. Arrow keys, Escape and a click elsewhere work. */
export function menu(label, sign, items) {
  const id = unique("menu");
  const list = h(".menu-list", { id, role: "menu", hidden: true, "aria-label": label });
  const button = h(
    "button",
    {
      type: "button",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-controls": id,
      onclick: () => toggle(list.hidden),
    },
    icon(sign),
    label,
  );
  const entries = items.map(([text, act, hint]) =>
    h(
      "button",
      { type: "button", role: "menuitem", tabIndex: -1, onclick: () => (toggle(false, true), act()) },
      h("span", {}, text),
      hint && h("small", {}, hint),
    ),
  );
  list.append(...entries);
  const box = h(".menu", {}, button, list);
  const elsewhere = (event) => box.contains(event.target) || toggle(false);
  function toggle(open, refocus = false) {
    list.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    document[open ? "addEventListener" : "removeEventListener"]("pointerdown", elsewhere);
    if (open) entries[0].focus();
    else if (refocus) button.focus();
  }
  box.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const at = entries.indexOf(document.activeElement);
    const next = {
      ArrowDown: (at + 1) % entries.length,
      ArrowUp: (at - 1 + entries.length) % entries.length,
      Home: 0,
      End: entries.length - 1,
    }[event.key];
    if (next !== undefined) entries[next].focus();
    else if (event.key === "Escape") toggle(false, true);
    else if (event.key === "Tab") return toggle(false);
    else return;
    event.preventDefault();
  });
  return box;
}

/** A share as a bar, with its words for those who do not see it. */
export function meter(share, label, tone = "accent") {
  const value = Math.min(1, Math.max(0, share));
  return h(
    `span.meter.t-${tone}`,
    { role: "img", "aria-label": label },
    h("span", { vars: { "--share": String(value) } }),
  );
}

/** Where nothing is yet. */
export const empty = (title, text, ...more) => h(".empty", {}, h("p.empty-title", {}, title), h("p", {}, text), more);

/** Grey lines where text is on its way; shown after a moment only, so that what is quick does not flicker. */
export const loading = (lines = 3, label = "Loading") =>
  h(
    ".loading",
    { role: "status" },
    h("span.hidden-text", {}, label),
    Array.from({ length: lines }, () => h("span.bone", { "aria-hidden": "true" })),
  );

export const notice = (tone, ...children) => h(`.notice.t-${tone}`, {}, children);
