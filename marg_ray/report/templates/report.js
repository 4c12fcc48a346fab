(() => {
  "use strict";
  // The page works without this: it only remembers choices, marks the open citation and follows the reader in the contents.
  const key = "marg-report-view";
  const inputs = [...document.querySelectorAll(".view input")];
  try {
    const saved = JSON.parse(localStorage.getItem(key) || "{}");
    for (const input of inputs) if (input.id in saved) input.checked = saved[input.id];
  } catch { /* storage is off, or holds something else */ }
  document.querySelector(".view").addEventListener("change", () => {
    try {
      localStorage.setItem(key, JSON.stringify(Object.fromEntries(inputs.map((i) => [i.id, i.checked]))));
    } catch { /* storage is off */ }
  });

  for (const box of document.querySelectorAll("[popover]")) {
    const mark = document.querySelector(`[popovertarget="${box.id}"]`);
    box.addEventListener("toggle", (event) => mark.setAttribute("aria-expanded", String(event.newState === "open")));
  }

  const contents = document.querySelector(".side details");
  if (matchMedia("(max-width: 68rem)").matches) contents.open = false;
  const links = new Map([...document.querySelectorAll(".toc a")].map((a) => [a.hash.slice(1), a]));
  const visible = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? visible.add(entry.target.id) : visible.delete(entry.target.id);
    const first = [...links.keys()].find((id) => visible.has(id));
    for (const [id, link] of links) id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }, { rootMargin: "0px 0px -55% 0px" });
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section) watch.observe(section);
  }

  const closed = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll(".dispute details:not([open])")) closed.push(details), details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed.splice(0)) details.open = false; });
})();
