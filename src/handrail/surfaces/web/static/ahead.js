// Requests what the first screen shows while the other scripts are still loading.

/** Responses on their way, by path. Each is taken once; the shell drops the rest. */
export const ahead = new Map();

/** The address of a workflow's drawing, for the parameters of the page's address. */
export function drawingOf(id, params) {
  const wanted = new URLSearchParams({ open: params.get("open") ?? "" });
  if (params.get("groups")) wanted.set("grouped", params.get("groups"));
  return `/api/workflows/${id}/graph?${wanted}`;
}

const [, id, tab = "graph", query] = /^#\/w\/([^/?]+)(?:\/(\w+))?(?:\?(.*))?/.exec(location.hash) ?? [];
const paths = ["/api/session", "/api/home", "/api/needs"];
const scripts = id ? [] : ["home", "prose"];
if (id) paths.push("/api/workflows/" + id);
if (id && tab === "graph") {
  paths.push(drawingOf(id, new URLSearchParams(query)));
  scripts.push("graph", "graph_view", "camera", "measure"); // otherwise each would be found only after the one before it
}
for (const path of paths) {
  ahead.set(path, fetch(path));
  ahead.get(path).catch(() => {}); // handled by the code that takes it
}
for (const name of scripts) import(`./${name}.js`).catch(() => {});
