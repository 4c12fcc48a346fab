// Server-sent events over fetch: with a key in the header, and a reconnect that loses and doubles nothing.

import { pause, Problem, send } from "./api.js";

const WAITS = [0.4, 1, 2, 4, 8, 15]; // seconds before each new attempt
const SILENCE_S = 40; // the server gives a sign of life at least every 15

/** Reads `text/event-stream`; yields {id, event, data} with the data as text, and {event: ""} for a sign of life. */
export async function* parse(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, event, data, id] = ["", "", [], ""];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { id, event: event || "message", data: data.join("\n") };
          [event, data] = ["", []];
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (colon === 0) yield { event: "" };
        else if (name === "data") data.push(text);
        else if (name === "event") event = text;
        else if (name === "id") id = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Follows a session's events until they end.
 *
 * `on` has `entry(data)`, `board(session)`, `end(data)`, `state("live" | "connecting" | "reconnecting", seconds)`,
 * `resync()` (forget all entries: they come again) and `failed(problem)`. Each entry is handed over once and in order. Returns a function that stops.
 */
export function follow(path, on, { after = 0, board = true } = {}) {
  const stopper = new AbortController();
  loop(path, on, { last: after, board, stopper }).catch((error) => {
    if (error.name !== "AbortError") on.failed?.(error);
  });
  return () => stopper.abort();
}

async function loop(path, on, at) {
  for (let failures = 0; !at.stopper.signal.aborted;) {
    on.state?.(failures ? "reconnecting" : "connecting", 0);
    try {
      const began = Date.now();
      const heard = () => Date.now() - began > 3000 && (failures = 0); // one that breaks off at once is no success
      if (await once(path, on, at, heard)) return;
    } catch (error) {
      if (at.stopper.signal.aborted) return;
      if (
        error instanceof Problem &&
        error.status >= 400 &&
        error.status < 500 &&
        error.status !== 429 &&
        error.status !== 408
      )
        throw error;
      if (error instanceof Problem && error.status === 429) await pause(error.retryAfter * 1000, at.stopper.signal);
    }
    const seconds = WAITS[Math.min(failures++, WAITS.length - 1)] * (0.8 + 0.4 * Math.random());
    on.state?.("reconnecting", seconds);
    await online(seconds * 1000, at.stopper.signal);
  }
}

/** One connection; true when the server said that it is over. */
async function once(path, on, at, heard) {
  const inner = new AbortController();
  const stop = () => inner.abort();
  at.stopper.signal.addEventListener("abort", stop, { once: true });
  addEventListener("offline", stop);
  let silence = setTimeout(stop, SILENCE_S * 1000);
  try {
    const query = `after=${at.last}${at.board ? "" : "&board=0"}`;
    const headers = { Accept: "text/event-stream", ...(at.last ? { "Last-Event-ID": String(at.last) } : {}) };
    const response = await send("GET", `${path}?${query}`, { headers, signal: inner.signal });
    on.state?.("live", 0);
    for await (const message of parse(response.body)) {
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE_S * 1000);
      heard();
      if (take(message, on, at)) return true;
    }
    return false;
  } finally {
    clearTimeout(silence);
    removeEventListener("offline", stop);
    at.stopper.signal.removeEventListener("abort", stop);
    inner.abort();
  }
}

function take({ event, data }, on, at) {
  if (!event) return false;
  const body = JSON.parse(data);
  if (event === "end") {
    on.end?.(body);
    return true;
  }
  if (event === "error") throw new Error(body.detail ?? "the stream broke off"); // connect again
  if (event === "resync") {
    at.last = 0; // the log is another one than we knew, and follows from its start
    on.resync?.();
  } else if (event === "board") on.board?.(body);
  else if (body.seq > at.last) {
    at.last = body.seq;
    on.entry?.(body);
  }
  return false;
}

/** Waits, but no longer than until the machine is online again. */
async function online(ms, signal) {
  let wake;
  const back = new Promise((resolve) => addEventListener("online", (wake = resolve), { once: true }));
  try {
    await Promise.race([pause(ms, signal), back]);
  } finally {
    removeEventListener("online", wake);
  }
}
