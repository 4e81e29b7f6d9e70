// The shell: address, tabs, drawer, and the one place that calls screens. What a screen shows is the screen's own.
import { ahead } from "./ahead.js";
import { api, isPassing, listen, openWorkflow, start, state } from "./live.js";
import { button, h, keyed, replace, told, visible } from "./dom.js";
import { needsStrip } from "./needs.js";
import { topBar } from "./top.js";

const TABS = {
  graph: "Graph", timeline: "Timeline", tasks: "Tasks", board: "Board", pipeline: "Pipeline", gates: "Gates",
  decisions: "Decisions", agents: "Agents", milestones: "Milestones", reviews: "Reviews", messages: "Messages",
  events: "Events", boards: "Blackboard", versions: "Versions",
};
const STORE_TABS = { home: "Workflows", agents: "Agents", messages: "Messages", events: "Events", board: "Blackboard" };

const LISTS = ["gates", "decisions", "milestones", "reviews", "boards", "versions"]; // the plain ones are in one file
const fileOf = ({ id, tab }) => (tab === "board" ? (id ? "tasks" : "lists") : LISTS.includes(tab) ? "lists" : tab);

const part = (id) => document.getElementById(id);
const main = part("main");
const NOTHING = { topics: new Set(), workflows: new Set(), tasks: new Set(), all: false };

let route = { id: null, tab: "home", params: new URLSearchParams() };
let view = null; // the screen that is shown
let drawer = null; // a promise of it
let retrying = 0; // what failed and is tried again by itself

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, id, tab] = path.split("/").map(decodeURIComponent);
  const params = new URLSearchParams(query);
  if (first === "w" && id) return { id, tab: tab in TABS ? tab : null, params, unknown: tab && !(tab in TABS) };
  return { id: null, tab: first || "home", params, unknown: first && !(first in STORE_TABS) };
}

function address({ id, tab, params }) {
  const path = id ? `w/${encodeURIComponent(id)}` + (tab ? "/" + tab : "") : tab === "home" ? "" : tab;
  return `#/${path}` + (params.size ? "?" + params : "");
}

/** Where the patch leads: another tab keeps only the inspected task, another workflow nothing. */
function patched(patch) {
  const { id = route.id, tab = id === route.id ? route.tab : null, quiet, ...rest } = patch;
  const params = new URLSearchParams(id !== route.id ? "" : route.params);
  if (tab !== route.tab) for (const name of [...params.keys()]) if (name !== "task") params.delete(name);
  for (const [name, value] of Object.entries(rest)) {
    if (value === null || value === undefined || value === "") params.delete(name);
    else params.set(name, value);
  }
  return address({ id, tab, params });
}

/** Changes the address; with `quiet` the way back skips this step, as while somebody types. */
function go(patch) {
  const target = patched(patch);
  if (target === location.hash) return;
  if (!patch.quiet) return void (location.hash = target);
  history.replaceState(null, "", target);
  follow();
}

const select = (task) => go({ task });

function context(id, tab) {
  return { id, tab, go, select, api, state, get params() { return route.params; } };
}

async function follow() {
  const mine = read();
  route = mine;
  clearTimeout(retrying);
  if (state.connection === "signed-out" || !state.session) return;
  if (route.id !== (state.workflow?.workflow.id ?? null)) {
    drop();
    inspect(null);
    try {
      await openWorkflow(route.id);
    } catch (error) {
      return route === mine && trouble(error, follow);
    }
    if (route !== mine) return; // somebody went on meanwhile
  }
  if (route.unknown) {
    drop();
    drawTabs();
    top.update();
    return trouble({ message: `There is nothing at ${location.hash}` });
  }
  route.tab ??= state.workflow.pipeline && !state.workflow.tasks.size ? "pipeline" : "graph";
  await draw();
}

/** Says what is wrong in the screen's place; what may pass is tried again, by itself as well. */
function trouble(error, retry) {
  clearTimeout(retrying);
  if (retry && isPassing(error)) retrying = setTimeout(retry, 3000);
  const [what, hint] = told(error);
  replace(main, h("div.empty", h("h2", what), hint && h("p", hint),
    h("p", h("a", { href: "#/" }, "All workflows"), retry && button("Try again", retry, "quiet"))));
}

function drop() {
  view?.close?.();
  view = null;
}

