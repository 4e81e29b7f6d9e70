// What is laid over the graph: the tools above, and the legend below, which is also a filter.

import { button, capital, h, icon, iconButton, keyed, STATES, taken, word } from "./dom.js";
import { isIn } from "./graph_view.js";

const MOST_BOXES = 2000; // more do not move smoothly

export function graphTools(place, { ctx, list, toggle, active, fit, zoom, graph }) {
  const { param, tasks } = ctx;
  const pressed = (on, more) => ({ aria: { pressed: Boolean(on) }, ...more });

  /** An open group. Its key says what makes it a group: "lane:api", or "part:" and the task it belongs to. */
  function openGroup(key) {
    const name = key.slice(key.indexOf(":") + 1);
    return taken(tasks().get(name)?.name ?? name, "Close this group", () => toggle("open", key));
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
    return h("div.graph-tools", { role: "toolbar", aria: { label: "Graph" } },
      list("open").map(openGroup),
      agents.length > 1 && agentChoice(agents),
      button("Critical path", () => ctx.go({ critical: param("critical") ? null : "1" }), "", pressed(param("critical"))),
      graph()?.can_group && button("Groups", () => ctx.go({ groups: graph().grouped ? "0" : "1", open: null }), "",
        pressed(graph().grouped, { disabled: tooMany, title: about })),
      button("Active", active, "", { title: "Go to the running tasks" }),
      iconButton("fit", "Fit to the screen (f)", fit),
      iconButton("plus", "Zoom in (+)", () => zoom(1.35), { class: "button icon-button wide-only" }),
      iconButton("minus", "Zoom out (-)", () => zoom(1 / 1.35), { class: "button icon-button wide-only" }));
  }

  function state([status, count]) {
    const on = list("status").includes(status);
    const name = status === "waiting" ? "waits for you" : word(status);
    return button([status !== "waiting" && icon(status), `${capital(name)} ${count}`], () => toggle("status", status), "s-" + status, pressed(on));
  }

  return () => {
    const rows = [...tasks().values()];
    const agents = [...new Set(rows.map((row) => row.agent).filter(Boolean))].sort();
    const counts = ["waiting", "lost", ...STATES].map((status) => [status, rows.filter((row) => isIn(row, status)).length]).filter(([, count]) => count);
    const parts = [
      { shows: [String(ctx.params), graph()?.grouped, graph()?.can_group, agents], draw: () => toolbar(agents) },
      { shows: [param("status"), counts], draw: () => h("div.graph-legend", { role: "group", aria: { label: "Show only" } }, counts.map(state)) },
    ];
    keyed(place, parts, (part) => part.draw(), (part) => parts.indexOf(part));
  };
}
