// Making elements. Agent text is hostile: all of it enters the page as text nodes, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const RING = "M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3z";

// Strokes in a box of 16 by 16.
const ICONS = {
  pending: RING,
  blocked: RING + "M4.6 11.4l6.8-6.8",
  planning: "M3 13l.7-3L11 2.7 13.3 5 6 12.3z",
  in_progress: "M5 3.5v9L12.5 8z",
  paused: "M6 4v8M10 4v8",
  failed: "M4 4l8 8M12 4l-8 8",
  completed: "M3 8.5L6.5 12 13 4.5",
  skipped: "M3 4l5 4-5 4zM12 4v8",
  gate: "M8 2l6 6-6 6-6-6zM8 5.5v3M8 10.6v.1",
  review: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.5v3M6.5 8h3",
  message: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9zM10.5 10.5L14 14",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 1 0 0-6zM8 1v1M8 14v1M1 8h1M14 8h1M3 3l.7.7M12.3 12.3l.7.7M13 3l-.7.7M3.7 12.3L3 13",
  moon: "M13 9.8A5.5 5.5 0 1 1 6.2 3 4.5 4.5 0 0 0 13 9.8z",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  agent: "M8 2.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 1 0 0-5zM3 13.5c.5-3 2.5-4 5-4s4.5 1 5 4",
  link: "M6.5 9.5l3-3M7 5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.8 2.8 0 0 1-4-4L5 7",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 14h2",
  home: "M2.5 8L8 3l5.5 5M4 7v6h8V7",
  down: "M4 6l4 4 4-4",
};

const WORDS = { in_progress: "running", completed: "done" };

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "aria") for (const [part, told] of Object.entries(value)) node.setAttribute("aria-" + part, told);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  put(node, children);
  return node;
}

function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

/** An element. Props: attributes, `on: {click}`, `data: {id}`, `aria: {label}`. Children: text, nodes, lists, null. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

export function replace(node, ...children) {
  node.replaceChildren();
  put(node, children);
  return node;
}

export function icon(name) {
  const path = svg("path", { d: ICONS[name] ?? ICONS.pending });
  return svg("svg", { class: "icon i-" + name, viewBox: "0 0 16 16", aria: { hidden: "true" } }, path);
}

/** A state: icon and word, so that colour is never the only sign. */
export function pill(status, text) {
  const known = { waiting: "gate", active: "in_progress", cancelled: "skipped" }[status] ?? status;
  return h("span", { class: "pill s-" + status }, icon(known), text ?? WORDS[status] ?? status.replaceAll("_", " "));
}

/** A button; `looks` are further classes, such as "primary". */
export function button(label, click, looks = "", props = {}) {
  return h("button", { type: "button", class: "button " + looks, ...props, on: { click } }, label);
}

/** A button with only an icon; the label is its name and its tooltip. */
export function iconButton(name, label, click, props = {}) {
  return button(icon(name), click, "icon-button", { title: label, aria: { label }, ...props });
}

let skew = 0;

/** The server's clock, as far as known: a phone's own may be minutes off. */
export function now() {
  return Date.now() + skew;
}

export function setSkew(ms) {
  skew = Math.abs(ms) > 2000 ? ms : 0;
}

/** A length of time in at most two units: "2 h 5 min". */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const two = (large, unit, small, rest) => `${large} ${unit}` + (small ? ` ${small} ${rest}` : "");
  if (seconds < 60) return seconds + " s";
  if (minutes < 60) return two(minutes, "min", minutes < 10 ? seconds % 60 : 0, "s");
  if (hours < 24) return two(hours, "h", minutes % 60, "min");
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

export function ago(ms) {
  const past = now() - ms;
  if (past < 45e3) return "just now";
  if (past < 3600e3) return Math.round(past / 60e3) + " min ago";
  if (past < 86400e3) return Math.round(past / 3600e3) + " h ago";
  return Math.round(past / 86400e3) + " d ago";
}

export function clock(ms) {
  return new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

/** A <time> that stays true while the page lies open. */
export function when(ms) {
  if (!ms) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: new Date(ms).toISOString(), title: clock(ms), data: { at: ms } }, ago(ms));
}

setInterval(() => {
  for (const node of document.querySelectorAll("time[data-at]")) {
    const text = ago(Number(node.dataset.at));
    if (node.textContent !== text) node.textContent = text;
  }
}, 15000);

/** Cut in the middle: beginnings and ends are what tells names apart. */
export function cut(text, size) {
  if (text.length <= size) return text;
  const head = Math.ceil((size - 1) * 0.6);
  return text.slice(0, head) + "…" + text.slice(text.length - (size - 1 - head));
}

/** A progress bar: what is finished, then what failed. */
export function bar(finished, total, failed = 0) {
  const part = (count) => (total ? (100 * count) / total : 0);
  const told = `${finished} of ${total} finished` + (failed ? `, ${failed} failed` : "");
  const range = { valuemin: 0, valuemax: total, valuenow: finished, label: told };
  return svg("svg", { class: "bar", role: "progressbar", aria: range, viewBox: "0 0 100 6", preserveAspectRatio: "none" },
    svg("rect", { class: "bar-done", width: part(finished), height: 6 }),
    svg("rect", { class: "bar-failed", x: part(finished), width: part(failed), height: 6 }));
}
