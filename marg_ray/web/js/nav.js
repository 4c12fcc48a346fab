// Going to an address of this page.

let show = () => {};
let renamed = () => {};
export const onGo = (handler) => (show = handler);
export const onRename = (handler) => (renamed = handler);

/** `replace`: the address at hand is not one to come back to. */
export function go(path, { replace = false } = {}) {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"]({}, "", path);
  show();
}

/** Gives what is shown its full address. */
export function rename(path) {
  history.replaceState({}, "", path);
  renamed(location.pathname);
}

export const runPath = (id, tab = "") => `/runs/${encodeURIComponent(id)}${tab && `/${tab}`}`;
