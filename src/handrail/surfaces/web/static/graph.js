// The graph screen: which graph is drawn, what is selected and what the filters leave. graph_view.js draws it.

import { drawingOf } from "./ahead.js";
import { button, h, isNamed, replace, told, whileSeen } from "./dom.js";
import { graphView, isIn } from "./graph_view.js";

const LEGIBLE = 0.5;
const GROUPS_LEGIBLE = 0.65; // zoom at which a group's name and count can be read

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
  const { param, tasks } = ctx;
  const list = (name) => param(name).split(",").filter(Boolean);
  const toggle = (name, one) => {
    const others = list(name).filter((other) => other !== one);
    ctx.go({ [name]: (list(name).includes(one) ? others : [...others, one]).join(",") });
  };

  const view = graphView(tasks, press);
  const tools = h("div");
  const note = h("div.empty.graph-note", { role: "status", hidden: true });
  const node = h("section.graph.fills", { aria: { label: "Graph of the plan" } },
    view.frame, tools, view.map, note);
  let graph = null;
  let asked = "";
  let marked = "";
  let drawTools = null; // set once their script is loaded
  let opening = null; // the tasks of the group that was pressed

  function press(box) {
    if (box?.kind !== "group") return ctx.select(box?.id ?? null);
    opening = box.tasks;
    toggle("open", box.group);
  }

  const address = () => drawingOf(encodeURIComponent(ctx.id), ctx.params);

  async function load() {
    const mine = (asked = address());
    try {
      const found = await ctx.api.get(mine);
      if (mine === asked) show(found);
    } catch (error) {
      if (mine === asked) say(told(error), " ", button("Try again", load));
    }
  }

  function show(found) {
    const [first, otherwise] = [!graph, graph && graph.grouped !== found.grouped];
    const stamp = (one) => JSON.stringify([one.version, one.nodes]);
    if (first || stamp(found) !== stamp(graph)) view.draw(found);
    graph = found;
    if (graph.nodes.length) say();
    else if (ctx.state.workflow?.pipeline) say("This run has no tasks yet. Its progress is under ", h("a", { href: `#/w/${ctx.id}/pipeline` }, "Pipeline"), ".");
    else say("No tasks yet. They appear here once an agent calls ", h("code", "workflow_set_plan"), ".");
    dress(true);
    if (first) start();
    else if (otherwise) fit();
    else if (opening) view.show(opening, LEGIBLE);
    opening = null;
  }

  function say(...words) {
    note.hidden = !words.length;
    replace(note, words);
  }

  /** Shows everything, but on a phone, or if groups would be illegible, only what is in progress. */
  function start() {
    if (node.clientWidth < 600) active();
    else fit();
    if (param("task")) view.reveal(param("task"));
  }

  function fit() {
    view.show();
    if (graph?.grouped && view.scale() < GROUPS_LEGIBLE) active();
  }

  function active() {
    const rows = [...tasks().values()];
    const ids = (...states) => rows.filter((row) => states.includes(row.status)).map((row) => row.id);
    const found = [ids("in_progress", "planning"), ids("failed", "paused"), ids("ready")];
    view.show(found.find((some) => some.length), graph?.grouped ? GROUPS_LEGIBLE : LEGIBLE);
  }

  function marks(force) {
    const [status, agent, text, task] = [list("status"), param("agent"), param("q").toLowerCase(), param("task")];
    const key = [status, agent, text, task].join("|");
    if (key === marked && !force) return;
    const fits = (row) => (!status.length || status.some((one) => isIn(row, one))) && (!agent || row.agent === agent)
      && isNamed(row, text);
    const filters = status.length || agent || text;
    const kept = filters ? new Set([...tasks().values()].filter(fits).map((row) => row.id)) : null;
    view.mark(task, tasks().has(task) ? lineage(task, tasks()) : null, kept);
    if (key !== marked && task) view.reveal(task);
    marked = key;
  }

  function dress(force) {
    marks(force);
    view.frame.classList.toggle("show-critical", param("critical") === "1");
    drawTools?.();
  }

  const sizes = new ResizeObserver(([entry]) => {
    view.resized(entry.contentRect);
    if (graph && param("task")) view.reveal(param("task"));
  });
  sizes.observe(view.frame);
  const stop = whileSeen(() => tasks().forEach((row) => row.status === "in_progress" && view.paint(row.id)), 30000);
  load();
  import("./graph_tools.js").then(({ graphTools }) => {
    drawTools = graphTools(tools, { ctx, list, toggle, active, fit, zoom: view.zoom, graph: () => graph });
    drawTools();
  });

  return {
    node,
    fit,
    update(change) {
      if (address() !== asked || change.all || change.topics.has("plan")) load();
      change.tasks.forEach(view.paint);
      dress(change.all || (change.tasks.size && ["status", "agent", "q"].some(param)));
    },
    close() {
      stop();
      sizes.disconnect();
    },
  };
}
