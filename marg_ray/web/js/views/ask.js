// Ask a question: what, how deep, where to look, what it may cost, and what waits for you.

import { getJson, postJson, token } from "../api.js";
import { h, say, set, unique } from "../dom.js";
import { ago, moment } from "../format.js";
import { go, runPath } from "../nav.js";
import { check, clearWrong, field, markWrong, pill, problemIn, select } from "../parts.js";

const DEPTHS = [
  ["overview", "Overview", "3 sections, some 700 words"],
  ["standard", "Standard", "5 or 6 sections, some 2,000 words"],
  ["deep", "Deep", "8 to 10 sections, 4,000 words"],
];
const GATES = [
  ["never", "deliver it at once"],
  ["auto", "ask me if a score is low"],
  ["always", "ask me every time"],
];
const CLASSES = [
  ["", "decide by the question"],
  ["full_research", "full research, reviewed"],
  ["quick_research", "quick: one round"],
  ["research_only", "collect passages, write nothing"],
  ["analyze_provided", "analyse the text below"],
  ["write_only", "write from the text below"],
];
const KEPT = "marg-ask";

export async function askView() {
  const form = askForm();
  const recent = h(
    "section.recent",
    { "aria-labelledby": "recent-title", hidden: true },
    h("h2", { id: "recent-title" }, "Recent runs"),
    h("ul.plain"),
  );
  const node = h(
    ".page.ask",
    {},
    h(
      "header.hero",
      {},
      h("h1", {}, "What do you want to know?"),
      h("p.lead", {}, "A report whose every sentence can be checked against the passage it rests on."),
    ),
    form.node,
    recent,
  );
  return { title: "Ask", node, focus: form.question, shown: () => (form.shown(), showRecent(recent)) };
}

async function showRecent(section) {
  try {
    const { sessions } = await getJson("/v1/research?limit=4");
    section.hidden = !sessions.length;
    section
      .querySelector("ul")
      .replaceChildren(
        ...sessions.map((run) =>
          h(
            "li",
            {},
            h(
              "a.row",
              { href: runPath(run.id) },
              h("span.row-title", { dir: "auto" }, run.question),
              pill(run.status),
              h("time", { datetime: run.created_at, title: moment(run.created_at) }, ago(run.created_at)),
            ),
          ),
        ),
      );
  } catch {
    section.hidden = true; // the list is a convenience here; its own view says what is wrong
  }
}

function askForm() {
  const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
  const c = controls(kept);
  const failed = h("div", { hidden: true });
  const submit = h("button.primary.large", { type: "submit" }, "Research this");
  const form = h(
    "form.ask-form",
    { novalidate: true, autocomplete: "off" },
    h(
      ".question-box",
      { data: { field: "question" } },
      h("label.hidden-text", { for: c.question.id }, "Question"),
      c.question,
      h("p.wrong", { id: `${c.question.id}-wrong`, hidden: true, role: "alert" }),
    ),
    depthChoice(c),
    h(
      ".choices",
      {},
      group("Look in", c.web.label, c.library.label, c.shared.label),
      group("Before it goes on", c.plan.label, c.gateLine),
      h("fieldset.choice", {}, h("legend", {}, "Spend at most"), h(".limits", {}, c.limits)),
    ),
    more(c),
    failed,
    h(
      ".submit",
      {},
      submit,
      h(
        "span.hint",
        {},
        h("kbd", {}, navigator.platform?.startsWith("Mac") ? "⌘" : "Ctrl"),
        " + ",
        h("kbd", {}, "Enter"),
      ),
    ),
  );
  const send = sender(form, c, failed, submit);
  form.addEventListener("submit", (event) => (event.preventDefault(), send()));
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
  });
  return { node: form, question: c.question, shown: () => (offered(c), grow(c.question)) };
}

