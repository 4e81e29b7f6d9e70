// Making elements. Agents' text is hostile: all of it enters the page as text nodes, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const RING = "M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3z";
const CROSS = "M4 4l8 8M12 4l-8 8";

// Strokes in a box of 16 by 16.
const ICONS = {
  ready: RING,
  pending: RING + "M5.6 8h.1M8 8h.1M10.4 8h.1",
  blocked: RING + "M4.6 11.4l6.8-6.8",
  planning: "M3 13l.7-3L11 2.7 13.3 5 6 12.3z",
  in_progress: "M5 3.5v9L12.5 8z",
  paused: "M6 4v8M10 4v8",
  failed: CROSS,
  completed: "M3 8.5L6.5 12 13 4.5",
  skipped: "M3 4l5 4-5 4zM12 4v8",
  waiting: "M8 2l6 6-6 6-6-6zM8 5.5v3M8 10.6v.1",
  review: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.5v3M6.5 8h3",
  message: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9zM10.5 10.5L14 14",
  close: CROSS,
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 1 0 0-6zM8 1v1M8 14v1M1 8h1M14 8h1M3 3l.7.7M12.3 12.3l.7.7M13 3l-.7.7M3.7 12.3L3 13",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  agent: "M8 2.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 1 0 0-5zM3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4",
  link: "M6.5 9.5l3-3M7 5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.8 2.8 0 0 1-4-4L5 7",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2",
  home: "M2.5 8L8 3l5.5 5M4 7v6h8V7",
  down: "M4 6l4 4 4-4",
  late: RING + "M8 5.4v2.8l2 1.2",
  lost: "M4.5 2.5h7L8 8l3.5 5.5h-7L8 8z",
};

/** The states of a task, those first that somebody should look at. */
export const STATES = ["failed", "in_progress", "planning", "paused", "ready", "pending", "blocked", "completed", "skipped"];

const WORDS = { in_progress: "running", pending: "waits for subtasks", completed: "done", lost: "stuck" };

export const word = (status) => WORDS[status] ?? status.replaceAll("_", " ");

/** The parts there are, in one line. */
export const joined = (parts, by = " · ") => parts.filter(Boolean).join(by);

export const capital = (text) => text[0].toUpperCase() + text.slice(1);

const sentence = (text) => capital(text) + (/[.!?…]$/.test(text) ? " " : ". ");

/** Text in which `commands` are code. */
const coded = (text) => text.replace(/(?<=: )handrail .+?(?=\. $)/, "`$&`").split("`").map((part, at) => (at % 2 ? h("code", part) : part));

/** What an error says: one sentence on what was wrong, one on what to do. */
export const told = (error) => [error.message, error.hint].filter(Boolean).map((text) => coded(sentence(text)));

// Characters that reverse text or are invisible are shown as their codes, except where they belong to an emoji: a
// joiner between two pictures, a selector after one.
const JOINER = String.raw`(?<!\p{ExtPict}[\ufe0f\u{1f3fb}-\u{1f3ff}]?)\u200d|\u200d(?!\p{ExtPict})|(?<!\p{Emoji})[\ufe0e\ufe0f]`;
const HIDDEN = new RegExp(String.raw`(?:(?![\t\n\r\u200d\ufe0e\ufe0f])[\p{DI}\p{Cc}\p{Zl}\p{Zp}]|${JOINER})+`, "gu");
const PLAIN = /^[\t\n\r -~]*$/; // most text, and cheap to check
const codes = (text) => [...text].map((one) => "U+" + one.codePointAt().toString(16).toUpperCase().padStart(4, "0")).join(" ");

/** The same where only a string will do. */
export const visible = (text) => (PLAIN.test(text) ? text : text.replace(HIDDEN, (found) => `[${codes(found)}]`));

/** A string as nodes, with hidden characters in boxes. */
function seen(text) {
  if (PLAIN.test(text)) return [text];
  let end = 0;
  const parts = [];
  for (const { 0: found, index } of text.matchAll(HIDDEN)) {
    parts.push(text.slice(end, index), h("mark.hidden-code", { title: "Invisible character" }, codes(found)));
    end = index + found.length;
  }
  return [...parts, text.slice(end)];
}

