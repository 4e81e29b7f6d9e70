// The shell: address, tabs, drawer, and the one place that calls screens. What a screen shows is the screen's own.
import { api, listen, openWorkflow, start, state } from "./live.js";
import { button, h, icon, replace } from "./dom.js";
import { keyed } from "./listing.js";
import { needsStrip } from "./needs.js";
import { topBar } from "./top.js";
import { keys } from "./keys.js";

const TABS = {
  graph: "Graph", timeline: "Timeline", tasks: "Tasks", board: "Board", pipeline: "Pipeline", gates: "Gates",
  decisions: "Decisions", agents: "Agents", milestones: "Milestones", reviews: "Reviews", messages: "Messages",
  events: "Events", boards: "Blackboard", versions: "Versions",
};
const STORE_TABS = { home: "Workflows", agents: "Agents", messages: "Messages", events: "Events", board: "Blackboard" };

const part = (id) => document.getElementById(id);
const main = part("main");
const drawer = part("drawer");
const NOTHING = { topics: new Set(), workflows: new Set(), tasks: new Set(), all: false };

let route = { id: null, tab: "home", params: new URLSearchParams() };
let view = null; // the screen that is shown
let inspected = null; // the task in the drawer, and its view
let before = null; // what had the focus before the drawer opened

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, id, tab] = path.split("/").map(decodeURIComponent);
  const params = new URLSearchParams(query);
  if (first === "w" && id) return { id, tab: tab in TABS ? tab : null, params };
  return { id: null, tab: first in STORE_TABS ? first : "home", params };
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
  const last = route;
  const mine = read();
  route = mine;
  if (state.connection === "signed-out" || !state.session) return;
  if (route.id !== last.id || (route.id && !state.workflow)) {
    drop();
    inspect(null);
    try {
      await openWorkflow(route.id);
    } catch (error) {
      return route === mine && trouble(error);
    }
    if (route !== mine) return; // somebody went on meanwhile
  }
  route.tab ??= state.workflow.pipeline && !state.workflow.tasks.size ? "pipeline" : "graph";
  draw();
}

function trouble(error, retry) {
  replace(main, h("div", { class: "empty" }, h("h2", {}, error.message), h("p", {}, error.hint),
    h("p", {}, h("a", { href: "#/" }, "All workflows"), retry && button("Try again", retry, "quiet"))));
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
  else await show(key, route.tab === "board" ? (route.id ? "tasks" : "boards") : route.tab);
  inspect(route.id ? route.params.get("task") : null);
}

async function show(key, name) {
  drop();
  view = { key }; // says that this one is on its way
  const mine = view;
  try {
    const module = await import(`./${name}.js`);
    if (view !== mine) return;
    view = { key, ...module.screen(context(route.id, route.tab)) };
    replace(main, view.node);
    main.scrollTop = 0;
    for (const here of document.querySelectorAll("nav [aria-current]")) here.scrollIntoView({ block: "nearest", inline: "center" });
  } catch (error) {
    if (view !== mine) return;
    view = null;
    console.error(error);
    trouble({ message: "This screen could not be loaded.", hint: error.message }, () => show(key, name));
  }
}

async function inspect(task) {
  if (inspected?.task === task) return tell(inspected?.view, NOTHING);
  const wasOpen = Boolean(inspected);
  inspected?.view?.close?.();
  inspected = task ? { task } : null;
  drawer.hidden = !task;
  if (!task) {
    replace(drawer);
    if (wasOpen) (before?.isConnected ? before : main).focus();
    return;
  }
  if (!wasOpen) before = document.activeElement;
  const mine = inspected;
  const module = await import("./inspector.js").catch(() => null);
  if (inspected !== mine) return;
  if (!module) return void select(null);
  mine.view = module.inspector(context(route.id, route.tab));
  replace(drawer, mine.view.node);
  drawer.scrollTop = 0;
  drawer.focus();
}

function tabsHere() {
  const tabs = Object.entries(route.id ? TABS : STORE_TABS);
  return tabs.filter(([tab]) => tab !== "pipeline" || state.workflow?.pipeline);
}

function drawTabs() {
  const row = route.id ? state.workflow?.workflow : null;
  const counts = { gates: row?.waiting, reviews: row?.reviews, messages: state.unread };
  const items = tabsHere().map(([tab, name]) => ({ tab, name, href: patched({ tab }), here: tab === route.tab, count: counts[tab] }));
  const strip = part("tabs");
  strip.hidden = false;
  keyed(strip, items, (item) => item.tab, ({ name, href, here, count }) => h("a", { href, aria: here ? { current: "page" } : {} },
    name, count ? h("span", { class: "badge" }, String(count)) : null));
}

function drawPhases() {
  const run = route.id ? state.workflow?.pipeline : null;
  const strip = part("phases");
  strip.hidden = !run;
  const icons = { done: "completed", now: "in_progress", waits: "gate", next: "pending" };
  keyed(strip, run?.phases ?? [], (phase) => phase.id, (phase) => h("a", {
    class: "phase s-" + phase.state, href: patched({ tab: "pipeline" }), title: `${phase.label}: ${phase.state}`,
    aria: phase.state === "now" || phase.state === "waits" ? { current: "step" } : {},
  }, icon(icons[phase.state] ?? phase.state), phase.label, h("span", { class: "sr" }, phase.state)), route.id);
}

/** Signed out: nothing of the store stays on the screen. */
async function askToSignIn() {
  drop();
  inspect(null);
  for (const id of ["tabs", "phases", "needs"]) part(id).hidden = true;
  top.update();
  const { signIn } = await import("./sign_in.js");
  replace(main, signIn(begin));
}

async function begin() {
  try {
    await start();
    replace(main);
    await follow();
  } catch (error) {
    if (error.status !== 401) trouble(error, begin);
  }
}

const top = topBar(part("top"), { route: () => route, go, select });
const strip = needsStrip(part("needs"), (text) => (part("announce").textContent = text));

listen((change) => {
  if (change.topics.has("connection") && state.connection === "signed-out") return void askToSignIn();
  if (!state.session) return top.update();
  if (change.topics.has("connection") && state.connection === "live" && !view) follow(); // what failed while offline
  top.update();
  strip.update(change);
  drawPhases();
  drawTabs();
  tell(view, change);
  tell(inspected?.view, change);
});

keys({ go, route: () => route, tabs: () => tabsHere().map(([tab]) => tab), screen: () => view, closeDrawer: () => inspected && select(null) });
part("skip").addEventListener("click", () => main.focus());
addEventListener("hashchange", follow);
begin();
