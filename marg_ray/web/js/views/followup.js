// Questions about a finished report, answered from its evidence alone.

import { run as runUrl, send } from "../api.js";
import { fill, h, say } from "../dom.js";
import { problemIn } from "../parts.js";
import { parse } from "../stream.js";

const REMEMBERED = 12; // turns that go along with a question

export class FollowUp {
  constructor(session, prose) {
    Object.assign(this, { session, prose, history: [], stopper: null });
    this.talk = h("ol.plain.talk", { "aria-label": "Questions and answers" });
    this.input = h("textarea", {
      rows: 1,
      dir: "auto",
      "aria-label": "Your question about this report",
      placeholder: "What does the report not say about costs?",
    });
    this.button = h("button.primary", { type: "submit" }, "Ask");
    this.form = h(
      "form.follow-form",
      { onsubmit: (event) => (event.preventDefault(), this.ask()) },
      this.input,
      this.button,
    );
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask();
    });
    this.node = h(
      "section.follow",
      { id: "ask", "aria-labelledby": "ask-title" },
      h("h2", { id: "ask-title" }, "Ask about this report"),
      h(
        "p.hint",
        {},
        "Answered from the report's evidence alone, with the passages cited; it says so where they do not answer.",
      ),
      this.talk,
      this.form,
    );
  }

  dispose() {
    this.stopper?.abort();
  }

  async ask() {
    const question = this.input.value.trim();
    if (!question || this.stopper) return this.input.focus();
    const answer = h("p.answer-text", { dir: "auto" }, h("span.thinking", {}, "Looking through the evidence…"));
    const failed = h("div", { hidden: true });
    const turn = h("li.turn", {}, h("p.asked", { dir: "auto" }, question), h(".answer", {}, answer, failed));
    this.talk.append(turn);
    this.input.value = "";
    this.stopper = new AbortController();
    this.button.disabled = true;
    try {
      const sentences = await this.answered(question, (so) => fill(answer, this.prose.runs(so)));
      if (!sentences.length) fill(answer, "The evidence of this report does not answer this.");
      const text = sentences.map((s) => s.text).join(" ");
      this.history.push({ role: "user", text: question }, { role: "assistant", text });
      say(`Answer: ${text}`.slice(0, 400));
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(answer);
      problemIn(failed, error);
      this.input.value ||= question;
    } finally {
      this.stopper = null;
      this.button.disabled = false;
    }
    turn.scrollIntoView({ block: "nearest" });
  }

  /** The answer's sentences; `shown` is called with those that are there as they come. */
  async answered(question, shown) {
    const body = { question, history: this.history.slice(-REMEMBERED), stream: true };
    const response = await send("POST", runUrl(this.session, "/questions"), {
      body,
      headers: { Accept: "text/event-stream" },
      signal: this.stopper.signal,
    });
    if (!(response.headers.get("Content-Type") ?? "").includes("event-stream")) {
      const { sentences } = await response.json();
      shown(sentences);
      return sentences;
    }
    const sentences = [];
    for await (const { event, data } of parse(response.body)) {
      if (event === "sentence") {
        sentences.push(JSON.parse(data));
        shown(sentences);
      } else if (event === "end") {
        const whole = JSON.parse(data);
        if (whole.sentences) shown(whole.sentences);
        return whole.sentences ?? sentences;
      } else if (event === "error" || event === "problem")
        throw Object.assign(new Error(JSON.parse(data).detail), JSON.parse(data));
    }
    return sentences;
  }
}
