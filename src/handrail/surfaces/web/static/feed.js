// The feed of news. One tab of the browser holds it and tells the others: the one that was looked at last.
import { ago } from "./dom.js";
import { api, connected, isOut, line, listen, load, loadHome, signOut, state } from "./live.js";
import { apply } from "./news.js";

const channel = new BroadcastChannel("handrail-feed");
let source = null;
let leads = false;
let failures = 0;
let retry = 0;
let heardAt = 0; // when the server last sent anything
let checking = false;

// The server sends something every five seconds, if only to say that there is no news. After two misses we are cut off.
const SILENCE_MS = 12500;

channel.onmessage = ({ data }) => {
  if (isOut() && data.connection === "live" && localStorage.getItem("handrail.proof")) location.reload(); // signed in next door
  if (data.doubts && leads) again();
  if (data.asks && leads) tellAll(state.connection);
  if (leads && data.connection === "signed-out") again();
  if (leads || isOut()) return;
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
  if (!leads || isOut()) return;
  const feed = new EventSource("/api/feed?after=" + state.position);
  source = feed;
  heardAt = Date.now();
  const heard = () => (heardAt = Date.now());
  feed.addEventListener("beat", heard);
  feed.addEventListener("hello", () => {
    heard();
    failures = 0;
    tellAll("live");
  });
  feed.onmessage = (event) => {
    heard();
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

/** Checks the session first: a refused feed does not say why. */
async function again() {
  if (checking) return;
  checking = true;
  try {
    await api.get("/api/session");
    dial();
  } catch (error) {
    if (error.status === 401) signOut();
    else lost();
  } finally {
    checking = false;
  }
}

/** A request got no answer: nothing here is live then, whatever the stream looks like. The leading tab finds out. */
line.failed = () => {
  if (state.connection !== "live") return;
  if (leads) return lost();
  connected("reconnecting");
  channel.postMessage({ doubts: true });
};

/** The server answers again: no need to wait for the next attempt. */
line.worked = () => {
  const isLost = state.connection === "reconnecting" || state.connection === "offline";
  if (isLost && leads && !source) again();
  if (isLost && !leads) channel.postMessage({ asks: true });
};

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
    leads = false; // another tab took over
    hangUp();
    lead(false);
  });
}

/** Starts following; a tab that is signed out only waits for another to sign in. */
export function join() {
  if (isOut()) return;
  if (leads) return dial();
  channel.postMessage({ asks: true });
  if (navigator.locks) return lead(!document.hidden);
  leads = true; // no secure context, such as a phone on plain HTTP: each tab on its own
  dial();
}

function wake() {
  if (document.hidden || isOut()) return;
  if (leads && state.connection !== "live") again();
  if (!leads && navigator.locks) lead(true);
}

listen((change) => {
  if (!change.topics.has("connection") || !isOut()) return;
  hangUp();
  channel.postMessage({ connection: "signed-out" });
});
document.addEventListener("visibilitychange", wake);
addEventListener("online", () => leads && !isOut() && again());

// A dead connection does not announce itself. And which tasks are stuck depends on the clock alone.
setInterval(() => source && Date.now() - heardAt > SILENCE_MS && lost(), 1000);
setInterval(() => {
  if (state.connection === "live" && !document.hidden) loadHome().catch(() => {});
}, 60000);

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-at]")) {
    const text = ago(Number(node.dataset.at));
    if (node.textContent !== text) node.textContent = text;
  }
}, 15000);
