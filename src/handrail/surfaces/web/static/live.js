// What the page knows, and how it stays true: one snapshot, then numbered news. No elements are made here.
import { setSkew } from "./dom.js";

export const state = {
  session: null,
  connection: "connecting", // live, reconnecting, offline, signed-out
  since: 0, // when the connection was lost
  workflows: new Map(),
  closed: 0,
  more: 0, // workflows beyond those
  archived: false, // closed workflows are loaded as well
  needs: [],
  moreNeeds: 0, // what the server keeps beyond those
  unread: 0,
  workflow: null, // the open one's document, its tasks as a Map
  position: 0,
};

export class ApiError extends Error {
  constructor(status, { code = "FAILED", message = "The server did not answer.", hint = "", details = {} } = {}) {
    super(message);
    Object.assign(this, { status, code, hint, details });
  }
}

async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ApiError(0, { hint: "Is `handrail up` still running?" });
  }
  setSkew(Date.parse(response.headers.get("date")) - Date.now() || 0);
  const told = await response.json().catch(() => ({}));
  if (response.status === 401 && path !== "/api/session") signedOut();
  if (!response.ok) throw new ApiError(response.status, told.error);
  return told;
}

/** Both answer parsed JSON or throw an ApiError. */
export const api = {
  get: (path) => ask("GET", path),
  post: (path, body = {}) => ask("POST", path, body),
};

// Telling the screens, at most each 60 ms.

const listeners = new Set();
let change = null;

export function listen(run) {
  listeners.add(run);
  return () => listeners.delete(run);
}

function touch({ topics = [], workflows = [], tasks = [], all = false }) {
  if (!change) {
    change = { topics: new Set(), workflows: new Set(), tasks: new Set(), all: false };
    setTimeout(tell, 60);
  }
  topics.forEach((topic) => change.topics.add(topic));
  workflows.forEach((id) => change.workflows.add(id));
  tasks.forEach((id) => change.tasks.add(id));
  change.all ||= all;
}

function tell() {
  const told = change;
  change = null;
  for (const run of [...listeners]) run(told);
}

function connected(connection) {
  if (connection === state.connection) return;
  if (connection !== "offline") state.since = Date.now();
  state.connection = connection;
  touch({ topics: ["connection"] });
}

function signedOut() {
  hangUp();
  tellAll("signed-out");
}

// The snapshot.

let early = []; // news that came while the snapshot was on its way
let loading = null;

/** Everything anew: at the start, after signing in, and where the feed cannot go on. */
export function load() {
  loading ??= loadAll().finally(() => (loading = null));
  return loading;
}

async function loadAll() {
  state.session = await api.get("/api/session");
  state.position = (await loadHome()).position;
  await Promise.all([loadNeeds(), loadWorkflow(state.workflow?.workflow.id)]);
  const waiting = early;
  early = [];
  waiting.forEach(apply);
  touch({ all: true });
}

export async function loadNeeds() {
  const { items, more } = await api.get("/api/needs");
  Object.assign(state, { needs: items, moreNeeds: more });
  touch({ topics: ["needs"] });
}

/** Also asked again now and then: who is stuck follows from the clock, and no news tells it. */
async function loadHome() {
  const home = await api.get("/api/home" + (state.archived ? "?archived=1" : ""));
  Object.assign(state, { unread: home.unread, closed: home.closed, more: home.more, workflows: new Map() });
  takeRows(home.workflows);
  touch({ topics: ["workflows"], workflows: home.workflows.map((row) => row.id) });
  return home;
}

function takeRows(rows) {
  for (const row of rows) {
    state.workflows.set(row.id, row);
    if (row.id === state.workflow?.workflow.id) state.workflow.workflow = row;
  }
}

let wanted = null;

async function loadWorkflow(id) {
  wanted = id ?? null;
  const found = id ? await api.get("/api/workflows/" + encodeURIComponent(id)) : null;
  if (wanted !== (id ?? null)) return;
  state.workflow = found && { ...found, tasks: new Map(found.tasks.map((row) => [row.id, row])) };
  touch({ all: true });
}

/** Makes this workflow the open one (none with null); throws an ApiError where there is no such workflow. */
export async function openWorkflow(id) {
  if (wanted === (id ?? null) && (state.workflow?.workflow.id ?? null) === wanted) return;
  state.workflow = null;
  await loadWorkflow(id);
}

