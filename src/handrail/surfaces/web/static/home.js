// Home: all workflows of the store, what is in progress, and what waits.
import { button, capital, chips, h, icon, keyed, placeOf, progress, renew, replace, STANDINGS, standingPill, when } from "./dom.js";
import { load, tail } from "./live.js";
import { styled } from "./prose.js";

const CLOSED = ["completed", "abandoned"];

function mark(count, word, looks, shape = looks) {
  return count > 0 && h("span", { class: "chip s-" + looks }, icon(shape), `${count} ${word}`);
}

function draw(row) {
  return h("a.flow", { href: placeOf(row.id), data: { id: row.id } },
    h("span.name", row.name, h("span.muted.small", row.tail)),
    h("span.state", standingPill(row)),
    h("span.progress.row", row.total ? progress(row) : h("span.muted.small", "no tasks yet")),
    h("span.time", when(row.updated_at)),
    h("span.say", { title: row.sentence }, row.phase && h("b", row.phase, " · "), styled(row.sentence ?? "")[0].shown),
    h("span.marks.row", mark(row.standing === "waits_for_you" && row.waiting < 2 ? 0 : row.waiting, row.waiting === 1 ? "waits for you" : "wait for you", "waiting"),
      mark(row.reviews, "to review", "waiting", "review"), mark(row.stuck, "stuck", "lost"),
      mark(row.failed, "failed", "failed"), mark(row.running, "running", "in_progress"),
      mark(row.agents, row.agents === 1 ? "agent" : "agents", "ready", "agent")));
}

function nothing(any) {
  if (any) return h("div.empty", h("h2", "No matches"), h("p", "No workflow matches the filter. ", h("a", { href: "#/" }, "Show all")));
  return h("div.empty", h("h2", "No workflows yet"),
    h("p", "1. In your project, run ", h("code", "handrail init"), " to connect your coding agent."),
    h("p", "2. Ask the agent: “Plan this with Handrail, then start.”"),
    h("p", "Its plan shows up here on its own. Just looking? Try ", h("code", "handrail demo"), "."));
}

export function screen(ctx) {
  const filter = h("div");
  const groups = h("div");
  const node = h("div.home", filter, groups);

  async function toggleClosed() {
    ctx.state.archived = !ctx.state.archived;
    await load().catch(() => {});
  }

  function drawChips(rows) {
    const chosen = ctx.param("show");
    const ways = [["", "All", rows.length], ...Object.entries(STANDINGS).map(([key, [name]]) =>
      [key, capital(name), rows.filter((row) => row.standing === key).length])].filter(([key, , count]) => count || key === chosen || !key);
    const { archived } = ctx.state;
    const closed = ctx.state.closed + (archived ? 0 : [...ctx.state.workflows.values()].filter((row) => CLOSED.includes(row.status)).length);
    renew(filter, { ways, chosen, archived, closed }, () => h("div.row.chips",
      chips("Filter", ways.map(([key, name, count]) => [key, [name, h("span.muted.number", count)]]), chosen, (show) => ctx.go({ show })),
      closed > 0 && button(archived ? "Hide closed" : `Show ${closed} closed`, toggleClosed, "quiet", { aria: { pressed: archived } })));
  }

  function update() {
    const all = [...ctx.state.workflows.values()].filter((row) => ctx.state.archived || !CLOSED.includes(row.status));
    const words = ctx.param("q").toLowerCase();
    const show = ctx.param("show");
    const rows = all.filter((row) => (!show || row.standing === show) && `${row.name} ${row.repository ?? ""}`.toLowerCase().includes(words));
    rows.sort((a, b) => b.created_at - a.created_at); // an order that stays the same while things happen
    filter.hidden = !all.length && !ctx.state.closed;
    drawChips(all);
    const places = [...Map.groupBy(rows, (row) => row.repository ?? "")];
    if (!rows.length) return void replace(groups, nothing(all.length > 0));
    keyed(groups, places.map(([path, own]) => ({ path, name: own[0].repository_name, alone: places.length === 1 })), (place) => h("section",
      !place.alone && h("h2", place.name ?? "No repository", h("span.muted.small", place.path)), h("div.flow-list")), (place) => place.path);
    places.forEach(([, own], index) => keyed(groups.children[index].querySelector(".flow-list"),
      own.map((row) => ({ ...row, tail: tail(row) })), draw));
    if (ctx.state.more) groups.append(h("p.muted.small", `${ctx.state.more} older workflows are not shown.`));
  }

  update();
  return { node, update };
}
