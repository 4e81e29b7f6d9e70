// What the list screens share: one address drawn as rows that are patched in place. No screen of its own.
import { button, h, replace } from "./dom.js";

const SPOTS = "a, button, input, select, summary";
const SHARED = ["agents", "messages", "board"]; // topics that belong to no workflow

/** Holds one node per item. A row is drawn again only when its item changed, and never while somebody writes in it. */
export function keyed(parent, items, keyOf, draw, also = "") {
  const wanted = new Set(items.map(keyOf));
  const old = new Map();
  for (const node of [...parent.children]) {
    if (wanted.has(node.key)) old.set(node.key, node);
    else node.remove(); // first of all: what stays is then not moved, and keeps the focus
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

/** Puts the fresh node in the old one's place; the focus stays on the same spot. */
function takeOver(node, fresh) {
  const spots = (within) => [within, ...within.querySelectorAll(SPOTS)];
  const spot = node ? spots(node).indexOf(document.activeElement) : -1;
  node?.replaceWith(fresh);
  if (spot >= 0) spots(fresh)[spot]?.focus({ preventScroll: true });
  return fresh;
}

/** True where a change is about one of the topics, and about this workflow where one is open. */
export function touches(ctx, change, topics) {
  const here = !ctx.id || !change.workflows.size || change.workflows.has(ctx.id);
  return change.all || topics.some((topic) => change.topics.has(topic) && (here || SHARED.includes(topic)));
}

/**
 * A screen over one address. `every`: milliseconds between looks, where something changes without news.
 * spec: {path(), topics, items(found), draw(item, refresh), empty: [sentence, command], key, tools, head(found), foot(found), every}
 */
export function listing(ctx, spec) {
  const head = h("div", { class: "list-head" });
  const list = h("ol", { class: "entries " + (spec.looks ?? ""), role: "list" });
  const foot = h("div", { class: "list-head" });
  const note = h("div", { class: "muted", role: "status" }, "Loading…");
  const whole = () => 0;
  let path = "";
  let busy = false;
  let again = false;

  function show(found) {
    const items = spec.items(found);
    const also = spec.every ? String(Date.now()) : "";
    for (const [place, draw] of [[head, spec.head], [foot, spec.foot]]) {
      if (draw) keyed(place, [found], whole, () => h("div", { class: "stack" }, draw(found, refresh)));
    }
    keyed(list, items, spec.key ?? ((item) => item.id), (item) => spec.draw(item, refresh), also);
    replace(note, items.length ? found.more > 0 && `${found.more} more are kept, not shown here.` : empty(...spec.empty));
  }

  async function refresh() {
    again = true;
    if (busy) return;
    busy = true;
    while (again || path !== spec.path()) {
      again = false;
      path = spec.path();
      await ctx.api.get(path).then(show).catch((error) => replace(note, problem(error, refresh)));
      await new Promise((rested) => setTimeout(rested, 250));
    }
    busy = false;
  }

  const clock = spec.every && setInterval(() => document.hidden || refresh(), spec.every);
  refresh();
  return {
    node: h("section", { class: "screen" }, spec.tools, head, list, foot, note),
    update: (change) => (touches(ctx, change, spec.topics) || path !== spec.path()) && refresh(),
    close: () => clearInterval(clock),
  };
}

export function facts(...parts) {
  return h("div", { class: "small-facts" }, parts.filter(Boolean).map((part) => h("span", {}, part)));
}

/** One row: what it is, the small facts, then whatever belongs below. */
export function entry(first, small, ...below) {
  return h("li", { class: "entry" }, h("div", { class: "first" }, first), facts(...small), below);
}

export function empty(sentence, command) {
  return h("div", { class: "empty" }, h("p", {}, sentence), command && h("code", {}, command));
}

const told = (error) => [error.message, error.hint].filter(Boolean).join(" ");

export function problem(error, retry) {
  return h("div", { class: "empty", role: "alert" }, h("p", {}, told(error)), button("Try again", retry));
}

/** A task's name that opens the inspector. */
export function taskLink(ctx, id, name) {
  return id && button(name ?? ctx.state.workflow?.tasks.get(id)?.name ?? id, () => ctx.select(id), "link");
}

/** A button that waits for its work, and says beside itself what went wrong. */
export function action(label, run, looks) {
  const said = h("span", { class: "bad", role: "alert" });
  const node = button(label, async () => {
    node.disabled = true;
    replace(said);
    await Promise.resolve().then(run).catch((error) => replace(said, told(error)));
    node.disabled = false;
  }, looks);
  return [node, said];
}

/** A button that asks for a few words first; `run` gets them, and then the list is read again. */
export function asking(label, question, run, refresh, looks) {
  const place = h("div", { class: "asking row" });
  const close = () => replace(place, button(label, open, looks));
  function open() {
    const field = h("textarea", { class: "field", rows: 2, placeholder: question, aria: { label: question } });
    const send = async () => {
      const text = field.value.trim();
      if (!text) throw new Error("Nothing is written yet.");
      await run(text);
      close();
      refresh();
    };
    replace(place, field, action(label, send, "primary"), button("Cancel", close));
    field.focus();
  }
  close();
  return place;
}

/** One choice out of a few: [[value, text], …]. */
export function chips(label, options, chosen, choose) {
  const chip = ([value, text]) =>
    button(text, () => choose(value), "chip", { aria: { pressed: String(value === chosen) } });
  return h("div", { class: "row chips", role: "group", aria: { label } }, options.map(chip));
}

/** A field whose words become a parameter of the address once somebody stops typing. */
export function finder(ctx, name, label) {
  let wait = 0;
  const input = () => {
    clearTimeout(wait);
    wait = setTimeout(() => ctx.go({ [name]: field.value.trim(), quiet: true }), 150);
  };
  const props = { class: "field", type: "search", placeholder: label, aria: { label }, value: ctx.params.get(name) ?? "" };
  const field = h("input", { ...props, on: { input } });
  return field;
}
