// The shell: address, tabs, drawer, and the one place that calls screens.
import { ahead } from "./ahead.js";
import { api, isOut, isPassing, listen, noChange, openWorkflow, start, state } from "./live.js";
import { button, h, keyed, placeOf, replace, told, visible } from "./dom.js";
import { needsStrip } from "./needs.js";
import { topBar } from "./top.js";

const TABS = {
  graph: "Graph", timeline: "Timeline", tasks: "Tasks", board: "Board", pipeline: "Pipeline", gates: "Gates",
  decisions: "Decisions", agents: "Agents", milestones: "Milestones", reviews: "Reviews", messages: "Messages",
  events: "Events", boards: "Blackboard", versions: "Versions",
};
const STORE_TABS = { home: "Workflows", agents: "Agents", messages: "Messages", events: "Events", board: "Blackboard" };

const LISTS = ["gates", "decisions", "milestones", "reviews", "boards", "versions"]; // the plain ones share one file
const fileOf = ({ id, tab }) => (tab === "board" ? (id ? "tasks" : "lists") : LISTS.includes(tab) ? "lists" : tab);

const part = (id) => document.getElementById(id);
const main = part("main");

let route = { id: null, tab: "home", params: new URLSearchParams() };
let view = null; // the current screen
let drawer = null; // a promise of it
let retrying = 0; // timer for retrying what failed

/** A part of the address as it was meant; one that cannot be decoded stays as it is, and is nowhere. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [first, id, tab] = path.split("/").map(decoded);
  const params = new URLSearchParams(query);
  const isTab = Object.hasOwn(TABS, tab ?? "");
  if (first === "w" && id) return { id, tab: isTab ? tab : null, params, unknown: tab && !isTab };
  return { id: null, tab: first || "home", params, unknown: first && !Object.hasOwn(STORE_TABS, first) };
}

function address({ id, tab, params }) {
  const path = id ? `w/${encodeURIComponent(id)}` + (tab ? "/" + tab : "") : tab === "home" ? "" : tab;
  return `#/${path}` + (params.size ? "?" + params : "");
}

/** The address a patch leads to: another tab keeps only the inspected task, another workflow nothing. */
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

/** Changes the address; with `quiet` it adds no history entry, as while somebody types. */
function go(patch) {
  const target = patched(patch);
  if (target === location.hash) return;
  // Not through location.hash: until the browser fires its event, input such as a key would act on the old address.
  history[patch.quiet ? "replaceState" : "pushState"](null, "", target);
  follow();
}

const select = (task) => go({ task });

function context(id, tab) {
  return {
    id, tab, go, select, api, state, param: (name) => route.params.get(name) ?? "", tasks: () => state.workflow?.tasks ?? new Map(),
    get params() { return route.params; },
    get decides() { return state.session?.decides; },
  };
}

async function follow() {
  const mine = read();
  route = mine;
  clearTimeout(retrying);
  if (isOut() || !state.session) return;
  if (route.id !== (state.workflow?.workflow.id ?? null)) {
    drop();
    inspect(null);
    const failed = await openWorkflow(route.id).catch((error) => error);
    if (route !== mine) return; // navigated away meanwhile
    route.missing = failed?.status === 404;
    if (failed) return nowhere(failed, route.missing ? null : follow);
  }
  if (route.unknown) return nowhere({ message: `There is no page at ${location.hash}` });
  route.tab ??= state.workflow.pipeline && !state.workflow.tasks.size ? "pipeline" : "graph";
  await draw();
}

/** An address without a screen: what is wrong with it takes that place, and nothing is left of what was open before. */
function nowhere(error, retry) {
  drop();
  drawTabs();
  drawPhases();
  top.update();
  trouble(error, retry);
}

/** Workflows that an unknown id may stand for: it was cut off while being copied, or it is a name. */
function likely(id) {
  const isMeant = (row) => row.id.startsWith(id) || id.startsWith(row.id) || row.name.toLowerCase().includes(id.toLowerCase());
  return [...state.workflows.values()].filter(isMeant).slice(0, 3);
}

/** Shows an error in place of the screen; a temporary one is retried automatically as well. */
function trouble(error, retry) {
  clearTimeout(retrying);
  if (retry && isPassing(error)) retrying = setTimeout(retry, 3000);
  const [what, hint] = told(error);
  const meant = route.missing ? likely(route.id) : [];
  replace(main, h("div.empty", h("h2", what), hint && h("p", hint),
    meant.map((row) => h("p", "Did you mean ", h("a", { href: placeOf(row.id) }, row.name), "?")),
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
  if (view?.key === key) tell(view, noChange());
  else await show(key, fileOf(route));
  inspect(route.id ? route.params.get("task") : null);
}

async function show(key, name) {
  clearTimeout(retrying);
  drop();
  view = { key }; // marks this one as loading
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
    const status = module ? 400 : 0; // what is broken will stay so
    trouble({ status, message: "This screen could not be loaded.", hint: error.message }, () => show(key, name));
  }
}

/** Its script is loaded when the first task is opened. */
function inspect(task) {
  if (!task && !drawer) return;
  const focused = document.activeElement;
  const here = context(route.id, route.tab);
  drawer ??= import("./inspector.js").then((module) => module.drawer());
  const still = () => !task || task === route.params.get("task"); // it may have been closed while the script was loading
  drawer.then((open) => still() && open.inspect(task, here, focused), () => (drawer = null));
}

function tabsHere() {
  if (route.missing) return [];
  const tabs = Object.entries(route.id ? TABS : STORE_TABS);
  return tabs.filter(([tab]) => tab !== "pipeline" || state.workflow?.pipeline);
}

function drawTabs() {
  const row = route.id ? state.workflow?.workflow : null;
  const letters = state.needs.filter((item) => item.kind === "message" && item.workflow_id === route.id);
  const messages = route.id ? letters.reduce((sum, item) => sum + item.count, 0) : state.unread;
  const counts = { gates: row?.waiting, reviews: row?.reviews, messages };
  const items = tabsHere().map(([tab, name]) => ({ id: tab, name, href: patched({ tab }), here: tab === route.tab, count: counts[tab] }));
  const strip = part("tabs");
  strip.hidden = !items.length;
  keyed(strip, items, ({ name, href, here, count }) => h("a", { href, aria: here ? { current: "page" } : {} },
    name, count > 0 && h("span.badge", count)));
}

function drawPhases() {
  const run = route.id ? state.workflow?.pipeline : null;
  part("phases").hidden = !run;
  if (run) import("./phases.js").then(({ drawn }) => drawn(part("phases"), run.phases, patched({ tab: "pipeline" })), () => {});
}

/** Signed out: nothing from the store stays on the screen. */
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
    ahead.clear(); // anything not taken by now is stale
    if (sessionStorage.getItem("handrail.draft")) import("./deciding.js").then(({ resume }) => resume());
  } catch (error) {
    trouble(error, begin);
  }
}

const top = topBar(part("top"), { route: () => route, go, select });
const strip = needsStrip(part("needs"), (text) => (part("announce").textContent = visible(text)));

listen((change) => {
  if (change.topics.has("connection") && isOut()) return void askToSignIn();
  if (!state.session) return top.update();
  if (change.topics.has("connection") && state.connection === "live" && !view) follow(); // failed while offline
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
