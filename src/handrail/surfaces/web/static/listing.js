// What the list screens share: one address drawn as rows that are updated in place.
import { dialog, form, trouble } from "./dialog.js";
import { button, h, keyed, placeOf, renew, replace, told, whileSeen } from "./dom.js";
import { paced } from "./paced.js";
import { prose } from "./prose.js";

const SHARED = ["agents", "messages", "board"]; // topics that belong to no workflow

/** True if a change is about one of the topics and, if a workflow is open, about that workflow. */
export function touches(ctx, change, topics) {
  const here = !ctx.id || !change.workflows.size || change.workflows.has(ctx.id);
  return change.all || topics.some((topic) => change.topics.has(topic) && (here || SHARED.includes(topic)));
}

/**
 * A screen over one address. `every`: milliseconds between reloads, if something changes without news; `ages`: each
 * reload redraws the rows, which show how long something lasts.
 * spec: {topics, draw(item, refresh), empty: [sentence, command], path(), items(found), key, tools, head(found), foot(found), every}
 */
export function listing(ctx, spec) {
  const head = h("div.list-head");
  const list = h("ol", { class: "entries " + (spec.looks ?? ""), role: "list" });
  const foot = h("div.list-head");
  const note = h("div.muted", { role: "status" }, "Loading…");
  const at = spec.path ?? (() => `/api/workflows/${ctx.id}/${ctx.tab}`);
  let path = "";

  function show(found) {
    const items = spec.items?.(found) ?? found[ctx.tab];
    for (const [place, draw] of [[head, spec.head], [foot, spec.foot]]) {
      if (draw) renew(place, found, () => h("div.stack", draw(found, refresh)));
    }
    keyed(list, items, (item) => spec.draw(item, refresh), spec.key, spec.ages && Date.now());
    replace(note, items.length ? found.more > 0 && `${found.more} more are not shown.` : empty(...spec.empty));
  }

  const refresh = paced(() => {
    path = at();
    return ctx.api.get(path).then(show).catch((error) => replace(note, problem(error, refresh)));
  });

  const stop = spec.every && whileSeen(refresh, spec.every);
  refresh();
  return {
    node: h("section.screen", spec.tools, head, list, foot, note),
    update: (change) => (touches(ctx, change, spec.topics) || path !== at()) && refresh(),
    close: () => stop?.(),
  };
}

export function smallFacts(...parts) {
  return h("div.small-facts", parts.filter(Boolean).map((part) => h("span", part)));
}

/** One row: what it is, the small facts, then anything that belongs below. */
export function entry(first, small, ...below) {
  return h("li.entry", h("div.first", first), smallFacts(...small), below);
}

export function empty(sentence, command) {
  return h("div.empty", h("p", sentence), command && h("code", command));
}

export function problem(error, retry) {
  return h("div.empty", { role: "alert" }, h("p", told(error)), button("Try again", retry));
}

/** A task's name that opens the inspector; that of a task in another workflow leads there. */
export function taskLink(ctx, id, name, flow = ctx.id) {
  if (id && flow !== ctx.id) return flow && h("a", { href: placeOf(flow, id) }, name ?? "task");
  return id && button(name ?? ctx.tasks().get(id)?.name ?? id, () => ctx.select(id), "link");
}

/** What else a decision could have been. Agents list all options they considered, usually including the chosen one. */
export function notChosen({ alternatives, chosen }) {
  const others = alternatives.filter((one) => one !== chosen);
  return others.length > 0 && h("p.muted", `Not chosen: ${others.join("; ")}`);
}

export async function openDocument(ctx, name, note) {
  const box = dialog(name, "wide");
  const asked = ctx.api.get(`/api/workflows/${ctx.id}/documents/${encodeURIComponent(name)}`);
  const show = ({ text, path, cut }) =>
    [smallFacts(h("code", path), cut && "too long to show in full", note), h("div.paper", prose(text))];
  replace(box.body, await asked.then(show, trouble));
}

/** A button that waits for its work and reports errors beside itself. */
export function action(label, run, looks) {
  const said = h("span.bad", { role: "alert" });
  const node = button(label, async () => {
    node.disabled = true;
    replace(said);
    await Promise.resolve().then(run).catch((error) => replace(said, told(error)));
    node.disabled = false;
  }, looks);
  return [node, said];
}

/** A button that asks for a few words first. */
export function asking(label, question, run, refresh, looks) {
  const text = { label: question, why: "This cannot be empty." };
  const send = (words) => run(words).then(refresh);
  return button(label + "…", () => form({ title: label, text, act: label, looks: "primary", run: send }), `asking ${looks ?? ""}`);
}

export function releasing(ctx, task, refresh, looks, more) {
  return ctx.decides && asking("Release", "Why release it?", (reason) => ctx.api.post(`/api/tasks/${task}/release`, { reason, ...more }), refresh, looks);
}

/** A field whose text becomes a parameter of the address once somebody stops typing. */
export function finder(ctx, name, label) {
  let wait = 0;
  const input = () => {
    clearTimeout(wait);
    wait = setTimeout(() => ctx.go({ [name]: field.value.trim(), quiet: true }), 150);
  };
  const props = { class: "field", type: "search", placeholder: label, aria: { label }, value: ctx.param(name) };
  const field = h("input", { ...props, on: { input } });
  return field;
}
