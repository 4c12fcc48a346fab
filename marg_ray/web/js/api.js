// Calls of the service. Every failure is a `Problem` with words for people.

const KEY = "marg-key";

export class Problem extends Error {
  /** `fields`: [{field, problem}] of a body that was refused. `status` 0: nobody answered. */
  constructor(status, body = {}, retryAfter = 0) {
    const { title = "", detail = "", hint = "", code = "", errors = [] } = body;
    super(detail || title || `The server answered ${status}.`);
    Object.assign(this, { status, code: code || title, hint, fields: errors, more: body, retryAfter });
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

let askForKey = async () => false;
/** `ask(refused)` resolves to true when a key was entered. Asked once, however many calls wait. */
export function onKeyNeeded(ask) {
  let asking = null;
  askForKey = (refused) => (asking ??= ask(refused).finally(() => (asking = null)));
}

/** The response to a request that has passed; a key is asked for where one is needed, a full minute is waited for once. */
export async function send(method, path, { body, form, headers = {}, signal } = {}) {
  for (let attempt = 0; ; attempt++) {
    const used = key.get();
    const init = {
      method,
      signal,
      headers: { ...headers },
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    };
    if (used) init.headers.Authorization = `Bearer ${used}`;
    if (body !== undefined) {
      init.headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    } else if (form) init.body = form;
    let response;
    try {
      response = await fetch(path, init);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, {
        code: "Unreachable",
        detail: "The server does not answer.",
        hint: "Is it still running, and are you online?",
      });
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (problem.status === 401 && (key.get() !== used || (attempt < 3 && (await askForKey(Boolean(used)))))) continue;
    if (problem.status === 429 && method === "GET" && attempt === 0 && problem.retryAfter <= 20) {
      await pause(problem.retryAfter * 1000, signal);
      continue;
    }
    throw problem;
  }
}

export async function problemOf(response) {
  const retryAfter = Number(response.headers.get("Retry-After")) || 1;
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = { detail: `The server answered ${response.status} ${response.statusText}.` };
  }
  return new Problem(response.status, body, retryAfter);
}

export const getJson = async (path, options) => (await send("GET", path, options)).json();
export const getText = async (path, options) => (await send("GET", path, options)).text();
export const getBlob = async (path, options) => (await send("GET", path, options)).blob();
export const postJson = async (path, body, options = {}) => (await send("POST", path, { ...options, body })).json();

export const run = (id, rest = "") => `/v1/research/${encodeURIComponent(id)}${rest}`;

/** Saves what a path answers under the name that the server gives it. */
export async function download(path, fallback) {
  const response = await send("GET", path);
  const blob = await response.blob();
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName(response.headers.get("Content-Disposition")) || fallback;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return link.download;
}

export function fileName(disposition) {
  const coded = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "");
  try {
    if (coded) return decodeURIComponent(coded[1]);
  } catch {
    // a name that is not well coded: the plain one follows
  }
  return /filename="?([^";]+)"?/i.exec(disposition ?? "")?.[1] ?? "";
}

/** A name for a request that may be sent twice; also where the page is not served safely (no `randomUUID` there). */
export function token() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(new DOMException("stopped", "AbortError"))), {
      once: true,
    });
  });
}