const later = {};

/** Runs once for many calls, and not at once: the server is asked again at most each quarter of a second. */
function soon(name, run) {
  later[name] ??= setTimeout(() => {
    delete later[name];
    run().catch(() => {});
  }, 250);
}

function apply(news) {
  if (loading || !state.session) return void early.push(news);
  if (news.position <= state.position) return;
  state.position = news.position;
  takeRows(news.workflows);
  const open = state.workflow?.workflow.id;
  for (const row of news.tasks) {
    if (row.workflow_id !== open) continue;
    if (row.gone) state.workflow.tasks.delete(row.id);
    else state.workflow.tasks.set(row.id, row);
  }
  const topics = new Set(news.topics);
  if (topics.has("gates") || topics.has("reviews") || topics.has("messages")) soon("needs", loadNeeds);
  if (topics.has("messages")) soon("home", loadHome);
  const ours = news.workflows.some((row) => row.id === open);
  if (ours && (topics.has("plan") || topics.has("pipeline"))) soon("workflow", () => loadWorkflow(open));
  touch({ topics, workflows: news.workflows.map((row) => row.id), tasks: news.tasks.map((row) => row.id) });
}

// The feed. One tab of the browser holds it and tells the others: the one that was looked at last.

const channel = new BroadcastChannel("handrail-feed");
let source = null;
let leads = false;
let failures = 0;
let retry = 0;

channel.onmessage = ({ data }) => {
  if (state.connection === "signed-out" && data.connection === "live") location.reload(); // signed in next door
  if (data.asks && leads) tellAll(state.connection);
  if (leads && data.connection === "signed-out") again();
  if (leads || state.connection === "signed-out") return;
  if (data.news) apply(data.news);
  if (data.reset) load().catch(() => {});
  if (data.connection) connected(data.connection);
};

function tellAll(connection) {
  connected(connection);
  channel.postMessage({ connection });
}

function hangUp() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function dial() {
  hangUp();
  if (!leads || state.connection === "signed-out") return;
  const feed = new EventSource("/api/feed?after=" + state.position);
  source = feed;
  feed.addEventListener("hello", () => {
    failures = 0;
    tellAll("live");
  });
  feed.onmessage = (event) => {
    const news = JSON.parse(event.data);
    apply(news);
    channel.postMessage({ news });
  };
  feed.addEventListener("reset", () => {
    channel.postMessage({ reset: true });
    load().then(dial, lost);
  });
  feed.onerror = lost;
}

function lost() {
  hangUp();
  failures += 1;
  tellAll(failures > 3 ? "offline" : "reconnecting");
  retry = setTimeout(again, Math.min(10000, 500 * 2 ** failures));
}

/** Asks who we are first: a feed that is refused does not say why. */
function again() {
  api.get("/api/session").then(dial, (error) => (error.status === 401 ? signedOut() : lost()));
}

let queued = false;

function lead(steal) {
  if (!steal && queued) return;
  queued ||= !steal;
  navigator.locks.request("handrail-feed", { steal }, () => {
    if (!steal) queued = false;
    leads = true;
    dial();
    return new Promise(() => {});
  }).catch(() => {
    leads = false; // another tab took it over
    hangUp();
    lead(false);
  });
}

function wake() {
  if (document.hidden || state.connection === "signed-out") return;
  if (leads && state.connection !== "live") again();
  if (!leads && navigator.locks) lead(true);
}

/** Loads everything and follows. Throws an ApiError with status 401 where nobody is signed in. */
export async function start() {
  try {
    await load();
  } catch (error) {
    if (error.status === 401) signedOut();
    throw error;
  }
  state.connection = "connecting";
  if (leads) return dial();
  channel.postMessage({ asks: true });
  if (navigator.locks) return lead(!document.hidden);
  leads = true; // no secure context, such as a phone on plain HTTP: each tab for itself
  dial();
}

document.addEventListener("visibilitychange", wake);
addEventListener("online", wake);

// A machine that slept has a dead connection and nobody who says so.
let tick = Date.now();
setInterval(() => {
  if (Date.now() - tick > 90000 && source) again();
  tick = Date.now();
  if (state.connection === "live" && !document.hidden) soon("home", loadHome);
}, 60000);
