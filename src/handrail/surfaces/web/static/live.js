// What the page knows, and how it stays current: one snapshot, then numbered news. Creates no elements.
import { ahead } from "./ahead.js";
import { setSkew } from "./dom.js";

// The proof that this page was signed in: a cookie goes to every port of a machine, this stays with ours. A link brings
// it in the address, where it must not remain; nor must a code that was refused.
const PROOF = "handrail.proof";
const [, brought] = /^#proof=([\w-]+)/.exec(location.hash) ?? [];
const refusedLink = new URLSearchParams(location.search).has("token");
if (brought) keepProof(brought);
if (brought || refusedLink) history.replaceState(null, "", location.pathname + (brought ? "" : location.hash));

export function keepProof(proof) {
  localStorage.setItem(PROOF, proof);
}

export const state = {
  session: null,
  connection: "connecting", // live, reconnecting, offline, signed-out
  since: 0, // when the connection was lost
  workflows: new Map(),
  closed: 0,
  more: 0, // workflows beyond those
  archived: false, // whether closed workflows are loaded too
  needs: [],
  moreNeeds: 0, // further ones on the server
  unread: 0,
  workflow: null, // the open workflow's document, its tasks as a Map
  position: 0,
  refusedLink, // somebody came with a link that does not work
};

const apiError = (status, { code = "FAILED", message = "The server did not answer.", hint = "", details = {} } = {}) =>
  Object.assign(new Error(message), { status, code, hint, details });

/** What the feed does when the server does not answer, when it does, and when everything is loaded. */
export const line = { failed() {}, worked() {}, loaded() {} };
const LOOK_MS = 30000; // the longest a read may take

function send(method, path, body, proof) {
  if (method === "GET") return ahead.get(path) ?? fetch(path, { signal: AbortSignal.timeout(LOOK_MS) });
  const headers = { "content-type": "application/json", "x-handrail-proof": proof ?? "" };
  return fetch(path, { method, headers, body: JSON.stringify(body) });
}

async function ask(method, path, body) {
  const proof = localStorage.getItem(PROOF);
  const sent = send(method, path, body, proof);
  ahead.delete(path);
  const response = await sent.catch(() => {
    line.failed();
    throw apiError(0, { hint: "Is `handrail up` still running?" });
  });
  line.worked();
  setSkew(Date.parse(response.headers.get("date")) - Date.now() || 0);
  const told = await response.json().catch(() => ({}));
  const isUnproven = told.error?.code === "PROOF_MISSING";
  if (isUnproven && proof === localStorage.getItem(PROOF)) localStorage.removeItem(PROOF); // not one that arrived meanwhile
  if (isUnproven || (response.status === 401 && path !== "/api/session")) signOut();
  if (!response.ok) throw apiError(response.status, told.error);
  return told;
}

export const api = {
  get: (path) => ask("GET", path),
  post: (path, body = {}) => ask("POST", path, body),
};

// Notifying the screens: at once after a quiet period, and at most every 60 ms.

const listeners = new Set();
export const noChange = () => ({ topics: new Set(), workflows: new Set(), tasks: new Set(), all: false });
let change = null;
let toldAt = 0;

export function listen(run) {
  listeners.add(run);
  return () => listeners.delete(run);
}

export function touch({ topics = [], workflows = [], tasks = [], all = false }) {
  if (!change) {
    change = noChange();
    setTimeout(tell, Math.max(0, toldAt + 60 - Date.now()));
  }
  topics.forEach((topic) => change.topics.add(topic));
  workflows.forEach((id) => change.workflows.add(id));
  tasks.forEach((id) => change.tasks.add(id));
  change.all ||= all;
}

function tell() {
  const told = change;
  change = null;
  toldAt = Date.now();
  for (const run of [...listeners]) run(told);
}

export function connected(connection) {
  if (connection === state.connection) return;
  if (connection !== "offline") state.since = Date.now();
  state.connection = connection;
  touch({ topics: ["connection"] });
}

export const isOut = () => state.connection === "signed-out";
export const signOut = () => connected("signed-out"); // the feed notices and ends

let loading = null;

/** False while there is nothing yet that news could change. */
export const isLoaded = () => !loading && state.session !== null;

/** Reloads everything: at the start, after signing in, and if the feed cannot continue. `id`: the open workflow. */
export function load(id = state.workflow?.workflow.id) {
  loading ??= loadAll(id).finally(() => (loading = null));
  return loading;
}

/** Whether an error may be temporary: no answer, or a server in trouble. */
export const isPassing = (error) => !(error.status >= 400 && error.status < 500);

async function loadAll(id) {
  const isFirst = !state.session;
  const open = loadWorkflow(id).catch(() => {}); // a missing one is reported when it is opened
  const [session, home] = await Promise.all([api.get("/api/session"), loadHome(), loadNeeds(), open]);
  state.session = session;
  state.position = Math.min(home.position, state.workflow?.position ?? home.position);
  loading = null;
  line.loaded();
  if (!isFirst) touch({ all: true });
}

export async function loadNeeds() {
  const { items, more } = await api.get("/api/needs");
  Object.assign(state, { needs: items, moreNeeds: more });
  touch({ topics: ["needs"] });
}

export async function loadHome() {
  const home = await api.get("/api/home" + (state.archived ? "?archived=1" : ""));
  Object.assign(state, { unread: home.unread, closed: home.closed, more: home.more, workflows: new Map() });
  takeRows(home.workflows);
  touch({ topics: ["workflows"], workflows: home.workflows.map((row) => row.id) });
  return home;
}

/** The end of a workflow's id, if another one has the same name. */
export function tail({ id, name }) {
  return [...state.workflows.values()].some((other) => other.id !== id && other.name === name) ? " …" + id.slice(-6) : "";
}

export function takeRows(rows) {
  for (const row of rows) {
    state.workflows.set(row.id, row);
    if (row.id === state.workflow?.workflow.id) state.workflow.workflow = row;
  }
}

let wanted = null;

export async function loadWorkflow(id = null) {
  wanted = id;
  const found = id ? await api.get("/api/workflows/" + encodeURIComponent(id)) : null;
  if (wanted !== id) return;
  state.workflow = found && { ...found, tasks: new Map(found.tasks.map((row) => [row.id, row])) };
}

/** Makes this workflow the open one (none with null); throws if it does not exist. */
export async function openWorkflow(id) {
  state.workflow = null;
  await loadWorkflow(id);
}

/** Loads everything, then follows changes. False if nobody is signed in. */
export async function start(id) {
  try {
    await load(id);
    state.connection = "connecting";
  } catch (error) {
    if (error.status !== 401) throw error;
    signOut();
  }
  import("./feed.js").then((feed) => feed.join());
  return !isOut();
}
