// Numbers, times and the closed sets of words, as people read them.

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const whole = (n) => WHOLE.format(n ?? 0);
export const short = (n) => ((n ?? 0) < 10_000 ? WHOLE.format(n ?? 0) : SHORT.format(n));
export const count = (n, noun, plural = `${noun}s`) => `${whole(n)} ${n === 1 ? noun : plural}`;
export const percent = (share) => `${Math.round(share * 100)} %`;

export function money(dollars) {
  if (!dollars) return "$0";
  return dollars >= 1 ? `$${dollars.toFixed(2)}` : `$${Number(dollars.toPrecision(2))}`;
}

/** "4 s", "3 min 05 s", "1 h 12 min". */
export function duration(seconds) {
  const s = Math.max(0, seconds ?? 0);
  if (s < 1) return s > 0.05 ? `${s.toFixed(1)} s` : "0 s";
  if (s < 60) return `${s < 10 && s % 1 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

const date = (iso) => (iso ? new Date(iso) : null);
export const day = (iso) => (iso ? DAY.format(date(iso)) : "");
export const moment = (iso) => (iso ? MOMENT.format(date(iso)) : "");
export const clock = (iso) => (iso ? CLOCK.format(date(iso)) : "");

/** "just now", "5 min ago", "3 h ago", then the day. */
export function ago(iso, now = Date.now()) {
  const seconds = (now - date(iso).getTime()) / 1000;
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return day(iso);
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** What a session's status means: words, tone, and whether it is over. */
export const STATUSES = {
  queued: { label: "Queued", tone: "quiet", sign: "…" },
  running: { label: "Running", tone: "accent", sign: "●" },
  waiting: { label: "Waits for you", tone: "amber", sign: "!" },
  paused: { label: "Paused", tone: "amber", sign: "‖" },
  halted: { label: "Halted", tone: "red", sign: "!", over: true },
  cancelled: { label: "Cancelled", tone: "quiet", sign: "×", over: true },
  passed: { label: "Passed", tone: "green", sign: "✓", over: true },
  quality_warning: { label: "Quality warning", tone: "amber", sign: "!", over: true },
  insufficient_evidence: { label: "Insufficient evidence", tone: "red", sign: "∅", over: true },
  budget_stopped: { label: "Stopped by its budget", tone: "amber", sign: "!", over: true },
};
export const statusOf = (word) =>
  STATUSES[word] ?? { label: String(word ?? "").replaceAll("_", " ") || "Unknown", tone: "quiet", sign: "·" };
export const isOver = (word) => Boolean(statusOf(word).over);

/** What the check of a sentence found: never told by colour alone. */
export const VERDICTS = {
  supported: { label: "Supported", sign: "✓", text: "What it cites says so." },
  partial: { label: "Partly supported", sign: "◐", text: "What it cites says part of it." },
  unsupported: { label: "Not supported", sign: "✕", text: "What it cites does not say so." },
  contradicted: { label: "Contradicted", sign: "≠", text: "What it cites says otherwise." },
  not_factual: { label: "Nothing to check", sign: "–", text: "It states no fact." },
  not_checked: { label: "Not checked", sign: "?", text: "The check did not finish." },
};
export const verdictOf = (word) => VERDICTS[word] ?? VERDICTS.not_checked;
export const WORST = ["not_factual", "supported", "not_checked", "partial", "unsupported", "contradicted"];

export const ROLES = {
  planner: "Planner",
  researcher: "Researcher",
  analyst: "Analyst",
  synthesizer: "Writer",
  critic: "Critic",
  formatter: "Formatter",
  assistant: "Assistant",
  owner: "You",
  clock: "Clock",
};

export const KINDS = {
  web: "web page",
  library: "library document",
  provided: "text provided with the question",
  academic: "academic work",
  database: "database",
  mcp: "tool answer",
};

const RTL = new Set(["ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"]);
export const directionOf = (language) => (RTL.has((language ?? "").split("-")[0].toLowerCase()) ? "rtl" : "ltr");
