// What the list screens share: one address drawn as rows that are updated in place. Not a screen of its own.
import { dialog, form, trouble } from "./dialog.js";
import { button, h, keyed, replace, told } from "./dom.js";
import { prose } from "./prose.js";

const SHARED = ["agents", "messages", "board"]; // topics that belong to no workflow

/** True if a change is about one of the topics and, if a workflow is open, about that workflow. */
export function touches(ctx, change, topics) {
  const here = !ctx.id || !change.workflows.size || change.workflows.has(ctx.id);
  return change.all || topics.some((topic) => change.topics.has(topic) && (here || SHARED.includes(topic)));
}

/**
 * A screen over one address. `every`: milliseconds between reloads, if something changes without news; `ages`: rows show
 * how long something lasts, so each reload redraws them.
 * spec: {topics, draw(item, refresh), empty: [sentence, command], path(), items(found), key, tools, head(found), foot(found), every}
 */
export function listing(ctx, spec) {
  const head = h("div.list-head");
  const list = h("ol", { class: "entries " + (spec.looks ?? ""), role: "list" });
  const foot = h("div.list-head");
  const note = h("div.muted", { role: "status" }, "Loading…");
  const whole = () => 0;
  const at = spec.path ?? (() => `/api/workflows/${ctx.id}/${ctx.tab}`);
  let path = "";
  let busy = false;
  let again = false;

  function show(found) {
    const items = spec.items?.(found) ?? found[ctx.tab];
    const also = spec.ages ? String(Date.now()) : "";
    for (const [place, draw] of [[head, spec.head], [foot, spec.foot]]) {
      if (draw) keyed(place, [found], whole, () => h("div.stack", draw(found, refresh)));
    }
    keyed(list, items, spec.key ?? ((item) => item.id), (item) => spec.draw(item, refresh), also);
    replace(note, items.length ? found.more > 0 && `${found.more} more are not shown.` : empty(...spec.empty));
  }

  async function refresh() {
    again = true;
    if (busy) return;
    busy = true;
    while (again || path !== at()) {
      again = false;
      path = at();
      await ctx.api.get(path).then(show).catch((error) => replace(note, problem(error, refresh)));
      await new Promise((rested) => setTimeout(rested, 250));
    }
    busy = false;
  }

  const clock = spec.every && setInterval(() => document.hidden || refresh(), spec.every);
  refresh();
  return {
    node: h("section.screen", spec.tools, head, list, foot, note),
    update: (change) => (touches(ctx, change, spec.topics) || path !== at()) && refresh(),
    close: () => clearInterval(clock),
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

/** A task's name that opens the inspector. */
export function taskLink(ctx, id, name) {
  return id && button(name ?? ctx.state.workflow?.tasks.get(id)?.name ?? id, () => ctx.select(id), "link");
}

/** What else a decision could have been. Agents list all options they considered, usually including the chosen one. */
export function notChosen({ alternatives, chosen }) {
  const others = alternatives.filter((one) => one !== chosen);
  return others.length > 0 && h("p.muted", `Not chosen: ${others.join("; ")}`);
}

/** A document of the run in its current version. */
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

/** A button that asks for a few words first; `run` gets them, and then the list is reloaded. */
export function asking(label, question, run, refresh, looks) {
  const text = { label: question, why: "This cannot be empty." };
  const send = (words) => run(words).then(refresh);
  return button(label + "…", () => form({ title: label, text, act: label, looks: "primary", run: send }), `asking ${looks ?? ""}`);
}

/** One choice out of a few: [[value, text], …]. */
export function chips(label, options, chosen, choose) {
  const chip = ([value, text]) =>
    button(text[0].toUpperCase() + text.slice(1), () => choose(value), "chip", { aria: { pressed: String(value === chosen) } });
  return h("div.row.chips", { role: "group", aria: { label } }, options.map(chip));
}

/** A field whose text becomes a parameter of the address once somebody stops typing. */
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
