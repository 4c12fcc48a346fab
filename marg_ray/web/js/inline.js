// Inline Markdown of a sentence as nodes: emphasis, code, formulas, links to web addresses. Everything else is text.

import { h } from "./dom.js";

const RULES = [
  [/^\\([!-/:-@[-`{-~])/, (m) => m[1]],
  [/^(`+)(?!`)(.+?)(?<!`)\1(?!`)/, (m) => h("code", {}, m[2].trim() || m[2])],
  [/^\$(?![\s\d.,])([^$\n]{1,200}?)(?<![\s\\])\$(?!\d)/, (m) => h("span.formula", { dir: "ltr" }, m[1])],
  [/^\\\((.{1,200}?)\\\)/, (m) => h("span.formula", { dir: "ltr" }, m[1].trim())],
  [/^\*\*(?=\S)(.+?)(?<=\S)\*\*/, (m) => h("strong", {}, inline(m[1]))],
  [/^\*(?=[^\s*])(.*?)(?<=[^\s*])\*(?!\*)/, (m) => h("em", {}, inline(m[1]))],
  [
    /^\[([^\]\n]+)\]\((<[^>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)/,
    (m) => linked(m[2].replace(/^<|>$/g, ""), inline(m[1])) ?? m[0],
  ],
  [/^<(https?:\/\/[^\s<>]+)>/, (m) => linked(m[1], [m[1]]) ?? m[0]],
];
const MARKER = /[\\`$*[<]/g;

/** The nodes of one sentence. Nothing is lost: signs without a partner stay text. */
export function inline(text) {
  const nodes = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    MARKER.lastIndex = at;
    const next = MARKER.exec(text)?.index ?? text.length;
    plain += text.slice(at, next);
    at = next;
    if (at === text.length) break;
    const rest = text.slice(at);
    let length = 1;
    let node = rest[0];
    for (const [pattern, make] of RULES) {
      const match = pattern.exec(rest);
      if (match) {
        [length, node] = [match[0].length, make(match)];
        break;
      }
    }
    at += length;
    if (typeof node === "string") plain += node;
    else {
      if (plain) nodes.push(plain);
      plain = "";
      nodes.push(node);
    }
  }
  if (plain) nodes.push(plain);
  return nodes;
}

/** The address if it is one of the web, otherwise "". */
export function webAddress(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:"].includes(url.protocol) && url.host ? url.href : "";
  } catch {
    return "";
  }
}

/** A link that tells the other side nothing of this page; null where the address is none. */
export function linked(address, children, props = {}) {
  const href = webAddress(address);
  return href ? h("a", { href, rel: "noopener noreferrer nofollow", target: "_blank", ...props }, children) : null;
}

export const oneLine = (text) => (text ?? "").split(/\s+/).join(" ").trim();
const WIDE = /^[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff0f\uff1a-\uff20]/;
/** What stands between two sentences: a blank, or nothing in scripts that write none. */
export const gapBetween = (before, after) =>
  !before || !after || (WIDE.test(before.at(-1)) && WIDE.test(after)) ? "" : " ";
