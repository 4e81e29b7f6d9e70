// Asks for what the first screen shows while the other scripts are still on their way. Who needs it takes it from here.

/** Answers on their way, by path. Each is taken once; the shell drops the others when the first screen is there. */
export const ahead = new Map();

/** Where a workflow's drawing is, by the parameters of the page's address. */
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
  scripts.push("graph", "graph_view", "camera", "measure"); // by themselves each would only name the next
}
for (const path of paths) {
  ahead.set(path, fetch(path));
  ahead.get(path).catch(() => {}); // who takes it is told
}
for (const name of scripts) import(`./${name}.js`).catch(() => {});