/** A screen that fails must not take the shell with it. */
function tell(screen, change) {
  try {
    screen?.update?.(change);
  } catch (error) {
    console.error(error);
  }
}

async function draw() {
  const key = `${route.id}/${route.tab}`;
  drawTabs();
  drawPhases();
  top.update();
  if (view?.key === key) tell(view, NOTHING);
  else await show(key, fileOf(route));
  inspect(route.id ? route.params.get("task") : null);
}

async function show(key, name) {
  clearTimeout(retrying);
  drop();
  view = { key }; // says that this one is on its way
  const mine = view;
  let module = null;
  try {
    module = await import(`./${name}.js`);
    if (view !== mine) return;
    view = { key, ...module.screen(context(route.id, route.tab)) };
    replace(main, view.node);
    main.scrollTop = 0;
    for (const here of document.querySelectorAll("nav [aria-current]")) here.scrollIntoView({ block: "nearest", inline: "center" });
  } catch (error) {
    if (view !== mine) return;
    view = null;
    console.error(error);
    const status = module ? 400 : 0; // what is broken stays so
    trouble({ status, message: "This screen could not be loaded.", hint: error.message }, () => show(key, name));
  }
}

/** The drawer is loaded when the first task is opened. */
function inspect(task) {
  if (!task && !drawer) return;
  const focused = document.activeElement;
  const here = context(route.id, route.tab);
  drawer ??= import("./drawer.js").then((module) => module.drawer());
  drawer.then((open) => open.inspect(task, here, focused), () => (drawer = null));
}

function tabsHere() {
  const tabs = Object.entries(route.id ? TABS : STORE_TABS);
  return tabs.filter(([tab]) => tab !== "pipeline" || state.workflow?.pipeline);
}

function drawTabs() {
  const row = route.id ? state.workflow?.workflow : null;
  const letters = state.needs.filter((item) => item.kind === "message" && item.workflow_id === route.id);
  const messages = route.id ? letters.reduce((sum, item) => sum + item.count, 0) : state.unread;
  const counts = { gates: row?.waiting, reviews: row?.reviews, messages };
  const items = tabsHere().map(([tab, name]) => ({ tab, name, href: patched({ tab }), here: tab === route.tab, count: counts[tab] }));
  const strip = part("tabs");
  strip.hidden = false;
  keyed(strip, items, (item) => item.tab, ({ name, href, here, count }) => h("a", { href, aria: here ? { current: "page" } : {} },
    name, count ? h("span.badge", String(count)) : null));
}

function drawPhases() {
  const run = route.id ? state.workflow?.pipeline : null;
  part("phases").hidden = !run;
  if (run) import("./phases.js").then(({ drawn }) => drawn(part("phases"), run.phases, patched({ tab: "pipeline" })), () => {});
}

/** Signed out: nothing of the store stays on the screen. */
async function askToSignIn() {
  drop();
  inspect(null);
  clearTimeout(retrying);
  import("./dialog.js").then(({ lowerAll }) => lowerAll());
  for (const id of ["tabs", "phases", "needs"]) part(id).hidden = true;
  top.update();
  const { signIn } = await import("./sign_in.js");
  replace(main, signIn(begin));
}

async function begin() {
  try {
    if (!(await start(read().id))) return; // the listener below asks to sign in
    strip.update({ all: true });
    await follow();
    ahead.clear(); // what nobody took by now grows old
    if (sessionStorage.getItem("handrail.draft")) import("./deciding.js").then(({ resume }) => resume());
  } catch (error) {
    trouble(error, begin);
  }
}

const top = topBar(part("top"), { route: () => route, go, select });
const strip = needsStrip(part("needs"), (text) => (part("announce").textContent = visible(text)));

listen((change) => {
  if (change.topics.has("connection") && state.connection === "signed-out") return void askToSignIn();
  if (!state.session) return top.update();
  if (change.topics.has("connection") && state.connection === "live" && !view) follow(); // what failed while offline
  top.update();
  strip.update(change);
  drawPhases();
  drawTabs();
  tell(view, change);
  drawer?.then((open) => tell(open, change));
});

import("./keys.js").then(({ keys }) => keys({
  go, tabs: () => tabsHere().map(([tab]) => tab), screen: () => view, closeDrawer: () => route.params.get("task") && select(null),
}));
part("skip").addEventListener("click", () => main.focus());
addEventListener("hashchange", follow);
begin();
