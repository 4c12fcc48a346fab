// The API key: asked for where the server wants one, kept for this tab only.

import { key } from "./api.js";
import { h } from "./dom.js";
import { dialog } from "./parts.js";

/** Resolves to true when a key was entered. `refused`: the one at hand was not taken. */
export function askForKey(refused) {
  return new Promise((resolve) => {
    const input = h("input", {
      id: "key-input",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      required: true,
      "aria-describedby": "key-hint",
    });
    const form = h(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          key.set(input.value.trim());
          close(true);
        },
      },
      refused && h("p.problem", { role: "alert" }, "This key was not accepted."),
      h("label", { for: "key-input" }, "Key"),
      input,
      h(
        "p.hint",
        { id: "key-hint" },
        "Kept in this tab until it is closed, and sent to this server alone. ",
        h("code", {}, "marg keys add"),
        " makes one.",
      ),
      h(
        ".actions",
        {},
        h("button.primary", { type: "submit" }, "Use this key"),
        key.get() && h("button", { type: "button", onclick: () => (key.set(""), close(true)) }, "Forget it"),
        h("button.quiet", { type: "button", onclick: () => close(false) }, "Not now"),
      ),
    );
    const close = dialog("API key", form, { closed: (result) => resolve(Boolean(result)) });
    input.focus();
  });
}
