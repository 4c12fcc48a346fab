// Making elements. Content is only ever set as text: nothing in this page parses markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set([
  "value",
  "checked",
  "disabled",
  "selected",
  "open",
  "hidden",
  "indeterminate",
  "htmlFor",
  "tabIndex",
]);

/** An element: `h("p.quiet", {dir: "auto"}, "text", node, [more])`. Children that are null or false are left out. */
export function h(name, props, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.classList.add(...classes);
  if (props instanceof Node || typeof props !== "object" || props === null || Array.isArray(props))
    children.unshift(props);
  else set(element, props);
  add(element, children);
  return element;
}

export function set(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "class") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "vars") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (PROPERTIES.has(name)) element[name] = value;
    else if (value === null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Text from outside, which brings its own direction. */
export const bdi = (text, props = {}) => h("bdi", props, text);

/** Keeps `parent`'s children in step with `items`: one that stays is updated in place and keeps focus and selection. */
export function keyed(parent, items, keyOf, make, update) {
  const before = parent.keyedChildren ?? new Map();
  const now = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    const node = before.get(key) ?? make(item);
    update?.(node, item);
    now.set(key, node);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  for (const [key, node] of before) if (!now.has(key)) node.remove();
  parent.keyedChildren = now;
}

/** Sets a text only where it changes, so that nothing is announced or laid out twice. */
export function put(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

const PATHS = {
  planner: "M5 6h2M5 12h2M5 18h2M10.5 6H19M10.5 12H19M10.5 18H16",
  researcher: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20",
  synthesizer: "M4 20l1-4L16 5l3 3L8 19l-4 1zM14 7l3 3",
  critic: "M4 12.5l4.5 4.5L20 6M4 20h16",
  analyst: "M5 19V11M12 19V5M19 19v-6M3 21h18",
  formatter: "M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h5",
  assistant: "M4 5h16v11H10l-4 4v-4H4z",
  owner: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c1-4 4-5.5 7.5-5.5s6.5 1.5 7.5 5.5",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3.5 2",
  up: "M12 19V6M6 11.5 12 5.5l6 6",
  down: "M12 5v13M6 12.5l6 6 6-6",
  close: "M6 6l12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 9.5l5-5 5 5M5 20h14",
  pause: "M8.5 5v14M15.5 5v14",
  play: "M8 5l11 7-11 7z",
  stop: "M6.5 6.5h11v11h-11z",
  steer: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5",
  key: "M8 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 12h9M17.5 12v3.5M20.5 12v2.5",
  sun: "M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  auto: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 3v18M12 8h6.5M12 13h8M12 17.5h5",
  check: "M4.5 12.5l5 5L19.5 7",
  warn: "M12 4 2.5 20h19zM12 10v4.5M12 17.3v.4",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.5M12 7.5v.4",
  link: "M10 6H5v13h13v-5M13 4h7v7M19.5 4.5 11 13",
  menu: "M4 7h16M4 12h16M4 17h16",
  book: "M5 4h6a2 2 0 0 1 2 2v14a2 2 0 0 0-2-2H5zM21 4h-6a2 2 0 0 0-2 2v14a2 2 0 0 1 2-2h6z",
  ask: "M12 20.5v-.4M8 8.5a4 4 0 1 1 6 3.4c-1.4.9-2 1.8-2 3.6",
  list: "M4 6h16M4 12h16M4 18h10",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name] ?? PATHS.info);
  svg.append(path);
  return svg;
}

/** An SVG element, for the few drawings that the page makes itself. */
export function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.flat());
  return element;
}

/** Says something to a screen reader, after what it says now. */
export function say(text) {
  const place = document.getElementById("said");
  if (place && place.textContent !== text) place.textContent = text;
}

/** Pieces with dots between them. */
export const dotted = (parts) => parts.filter(Boolean).flatMap((part, n) => (n ? [" · ", bdi(part)] : [bdi(part)]));

let made = 0;
export const unique = (prefix) => `${prefix}-${++made}`;
