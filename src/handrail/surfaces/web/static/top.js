// The top bar.
import { h, icon, joined, progress, replace, standingPill, visible } from "./dom.js";
import { isOut, state, tail } from "./live.js";

function connection() {
  const looks = { live: "ok", connecting: "ready", reconnecting: "waiting" }[state.connection] ?? "failed";
  const since = state.connection === "offline" ? " since " + new Date(state.since).toLocaleTimeString([], { timeStyle: "short" }) : "";
  const told = state.connection === "live" ? "What you see is up to date" : "What you see may be out of date";
  return h("span", { class: "connection s-" + looks, title: told, data: { state: state.connection } }, state.connection.replace("-", " ") + since);
}

/** The title is a native list of the workflows, laid invisibly over the name. */
function switcher(row, go) {
  const others = [...new Map([...state.workflows, [row.id, row]]).values()]; // a closed one may be open here
  const list = h("select", { title: row.name, aria: { label: "Workflow" }, on: { change: () => go({ id: list.value }) } },
    others.map((one) => h("option", { value: one.id }, `${one.name}${tail(one)} (${one.finished}/${one.total}${one.waiting ? ", waits for you" : ""})`)));
  list.value = row.id;
  return h("span.switcher", h("h1.line-cut", row.name), icon("down"), list);
}

function standing(row) {
  const count = (number, word, looks) => number > 0 && h("span", { class: "s-" + looks }, `${number} ${word}`);
  return [
    standingPill(row),
    row.total > 0 && progress(row),
    h("span.counts", count(row.failed, "failed", "failed"), count(row.stuck, "stuck", "failed"),
      count(row.running, "running", "in_progress"), count(row.ready, "ready", "ready"), count(row.blocked, "blocked", "blocked")),
  ];
}

export function topBar(node, shell) {
  const place = h("div.row.place");
  const live = h("span", { role: "status" });
  const room = h("div.search");
  const tools = h("span.row", { id: "tools" });
  let search = null;
  replace(node, h("a.brand", { href: "#/", title: "All workflows (g h)" }, icon("home"), h("span", "Handrail")),
    place, room, tools, live);
  let drawn = "";
  import("./tools.js").then((bar) => replace(tools, bar.tools()));
  import("./search.js").then(({ searchBox }) => {
    search = searchBox(shell);
    room.replaceWith(search.node);
  });
  return {
    update() {
      const row = shell.route().id && !isOut() ? state.workflow?.workflow : null;
      const known = JSON.stringify([row, state.connection, state.needs.length, [...state.workflows.keys()]]);
      search?.update();
      if (known === drawn) return;
      drawn = known;
      if (!place.contains(document.activeElement)) replace(place, row ? [switcher(row, shell.go), standing(row)] : h("h1.sr", "All workflows"));
      replace(live, connection());
      const waiting = state.needs.length && !isOut() ? `(${state.needs.length}) ` : "";
      document.title = visible(waiting + joined([row?.name ?? (!isOut() && state.session?.project_name), "Handrail"]));
    },
  };
}