const isNothing = (value) => value === null || value === undefined || value === false;

const maker = (make) => (what, props, ...children) => {
  const [tag, ...classes] = what.split(".");
  const node = make(tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  if (props?.constructor !== Object) children.unshift(props);
  else for (const [name, value] of Object.entries(props)) set(node, name, value);
  put(node, children);
  return node;
};

function set(node, name, value) {
  if (isNothing(value)) return;
  if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
  else if (name === "data") Object.assign(node.dataset, value);
  else if (name === "aria") for (const [part, says] of Object.entries(value)) node.setAttribute("aria-" + part, visible(String(says)));
  else if (name === "value") node.value = value;
  else node.setAttribute(name, value === true ? "" : name === "title" ? visible(value) : value);
}

function put(node, children) {
  const asText = node.namespaceURI === SVG || node.localName === "option"; // these cannot contain elements
  for (const child of children.flat(Infinity)) {
    if (isNothing(child)) continue;
    if (typeof child !== "string") node.append(child);
    else node.append(...(asText ? [visible(child)] : seen(child)));
  }
}

/**
 * An element: "span.muted.small" is a tag with classes. Optional props: attributes, `on: {click}`,
 * `data: {id}`, `aria: {label}`. Children: text, nodes, lists, null.
 */
export const h = maker((tag) => document.createElement(tag));

export const svg = maker((tag) => document.createElementNS(SVG, tag));

export function replace(node, ...children) {
  node.replaceChildren();
  put(node, children);
  return node;
}

export function icon(name) {
  const path = svg("path", { d: ICONS[name] ?? ICONS.ready });
  return svg("svg", { class: "icon i-" + name, viewBox: "0 0 16 16", aria: { hidden: "true" } }, path);
}

/** A state: icon and word, so that colour is never the only sign. */
export function pill(status, text = word(status)) {
  return h("span", { class: "pill s-" + status }, icon(status), text);
}

/** The standing of an open workflow, most urgent first: what it says, and the state whose look it has. */
export const STANDINGS = {
  waits_for_you: ["waits for you", "waiting"], stuck: ["stuck", "lost"], running: ["running", "in_progress"], ready: ["ready", "ready"],
  paused: ["paused", "paused"], failed: ["failed", "failed"], done_but_open: ["done, still open", "completed"],
};

export function standingPill({ standing, status }) {
  const [text, looks] = STANDINGS[standing] ?? [status, status === "abandoned" ? "skipped" : status];
  return pill(looks, word(text));
}

/** A button; `looks` are further classes, such as "primary". */
export function button(label, click, looks = "", props = {}) {
  return h("button", { type: "button", class: "button " + looks, ...props, on: { click } }, label);
}

/** A button with only an icon; the label is its name and its tooltip. */
export function iconButton(name, label, click, props = {}) {
  return button(icon(name), click, "icon-button", { title: label, aria: { label }, ...props });
}

/** One choice out of a few: [[value, text], …]. */
export function chips(label, options, chosen, choose) {
  const chip = ([value, text]) => button(text, () => choose(value), "chip", { aria: { pressed: value === chosen } });
  return h("div.row.chips", { role: "group", aria: { label } }, options.map(chip));
}

/** Repeats something while somebody looks. Returns a function that ends it. */
export function whileSeen(run, ms) {
  const clock = setInterval(() => document.hidden || run(), ms);
  return () => clearInterval(clock);
}

/** What was chosen, as a chip that a press takes back. */
export const taken = (name, title, takeBack) => button([name, icon("close")], takeBack, "chip", { title });

export const clamp = (value, least, most) => Math.max(least, Math.min(value, most));

/** How far a key moves in a list. */
export const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };

/** Whether a task is meant by these words, in small letters. */
export const isNamed = (task, words) => [task.name, task.id, task.agent, task.group].join(" ").toLowerCase().includes(words);

let skew = 0;

/** The server's time, as far as known: a phone's own clock may be minutes off. */
export const now = () => Date.now() + skew;

