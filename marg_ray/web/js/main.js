// The frame around the views: addresses, the bar at the top, the theme, the key.

import { key, onKeyNeeded } from "./api.js";
import { fill, h, icon, say, set } from "./dom.js";
import { askForKey } from "./key.js";
import { go, onGo, onRename } from "./nav.js";
import { failure } from "./parts.js";
import { askView } from "./views/ask.js";
import { libraryView } from "./views/library.js";
import { runView } from "./views/run.js";
import { runsView } from "./views/runs.js";

const ROUTES = [
  [/^\/$/, "ask", askView],
  [/^\/runs\/?$/, "runs", runsView],
  [
    /^\/runs\/([^/]+)(?:\/(progress|report|replay))?\/?$/,
    "runs",
    (id, tab) => runView(decodeURIComponent(id), tab ?? ""),
  ],
  [/^\/library\/?$/, "library", libraryView],
];
const PLACES = [
  ["ask", "/", "Ask"],
  ["runs", "/runs", "Runs"],
  ["library", "/library", "Library"],
];
const THEMES = [
  ["auto", "auto", "As the system"],
  ["light", "sun", "Light"],
  ["dark", "moon", "Dark"],
];

const main = document.getElementById("main");
let dispose = () => {};
let shown = "";

let turn = 0;
async function show(first = false) {
  const path = location.pathname;
  const mine = ++turn;
  shown = path;
  dispose();
  dispose = () => {};
  const [match, place, make] = find(path);
  for (const link of document.querySelectorAll(".top nav a"))
    set(link, { "aria-current": link.dataset.place === place ? "page" : null });
  document.body.dataset.place = place;
  let made;
  try {
    made = match ? await make(...match.slice(1)) : missing();
  } catch (error) {
    made = { title: "Not shown", node: failure(error, { retry: () => show() }) };
  }
  if (mine !== turn) return made.dispose?.();
  dispose = made.dispose ?? dispose;
  document.title = `${made.title} · MARG-Ray`;
  fill(main, made.node);
  if (!location.hash) scrollTo(0, 0);
  made.shown?.();
  if (!first) focusOn(made.focus ?? main.querySelector("h1"));
}

function focusOn(element) {
  if (!element) return main.focus();
  if (element.tabIndex < 0) element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

function find(path) {
  for (const [pattern, place, make] of ROUTES) {
    const match = pattern.exec(path);
    if (match) return [match, place, make];
  }
  return [null, "", null];
}

const missing = () => ({
  title: "No such page",
  node: h(
    ".page.narrow",
    {},
    h("h1", {}, "There is no such page"),
    h("p", {}, h("a", { href: "/" }, "Ask a question"), " or look at ", h("a", { href: "/runs" }, "past runs"), "."),
  ),
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (
    !link ||
    event.defaultPrevented ||
    event.button ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname === location.pathname && link.hash) return;
  if (!find(link.pathname)[0]) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
addEventListener("popstate", () => location.pathname !== shown && show());

// ---- the bar

function themeSwitch() {
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    const [, sign, label] = THEMES.find(([name]) => name === theme);
    fill(button, icon(sign));
    set(button, { "aria-label": `Colours: ${label}`, title: `Colours: ${label}` });
  };
  const button = h("button.quiet.round", {
    type: "button",
    onclick: () => {
      const now = THEMES.findIndex(([name]) => name === document.documentElement.dataset.theme);
      const next = THEMES[(now + 1) % THEMES.length];
      localStorage.setItem("marg-theme", next[0]);
      apply(next[0]);
      say(`Colours: ${next[2]}`);
    },
  });
  const kept = localStorage.getItem("marg-theme");
  apply(THEMES.some(([name]) => name === kept) ? kept : "auto");
  return button;
}

function keyButton() {
  const draw = () => {
    const label = key.get() ? "API key: set" : "API key";
    set(button, { "aria-label": label, title: label, "data-set": key.get() ? "" : null });
  };
  const button = h(
    "button.quiet.round",
    {
      type: "button",
      onclick: async () => {
        if (await askForKey(false)) show();
        draw();
      },
    },
    icon("key"),
  );
  draw();
  addEventListener("marg-key", draw);
  return button;
}

function bar() {
  const brand = h(
    "a.brand",
    { href: "/", "aria-label": "MARG-Ray: ask a question" },
    h("img", { src: new URL("../icons/marg.svg", import.meta.url).href, alt: "", width: 26, height: 26 }),
    h("span", {}, "MARG-Ray"),
  );
  const nav = h(
    "nav",
    { "aria-label": "Main" },
    PLACES.map(([place, href, label]) => h("a", { href, data: { place } }, label)),
  );
  fill(document.getElementById("top"), h(".bar", {}, brand, nav, h(".tools", {}, keyButton(), themeSwitch())));
}

onKeyNeeded(async (refused) => {
  const entered = await askForKey(refused);
  dispatchEvent(new Event("marg-key"));
  return entered;
});
onGo(() => show());
onRename((path) => (shown = path));
bar();
show(true);