function controls(kept) {
  const question = h("textarea.question", {
    id: unique("question"),
    rows: 2,
    dir: "auto",
    placeholder: "How well do tidal power plants work, and what do they do to fish?",
    data: { field: "question" },
    oninput: () => grow(question),
    required: true,
  });
  set(question, { "aria-describedby": `${question.id}-wrong`, autofocus: true });
  const box = (label, props, hint) => {
    const node = check(label, props, hint);
    return { label: node, input: node.querySelector("input") };
  };
  const gate = select(GATES, kept.gate ?? "never", {
    "aria-label": "When the draft is written",
    data: { field: "gate" },
  });
  const number = (name, unit, step, hint) => {
    const id = unique("limit");
    const input = h("input", {
      id,
      type: "number",
      min: name === "seconds" ? "0.5" : "0",
      step,
      inputmode: "decimal",
      placeholder: "–",
      "aria-describedby": `${id}-wrong`,
      data: { field: `limits.${name}` },
    });
    return h(
      ".limit",
      { data: { name } },
      h("label", { for: id }, unit, hint && h("span.hidden-text", {}, ` ${hint}`)),
      input,
      h("p.wrong", { id: `${id}-wrong`, hidden: true, role: "alert" }),
    );
  };
  return {
    question,
    depth: kept.depth ?? "standard",
    web: box("The web", { checked: kept.web ?? true }),
    library: box("My library", { checked: kept.library ?? false }),
    shared: box("Shared documents", { checked: kept.shared ?? true }),
    plan: box("Let me approve the plan", { checked: kept.plan ?? false }),
    gate,
    gateLine: h("label.inline", {}, h("span", {}, "The draft:"), gate),
    limits: [
      number("tokens", "tokens", "1000"),
      number("cost", "US $", "0.05", "of models"),
      number("seconds", "minutes", "0.5", "of work"),
    ],
    kind: select(CLASSES, "", { data: { field: "request_class" } }),
    outline: h("textarea", {
      rows: 4,
      dir: "auto",
      placeholder: "Fish\n- How do turbines harm fish?\nSilt",
      data: { field: "outline" },
    }),
    focus: h("textarea", { rows: 2, dir: "auto", placeholder: "one a line" }),
    text: h("textarea", { rows: 4, dir: "auto", placeholder: "Paste a text that is to be analysed, or written from" }),
    language: h("input", {
      type: "text",
      maxlength: 2,
      size: 4,
      placeholder: "as asked",
      spellcheck: "false",
      autocapitalize: "none",
    }),
    rounds: select(
      [
        ["1", "1"],
        ["2", "2"],
        ["3", "3"],
      ],
      "3",
    ),
    onTimeout: select(
      [
        ["approve", "go on"],
        ["cancel", "end the run"],
        ["wait", "keep waiting"],
      ],
      kept.onTimeout ?? "approve",
    ),
    timeout: h("input", { type: "number", min: "1", step: "1", value: kept.timeout ?? "5" }),
    strict: box("Rather no report than one with a warning", {}),
    fresh: box("Research anew, even if this was asked before", {}),
  };
}

function depthChoice(c) {
  const name = unique("depth");
  return h(
    "fieldset.depths",
    {},
    h("legend", {}, "How deep"),
    DEPTHS.map(([value, label, hint]) =>
      h(
        "label.depth",
        {},
        h("input", { type: "radio", name, value, checked: value === c.depth, onchange: () => (c.depth = value) }),
        h("span.depth-name", {}, label),
        h("small", {}, hint),
      ),
    ),
  );
}

const group = (legend, ...children) => h("fieldset.choice", {}, h("legend", {}, legend), children);

function more(c) {
  return h(
    "details.more",
    {},
    h("summary", {}, "More: outline, focus, texts, rounds"),
    h(
      ".more-grid",
      {},
      field("Your own sections", c.outline, {
        name: "outline",
        hint: "One a line; lines that begin with “-” are the questions of the section above.",
      }),
      field("Look at in particular", c.focus, { name: "focus_areas" }),
      field("Text at hand", c.text, { name: "text" }),
      h(
        ".more-side",
        {},
        field("Kind of work", c.kind, { name: "request_class" }),
        h(
          ".pair",
          {},
          field("Language", c.language, { name: "language", hint: "two letters" }),
          field("Rounds of review", c.rounds, { name: "max_iterations" }),
        ),
        h(
          ".pair",
          {},
          field("If I do not decide", c.onTimeout, { name: "on_timeout" }),
          field("Minutes to decide", c.timeout, { name: "gate_timeout_s" }),
        ),
        c.strict.label,
        c.fresh.label,
      ),
    ),
  );
}

