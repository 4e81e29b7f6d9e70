// Home: all workflows of the store, what is in progress, and what waits.
import { bar, button, h, icon, keyed, replace, STANDINGS, standingPill, when } from "./dom.js";
import { load } from "./live.js";
import { styled } from "./prose.js";

const CLOSED = ["completed", "abandoned"];

function mark(count, word, looks, shape) {
  return count ? h("span", { class: "chip s-" + looks }, icon(shape), `${count} ${word}`) : null;
}

function draw(row) {
  return h("a.flow", { href: `#/w/${encodeURIComponent(row.id)}`, data: { id: row.id } },
    h("span.name", row.name, row.twin ? h("span.muted.small", " …" + row.id.slice(-6)) : null),
    h("span.state", standingPill(row)),
    h("span.progress.row", row.total ? [bar(row.finished, row.total, row.failed), h("span.number.small", `${row.finished}/${row.total}`)]
      : h("span.muted.small", "no tasks yet")),
    h("span.time", when(row.updated_at)),
    h("span.say", { title: row.sentence }, row.phase ? h("b", row.phase, " · ") : null, styled(row.sentence ?? "")[0].shown),
    h("span.marks.row", mark(row.standing === "waits_for_you" && row.waiting < 2 ? 0 : row.waiting, row.waiting === 1 ? "waits for you" : "wait for you", "waiting", "gate"),
      mark(row.reviews, "to review", "waiting", "review"), mark(row.stuck, "stuck", "failed", "paused"),
      mark(row.failed, "failed", "failed", "failed"), mark(row.running, "running", "in_progress", "in_progress"),
      mark(row.agents, row.agents === 1 ? "agent" : "agents", "pending", "agent")));
}

function nothing(any) {
  if (any) return h("div.empty", h("h2", "No matches"), h("p", "No workflow matches the filter. ", h("a", { href: "#/" }, "Show all")));
  return h("div.empty", h("h2", "No workflows yet"),
    h("p", "1. In your project, run ", h("code", "handrail init"), " to connect your coding agent."),
    h("p", "2. Ask the agent: “Plan this with Handrail, then start.”"),
    h("p", "Its plan shows up here on its own. Just looking? Try ", h("code", "handrail demo"), "."));
}

export function screen(ctx) {
  const chips = h("div.row.chips", { role: "group", aria: { label: "Filter" } });
  const groups = h("div");
  const node = h("div.home", chips, groups);

  async function toggleClosed() {
    ctx.state.archived = !ctx.state.archived;
    await load().catch(() => {});
  }

  function drawChips(rows) {
    const chosen = ctx.params.get("show") ?? "all";
    const counted = Object.groupBy(rows, (row) => row.standing);
    const ways = [["all", ["all"]], ...Object.entries(STANDINGS)].map(([key, [name]]) => ({
      key, name: name[0].toUpperCase() + name.slice(1), count: (key === "all" ? rows : counted[key])?.length ?? 0, on: key === chosen,
    }));
    keyed(chips, ways.filter((chip) => chip.count || chip.on || chip.key === "all"), (chip) => chip.key, (chip) => h("button", {
      type: "button", class: "chip", aria: { pressed: String(chip.on) }, on: { click: () => ctx.go({ show: chip.key === "all" ? null : chip.key }) },
    }, chip.name, h("span.muted.number", String(chip.count))));
    const { archived } = ctx.state;
    const closed = ctx.state.closed + (archived ? 0 : [...ctx.state.workflows.values()].filter((row) => CLOSED.includes(row.status)).length);
    if (closed) chips.append(button(archived ? "Hide closed" : `Show ${closed} closed`, toggleClosed, "quiet", { aria: { pressed: String(archived) } }));
  }

  function update() {
    const all = [...ctx.state.workflows.values()].filter((row) => ctx.state.archived || !CLOSED.includes(row.status));
    const words = (ctx.params.get("q") ?? "").toLowerCase();
    const show = ctx.params.get("show");
    const names = Map.groupBy(all, (row) => row.name);
    const rows = all.filter((row) => (!show || row.standing === show) && `${row.name} ${row.repository ?? ""}`.toLowerCase().includes(words));
    rows.sort((a, b) => b.created_at - a.created_at); // an order that stays the same while things happen
    chips.hidden = !all.length && !ctx.state.closed;
    drawChips(all);
    const places = [...Map.groupBy(rows, (row) => row.repository ?? "")];
    if (!rows.length) return void replace(groups, nothing(all.length > 0));
    keyed(groups, places.map(([path, own]) => ({ path, name: own[0].repository_name, alone: places.length === 1 })), (place) => place.path, (place) => h("section",
      place.alone ? null : h("h2", place.name ?? "No repository", h("span.muted.small", place.path)), h("div.flow-list")));
    places.forEach(([, own], index) => keyed(groups.children[index].querySelector(".flow-list"),
      own.map((row) => ({ ...row, twin: names.get(row.name).length > 1 })), (row) => row.id, draw));
    if (ctx.state.more) groups.append(h("p.muted.small", `${ctx.state.more} older workflows are not shown.`));
  }

  update();
  return { node, update };
}
