// What is laid over the graph: the tools above, and the legend below, which is also a filter. Loaded after the graph.

import { button, h, icon, iconButton, replace, word } from "./dom.js";
import { isIn } from "./graph_view.js";

const STATES = ["waiting", "lost", "in_progress", "planning", "failed", "paused", "pending", "blocked", "completed", "skipped"];
const MOST_BOXES = 2000; // more do not move smoothly

/** Puts both into `place`; the screen owns the rest. @returns {() => void} redraws what has changed */
export function graphTools(place, { ctx, tasks, param, list, toggle, active, fit, zoom, graph }) {
  const tools = h("div.graph-tools", { role: "toolbar", aria: { label: "Graph" } });
  const legend = h("div.graph-legend", { role: "group", aria: { label: "Show only" } });
  place.append(tools, legend);

  const pressed = (on, more) => ({ aria: { pressed: String(Boolean(on)) }, ...more });

  /** An open group. Its key says what makes it a group: "lane:api", or "part:" and the task it belongs to. */
  function openGroup(key) {
    const name = key.slice(key.indexOf(":") + 1);
    const label = tasks().get(name)?.name ?? name;
    return button([label, icon("close")], () => toggle("open", key), "chip", { title: "Close this group" });
  }

  function agentChoice(agents) {
    const change = (event) => ctx.go({ agent: event.target.value });
    const option = (value, label = value) => h("option", { value, selected: value === param("agent") }, label);
    return h("select.field", { aria: { label: "Agent" }, on: { change } },
      option("", "All agents"), agents.map((name) => option(name)));
  }

  function toolbar(agents) {
    const tooMany = graph()?.grouped && tasks().size > MOST_BOXES;
    const about = tooMany ? "Too many tasks to show them one by one" : "Show one box per group";
    return [
      list("open").map(openGroup),
      agents.length > 1 && agentChoice(agents),
      button("Critical path", () => ctx.go({ critical: param("critical") ? null : "1" }), "", pressed(param("critical"))),
      graph()?.can_group && button("Groups", () => ctx.go({ groups: graph().grouped ? "0" : "1", open: null }), "",
        pressed(graph().grouped, { disabled: tooMany, title: about })),
      button("Active", active, "", { title: "Go to the running tasks" }),
      iconButton("fit", "Fit to the screen (f)", fit),
      iconButton("plus", "Zoom in (+)", () => zoom(1.35), { class: "button icon-button wide-only" }),
      iconButton("minus", "Zoom out (-)", () => zoom(1 / 1.35), { class: "button icon-button wide-only" }),
    ];
  }

  function state([status, count]) {
    const on = list("status").includes(status);
    const name = status === "waiting" ? "waits for you" : word(status);
    const words = `${name[0].toUpperCase()}${name.slice(1)} ${count}`;
    return button([status !== "waiting" && icon(status), words], () => toggle("status", status), "s-" + status, pressed(on));
  }

  /** Replaces the content of a part only if it changed, so that the focus and an open list stay. */
  function renew(part, key, make) {
    if (part.key === String(key)) return;
    const spot = [...part.children].indexOf(document.activeElement);
    replace(part, make());
    part.key = String(key);
    part.children[spot]?.focus();
  }

  return () => {
    const rows = [...tasks().values()];
    const agents = [...new Set(rows.map((row) => row.agent).filter(Boolean))].sort();
    renew(tools, [ctx.params, graph()?.grouped, graph()?.can_group, agents], () => toolbar(agents));
    const counts = STATES.map((status) => [status, rows.filter((row) => isIn(row, status)).length]);
    renew(legend, [param("status"), counts], () => counts.filter(([, count]) => count).map(state));
  };
}