export const setSkew = (ms) => (skew = Math.abs(ms) > 2000 ? ms : 0);

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** A length of time in at most two units: "2 h 5 min". */
export function span(ms) {
  if (ms < 1000) return "<1 s";
  const seconds = Math.round(ms / 1000);
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const [[unit, size], [smaller, part] = ["", 1]] = UNITS.slice(at);
  const rest = smaller && Math.floor((seconds % size) / part);
  const isExact = unit !== "min" || seconds < 600; // from ten minutes on, seconds say little
  return `${Math.floor(seconds / size)} ${unit}` + (rest && isExact ? ` ${rest} ${smaller}` : "");
}

export function ago(ms) {
  const past = now() - ms;
  if (past < 45e3) return "just now";
  if (past < 59.5 * 60e3) return Math.round(past / 60e3) + " min ago";
  if (past < 23.5 * 3600e3) return Math.round(past / 3600e3) + " h ago";
  return Math.round(past / 86400e3) + " d ago";
}

/** How long a task took, or has taken so far. For a failed one the clock stopped then. */
export const took = (row) =>
  row.started_at && (row.finished_at ?? (row.status === "failed" ? row.updated_at : now())) - row.started_at;

export const clock = (ms) => new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });

/** A <time>; feed.js keeps it current while the page is open. */
export function when(ms) {
  if (!ms) return h("span.muted", "–");
  return h("time", { datetime: new Date(ms).toISOString(), title: clock(ms), data: { at: ms } }, ago(ms));
}

/** Cut in the middle: names differ at their beginnings and ends. */
export function cut(text, size) {
  if (text.length <= size) return text;
  const head = Math.ceil((size - 1) * 0.6);
  return text.slice(0, head).trimEnd() + "…" + text.slice(text.length - (size - 1 - head)).trimStart();
}

export function bar(finished, total, failed = 0) {
  const part = (count) => (total ? (100 * count) / total : 0);
  const told = `${finished} of ${total} finished` + (failed ? `, ${failed} failed` : "");
  const range = { valuemin: 0, valuemax: total, valuenow: finished, label: told };
  return svg("svg.bar", { role: "progressbar", aria: range, viewBox: "0 0 100 6", preserveAspectRatio: "none" },
    svg("rect.bar-done", { width: part(finished), height: 6 }),
    svg("rect.bar-failed", { x: part(finished), width: part(failed), height: 6 }));
}

export const progress = ({ finished, total, failed }) => [bar(finished, total, failed), h("span.number", `${finished}/${total}`)];

/** The address of a workflow, or of one of its tasks. */
export const placeOf = (workflow, task) => `#/w/${encodeURIComponent(workflow)}` + (task ? "?task=" + encodeURIComponent(task) : "");

const SPOTS = "a, button, input, select, summary";

/** Keeps one node per item. A row is redrawn only if its item changed, and never while somebody is writing in it. */
export function keyed(parent, items, draw, keyOf = (item) => item.id, also = "") {
  const wanted = new Set(items.map(keyOf));
  const old = new Map();
  for (const node of [...parent.children]) {
    if (wanted.has(node.key)) old.set(node.key, node);
    else node.remove(); // first, so that the remaining nodes are not moved and keep the focus
  }
  let next = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    const stamp = JSON.stringify(item) + also;
    let node = old.get(key);
    if (node && node === next) next = node.nextSibling;
    if (!node || (node.stamp !== stamp && !node.querySelector("textarea"))) {
      node = takeOver(node, draw(item));
      Object.assign(node, { key, stamp });
    }
    if (node.nextSibling !== next || !node.parentNode) parent.insertBefore(node, next);
  }
}

/** The same for a part that is drawn as a whole from one item. */
export const renew = (place, item, draw) => keyed(place, [item], draw, () => 0);

/** Replaces the old node with the fresh one; the focus stays in the same place. */
function takeOver(node, fresh) {
  const spots = (within) => [within, ...within.querySelectorAll(SPOTS)];
  const spot = node ? spots(node).indexOf(document.activeElement) : -1;
  node?.replaceWith(fresh);
  if (spot >= 0) spots(fresh)[spot]?.focus({ preventScroll: true });
  return fresh;
}
