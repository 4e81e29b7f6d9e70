// The graph screen: which graph is drawn, what is chosen and what the filters leave. The picture is graph_view.js.

import { button, h, icon, iconButton, replace } from "./dom.js";
import { graphView } from "./graph_view.js";

export const title = "Graph";

const STATES = ["in_progress", "planning", "failed", "paused", "pending", "blocked", "completed", "skipped"];
const WORDS = { in_progress: "running", completed: "done" };
const MOST_BOXES = 2000; // more do not move smoothly
const LEGIBLE = 0.5;

/** The task, all that it waits for and all that waits for it. */
function lineage(id, tasks) {
  const unlocks = new Map([...tasks.keys()].map((task) => [task, []]));
  for (const task of tasks.values()) for (const need of task.needs) unlocks.get(need)?.push(task.id);
  const found = new Set([id]);
  for (const next of [(at) => tasks.get(at)?.needs ?? [], (at) => unlocks.get(at) ?? []]) {
    const todo = [id];
    while (todo.length) {
      const more = next(todo.pop()).filter((other) => !found.has(other));
      for (const other of more) found.add(other);
      todo.push(...more);
    }
  }
  return found;
}

export function screen(ctx) {
  const tasks = () => ctx.state.workflow?.tasks ?? new Map();
  const param = (name) => ctx.params.get(name) ?? "";
  const list = (name) => param(name).split(",").filter(Boolean);
  const toggle = (name, one) => {
    const others = list(name).filter((other) => other !== one);
    ctx.go({ [name]: (list(name).includes(one) ? others : [...others, one]).join(",") });
  };

  const view = graphView(tasks, press);
  const tools = h("div", { class: "graph-tools", role: "toolbar", aria: { label: "Graph" } });
  const legend = h("div", { class: "graph-legend", role: "group", aria: { label: "Show only" } });
  const note = h("div", { class: "empty graph-note", role: "status", hidden: true });
  const node = h("section", { class: "graph fills", aria: { label: "Graph of the plan" } },
    view.frame, tools, legend, view.map, note);
  let graph = null;
  let asked = "";
  let marked = "";
  let opening = null; // the tasks of a group that was pressed

  function press(box) {
    if (box?.kind !== "group") return ctx.select(box?.id ?? null);
    opening = box.tasks;
    toggle("open", box.group);
  }

  function address() {
    const wanted = new URLSearchParams({ open: param("open"), ...(param("groups") && { grouped: param("groups") }) });
    return `/api/workflows/${encodeURIComponent(ctx.id)}/graph?${wanted}`;
  }

  async function load() {
    const mine = (asked = address());
    try {
      const told = await ctx.api.get(mine);
      if (mine === asked) show(told);
    } catch (error) {
      if (mine === asked) say(error.message, " ", error.hint, " ", button("Try again", load));
    }
  }

  function show(told) {
    const [first, otherwise] = [!graph, graph && graph.grouped !== told.grouped];
    const stamp = (one) => JSON.stringify([one?.version, one?.nodes]);
    if (stamp(told) !== stamp(graph)) view.draw(told);
    graph = told;
    if (graph.nodes.length) say();
    else if (ctx.state.workflow?.pipeline) say("This run has not divided its work into tasks yet. Pipeline shows how far it is.");
    else say("This plan has no tasks yet. An agent writes them with ", h("code", {}, "workflow_set_plan"), ".");
    dress(true);
    if (first) start();
    else if (otherwise) view.show();
    else if (opening) view.show(opening, LEGIBLE);
    opening = null;
  }

  function say(...words) {
    note.hidden = !words.length;
    replace(note, words);
  }

  /** All of it; on a phone what is under way, as all of it could not be read there. */
  function start() {
    if (node.clientWidth < 600) active();
    else view.show();
    if (param("task")) view.reveal(param("task"));
  }

  function active() {
    const rows = [...tasks().values()];
    const ids = (...states) => rows.filter((row) => states.includes(row.status)).map((row) => row.id);
    const found = [ids("in_progress", "planning"), ids("failed", "paused"), ids("pending")];
    view.show(found.find((some) => some.length), LEGIBLE);
  }

  function marks(force) {
    const [status, agent, text, task] = [list("status"), param("agent"), param("q").toLowerCase(), param("task")];
    const key = [status, agent, text, task].join("|");
    if (key === marked && !force) return;
    const fits = (row) => (!status.length || status.includes(row.status)) && (!agent || row.agent === agent)
      && `${row.name} ${row.id} ${row.agent ?? ""}`.toLowerCase().includes(text);
    const filters = status.length || agent || text;
    const kept = filters ? new Set([...tasks().values()].filter(fits).map((row) => row.id)) : null;
    view.mark(task, tasks().has(task) ? lineage(task, tasks()) : null, kept);
    if (key !== marked && task) view.reveal(task);
    marked = key;
  }

  const pressed = (on, more) => ({ aria: { pressed: String(Boolean(on)) }, ...more });

  /** An open group. Its key tells what makes it a group: "lane:api", or "part:" and the task it belongs to. */
  function openGroup(key) {
    const name = key.slice(key.indexOf(":") + 1);
    const label = tasks().get(name)?.name ?? name;
    return button([label, icon("close")], () => toggle("open", key), "chip", { title: "Close this group" });
  }

  function agentChoice(agents) {
    const change = (event) => ctx.go({ agent: event.target.value });
    const option = (value, label = value) => h("option", { value, selected: value === param("agent") }, label);
    return h("select", { class: "field", aria: { label: "Agent" }, on: { change } },
      option("", "All agents"), agents.map((name) => option(name)));
  }

  function toolbar(agents) {
    const tooMany = graph?.grouped && tasks().size > MOST_BOXES;
    const about = tooMany ? "Too many tasks to show one by one" : "One box for each group";
    return [
      list("open").map(openGroup),
      agents.length > 1 && agentChoice(agents),
      button("Critical path", () => ctx.go({ critical: param("critical") ? null : "1" }), "", pressed(param("critical"))),
      graph?.can_group && button("Groups", () => ctx.go({ groups: graph.grouped ? "0" : "1", open: null }), "",
        pressed(graph.grouped, { disabled: tooMany, title: about })),
      button("Active", active, "", { title: "Go to what is under way" }),
      iconButton("fit", "Fit (f)", () => view.show()),
      iconButton("plus", "Closer (+)", () => view.zoom(1.35), { class: "button icon-button wide-only" }),
      iconButton("minus", "Farther (-)", () => view.zoom(1 / 1.35), { class: "button icon-button wide-only" }),
    ];
  }

  function state([status, count]) {
    const on = list("status").includes(status);
    const words = `${WORDS[status] ?? status} ${count}`;
    return button([icon(status), words], () => toggle("status", status), "s-" + status, pressed(on));
  }

  /** Replace what a part shows only where it changed: the focus stays, and so does an open list. */
  function renew(part, key, make) {
    if (part.key === String(key)) return;
    const spot = [...part.children].indexOf(document.activeElement);
    replace(part, make());
    part.key = String(key);
    part.children[spot]?.focus();
  }

  function dress(force) {
    marks(force);
    view.frame.classList.toggle("show-critical", param("critical") === "1");
    const rows = [...tasks().values()];
    const agents = [...new Set(rows.map((row) => row.agent).filter(Boolean))].sort();
    renew(tools, [ctx.params, graph?.grouped, graph?.can_group, agents], () => toolbar(agents));
    const counts = STATES.map((status) => [status, rows.filter((row) => row.status === status).length]);
    renew(legend, [param("status"), counts], () => counts.filter(([, count]) => count).map(state));
  }

  const sizes = new ResizeObserver(([entry]) => {
    view.resized(entry.contentRect);
    if (graph && param("task")) view.reveal(param("task"));
  });
  sizes.observe(view.frame);
  const ages = setInterval(() => tasks().forEach((row) => row.status === "in_progress" && view.paint(row.id)), 30000);
  load();

  return {
    node,
    fit: () => view.show(),
    update(change) {
      if (address() !== asked || change.all || change.topics.has("plan")) load();
      change.tasks.forEach(view.paint);
      dress(change.all || (change.tasks.size && ["status", "agent", "q"].some(param)));
    },
    close() {
      clearInterval(ages);
      sizes.disconnect();
    },
  };
}
