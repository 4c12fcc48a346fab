// Going to an address of this page.

let show = () => {};
export const onGo = (handler) => (show = handler);

/** `replace`: the address at hand is not one to come back to. */
export function go(path, { replace = false } = {}) {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"]({}, "", path);
  show();
}

export const runPath = (id, tab = "") => `/runs/${encodeURIComponent(id)}${tab && `/${tab}`}`;