/** Hides what this server has none of. */
async function offered(c) {
  try {
    const ready = await getJson("/ready");
    c.shared.label.hidden = !ready.shared;
  } catch {
    // not ready: asking says so
  }
}

function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, 420)}px`;
}

// ---- what is sent

const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** Sections and their questions from lines of text. */
export function outlineOf(text) {
  const outline = [];
  for (const line of lines(text)) {
    const query = /^[-*•]\s*(.+)$/.exec(line)?.[1];
    if (query && outline.length) outline.at(-1).queries.push(query);
    else outline.push({ title: query ?? line, queries: [] });
  }
  return outline;
}

function bodyOf(c) {
  const limits = {};
  for (const part of c.limits) {
    const value = part.querySelector("input").value;
    if (value !== "") limits[part.dataset.name] = part.dataset.name === "seconds" ? Number(value) * 60 : Number(value);
  }
  const body = {
    question: c.question.value.trim(),
    depth: c.depth,
    sources: {
      web: c.web.input.checked,
      library: c.library.input.checked,
      shared: c.shared.input.checked && !c.shared.label.hidden,
    },
    gate: c.gate.value,
    approve_plan: c.plan.input.checked,
    on_timeout: c.onTimeout.value,
    gate_timeout_s: Math.max(1, Number(c.timeout.value) || 5) * 60,
    max_iterations: Number(c.rounds.value),
    strict: c.strict.input.checked,
    fresh: c.fresh.input.checked,
    limits,
    outline: outlineOf(c.outline.value),
    focus_areas: lines(c.focus.value),
    text: c.text.value.trim() ? [c.text.value] : [],
  };
  if (c.kind.value) body.request_class = c.kind.value;
  if (c.language.value.trim()) body.language = c.language.value.trim().toLowerCase();
  return body;
}

function sender(form, c, failed, submit) {
  let [sent, name] = ["", ""];
  return async () => {
    if (submit.disabled) return;
    clearWrong(form);
    problemIn(failed, null);
    const body = bodyOf(c);
    if (!body.question) return wrong(form, "question", "Ask something first.");
    const text = JSON.stringify(body);
    if (text !== sent) [sent, name] = [text, token()]; // the same once more is the same request
    keep(body, c);
    submit.disabled = true;
    submit.replaceChildren("Handing it over…");
    try {
      const made = await postJson("/v1/research", body, { headers: { "Idempotency-Key": name } });
      say(made.cached ? "This was answered before." : "The agents begin.");
      go(`${runPath(made.id)}${made.cached ? "?known" : ""}`);
    } catch (error) {
      const shown = (error.fields ?? []).filter(({ field: at, problem }) => wrong(form, fieldName(at), problem, true));
      problemIn(failed, error);
      if (shown.length) form.querySelector("[aria-invalid]")?.focus();
    } finally {
      submit.disabled = false;
      submit.replaceChildren("Research this");
    }
  };
}

/** "body.outline.0.title" is shown beside "outline", "body.limits.cost" beside its own. */
function fieldName(at) {
  const parts = at.split(".").filter((part) => part !== "body");
  return parts[0] === "limits" ? parts.slice(0, 2).join(".") : parts[0];
}

function wrong(form, name, text, later = false) {
  const found = markWrong(form, name, text);
  if (found && !later) form.querySelector("[aria-invalid]").focus();
  return found;
}

function keep(body, c) {
  const kept = {
    depth: body.depth,
    web: body.sources.web,
    library: body.sources.library,
    shared: c.shared.input.checked,
    plan: body.approve_plan,
    gate: body.gate,
    onTimeout: body.on_timeout,
    timeout: c.timeout.value,
  };
  localStorage.setItem(KEPT, JSON.stringify(kept));
}
