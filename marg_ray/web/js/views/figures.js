// A run's figures, each against its limit where it has one.

import { fill, h, keyed, put } from "../dom.js";
import { duration, isOver, money, short, whole } from "../format.js";
import { meter } from "../parts.js";

const BY_OWNER = new Set(["plan_edited", "plan_decided", "review_decided", "session_resumed"]);

/** Seconds of work so far: waiting for its owner does not count. */
export function worked(entries, session, now = Date.now()) {
  let total = 0;
  for (let n = 1; n < entries.length; n++)
    if (!BY_OWNER.has(entries[n].kind)) total += Date.parse(entries[n].at) - Date.parse(entries[n - 1].at);
  const idle = isOver(session.status) || session.waiting_for || session.status === "paused" || session.position;
  if (entries.length && !idle) total += Math.max(0, now - Date.parse(entries.at(-1).at));
  return total / 1000;
}

/** What a run has spent: [{name, label, text, share, limit}]; `seconds` of work. */
export function runFigures({ spent, limits }, seconds) {
  const tokens = spent.tokens_in + spent.tokens_out;
  return [
    figure("time", "Time at work", seconds, limits.seconds, duration),
    figure("tokens", "Tokens", tokens, limits.tokens, short),
    figure("cost", "Cost", spent.cost, limits.cost, money),
    figure("searches", "Searches", spent.searches, limits.searches, whole),
    figure("fetches", "Pages read", spent.fetches, null, whole),
    figure("calls", "Model calls", spent.calls, null, whole),
  ];
}

export function figure(name, label, value, limit, words) {
  const limited = limit !== null && limit !== undefined;
  return {
    name,
    label,
    text: words(value),
    limit: limited ? words(limit) : "",
    share: limited ? value / (limit || 1) : 0,
  };
}

/** Draws figures into a `dl`, or brings those that are there up to date. */
export function drawFigures(list, figures) {
  keyed(
    list,
    figures,
    (item) => item.name,
    (item) => h(".fact", {}, h("dt", {}, item.label), h("dd", {}, h("span.fact-value"), h("span.fact-limit"))),
    (node, { label, text, limit, share }) => {
      put(node.querySelector(".fact-value"), text);
      const at = node.querySelector(".fact-limit");
      const shown = limit && `of ${limit}, ${Math.round(share * 100)}`;
      if (at.dataset.shown === shown) return;
      at.dataset.shown = shown;
      fill(
        at,
        limit && [`of ${limit}`, meter(share, `${label}: ${text} of ${limit}`, share > 0.85 ? "amber" : "accent")],
      );
    },
  );
}
