// Home: all workflows of the store, what moves, and what waits.
import { bar, button, h, icon, pill, replace, when } from "./dom.js";
import { keyed } from "./listing.js";
import { load } from "./live.js";
import { styled } from "./prose.js";

export const title = "Workflows";

const CLOSED = ["completed", "abandoned"];
const FILTERS = {
  all: ["All", () => true],
  waiting: ["Waiting for me", (row) => row.waiting + row.reviews > 0],
  running: ["Running", (row) => row.running > 0],
  stuck: ["Stuck", (row) => row.stuck > 0],
  failed: ["Failed", (row) => row.failed > 0 || row.status === "failed"],
};

function mark(count, word, looks, shape) {
  return count ? h("span", { class: "chip s-" + looks }, icon(shape), `${count} ${word}`) : null;
}

function draw(row) {
  return h("a", { class: "flow", href: `#/w/${encodeURIComponent(row.id)}`, data: { id: row.id } },
    h("span", { class: "name" }, row.name),
    h("span", { class: "state" }, pill(row.status)),
    h("span", { class: "progress row" }, row.total ? [bar(row.finished, row.total, row.failed), h("span", { class: "number small" }, `${row.finished}/${row.total}`)]
      : h("span", { class: "muted small" }, "no tasks yet")),
    h("span", { class: "time" }, when(row.updated_at)),
    h("span", { class: "say line-cut", title: row.sentence }, row.phase ? h("b", {}, row.phase, " · ") : null, styled(row.sentence ?? "")[0].shown),
    h("span", { class: "marks row" }, mark(row.waiting, row.waiting === 1 ? "waits for you" : "wait for you", "waiting", "gate"),
      mark(row.reviews, "to look at", "waiting", "review"), mark(row.stuck, "stuck", "failed", "paused"),
      mark(row.failed, "failed", "failed", "failed"), mark(row.running, "running", "in_progress", "in_progress"),
      mark(row.agents, row.agents === 1 ? "agent" : "agents", "pending", "agent")));
}

function nothing(any) {
  if (any) return h("div", { class: "empty" }, h("h2", {}, "Nothing here"), h("p", {}, "No workflow fits the filter. ", h("a", { href: "#/" }, "Show all")));
  return h("div", { class: "empty" }, h("h2", {}, "No workflow yet"),
    h("p", {}, "Set up your coding agent in the project: ", h("code", {}, "handrail init")),
    h("p", {}, "Then ask it: “Plan this with Handrail, then start.” What it plans appears here by itself."),
    h("p", {}, "To look around first: ", h("code", {}, "handrail demo")));
}

export function screen(ctx) {
  const chips = h("div", { class: "row", role: "group", aria: { label: "Filter" } });
  const groups = h("div", {});
  const node = h("div", { class: "home" }, chips, groups);

  async function toggleClosed() {
    ctx.state.archived = !ctx.state.archived;
    await load().catch(() => {});
  }

  function drawChips(rows) {
    const chosen = ctx.params.get("show") ?? "all";
    keyed(chips, Object.entries(FILTERS).map(([key, [name, fits]]) => ({ key, name, count: rows.filter(fits).length, on: key === chosen })),
      (chip) => chip.key, (chip) => h("button", {
        type: "button", class: "chip", aria: { pressed: String(chip.on) }, on: { click: () => ctx.go({ show: chip.key === "all" ? null : chip.key }) },
      }, chip.name, h("span", { class: "muted number" }, String(chip.count))));
    const { archived } = ctx.state;
    const closed = ctx.state.closed + (archived ? 0 : [...ctx.state.workflows.values()].filter((row) => CLOSED.includes(row.status)).length);
    if (closed) chips.append(button(archived ? "Hide closed" : `Show ${closed} closed`, toggleClosed, "quiet", { aria: { pressed: String(archived) } }));
  }

  function update() {
    const all = [...ctx.state.workflows.values()].filter((row) => ctx.state.archived || !CLOSED.includes(row.status));
    const words = (ctx.params.get("q") ?? "").toLowerCase();
    const [, fits] = FILTERS[ctx.params.get("show")] ?? FILTERS.all;
    const rows = all.filter((row) => fits(row) && `${row.name} ${row.repository ?? ""}`.toLowerCase().includes(words));
    rows.sort((a, b) => b.created_at - a.created_at); // an order that keeps still while things happen
    chips.hidden = !all.length && !ctx.state.closed;
    drawChips(all);
    const places = [...Map.groupBy(rows, (row) => row.repository ?? "")];
    if (!rows.length) return void replace(groups, nothing(all.length > 0));
    keyed(groups, places.map(([path, own]) => ({ path, name: own[0].repository_name, alone: places.length === 1 })), (place) => place.path, (place) => h("section", {},
      place.alone ? null : h("h2", {}, place.name ?? "No repository", h("span", { class: "muted small" }, place.path)), h("div", { class: "flow-list" })));
    places.forEach(([, own], index) => keyed(groups.children[index].querySelector(".flow-list"), own, (row) => row.id, draw));
    if (ctx.state.more) groups.append(h("p", { class: "muted small" }, `${ctx.state.more} older ones are kept, not shown here.`));
  }

  update();
  return { node, update };
}
