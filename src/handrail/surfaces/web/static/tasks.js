// The tasks of a workflow as a table, and as a board by state. Agents own the states: nothing can be dragged here.
import { button, capital, chips, clamp, cut, h, icon, isNamed, keyed, pill, renew, replace, span, STATES, STEPS, taken, took, when, whileSeen, word } from "./dom.js";
import { empty, smallFacts, taskLink } from "./listing.js";
import { fitted } from "./measure.js";

const LANES = [["Failed", "failed"], ["Blocked", "blocked", "pending"], ["Ready", "ready"], ["Running", "in_progress", "planning"],
  ["Paused", "paused"], ["Done", "completed", "skipped"]];
const MANY = 60; // with more tasks than this, unfinished ones come first
const CARDS = 40; // in one lane of the board
const WHOLE = 300; // up to this many rows all are drawn; beyond it only the visible ones
const AROUND = 12; // rows drawn above and below the visible ones

const COLUMNS = [
  { id: "status", name: "State", by: (row) => STATES.indexOf(row.status), draw: (row) => pill(row.status) },
  { id: "name", name: "Task", by: (row) => row.name.toLowerCase(), draw: nameOf },
  { id: "agent", name: "Agent", by: (row) => row.agent ?? "~", draw: (row) => row.agent },
  { id: "group", name: "Group", by: (row) => row.group ?? "~", draw: (row) => row.group },
  { id: "waits", name: "Waits for", by: (row) => -row.waits, draw: (row) => row.waits || "" },
  { id: "attempts", name: "Tries", by: (row) => -row.attempts, draw: (row) => row.attempts || "" },
  { id: "took", name: "Time", by: (row) => -(took(row) ?? 0), draw: (row) => row.time },
  { id: "updated", name: "Updated", by: (row) => -row.updated_at, draw: (row) => when(row.updated_at) },
];

const asks = (row) => row.waiting && h("span.s-waiting", { title: "waits for you" }, icon("waiting"));

/** The name, cut to the available width; on a phone with what otherwise has columns of its own. */
function nameOf(row) {
  const room = row.room * (row.error ? 0.6 : 1) - (row.waiting ? 24 : 0);
  return [h("span", { title: row.name }, fitted(row.name, Math.max(room, 90), 14)), asks(row),
    row.error && h("span.bad.small", { title: row.error }, cut(row.error, 90)), smallFacts(row.agent, when(row.updated_at))];
}

const isOpen = (status) => status !== "completed" && status !== "skipped";

/** How long it took; in whole minutes while it continues, so that a row is not redrawn every second. */
function timeOf(row) {
  const past = took(row);
  return past ? span(row.finished_at || row.status === "failed" || past < 60e3 ? past : past - (past % 60e3)) : "";
}

export function screen(ctx) {
  return ctx.tab === "board" ? board(ctx) : table(ctx);
}

const sortOf = (ctx) => ctx.param("sort") || (ctx.tasks().size > MANY ? "status" : "plan");

/** The tasks the address asks for, in its order; each with how many it still waits for, and how long it took. */
function chosen(ctx) {
  const all = ctx.tasks();
  const words = ctx.param("q").toLowerCase();
  const status = ctx.param("status");
  const column = COLUMNS.find((each) => each.id === sortOf(ctx));
  const down = ctx.param("down") ? -1 : 1;
  const rows = [];
  for (const task of all.values()) {
    if (status && task.status !== status) continue;
    if (!isNamed(task, words)) continue;
    const needs = isOpen(task.status) ? task.needs.filter((id) => all.has(id) && isOpen(all.get(id).status)) : [];
    rows.push({ ...task, waits: needs.length, time: timeOf(task) });
  }
  const keys = new Map(rows.map((row) => [row, column?.by(row)]));
  const compare = (one, other) => (one < other ? -down : one > other ? down : 0);
  return rows.sort((one, other) => compare(keys.get(one), keys.get(other)) || one.sequence - other.sequence);
}

function table(ctx) {
  const states = h("div.row.chips");
  const tools = h("div.tools.row", states);
  const head = h("tr");
  const body = h("tbody");
  const [above, below] = [1, 2].map(() => h("tbody", { aria: { hidden: "true" } }, h("tr", h("td", { colspan: COLUMNS.length }))));
  const grid = h("table.table.tasks", { role: "grid", tabindex: 0, data: { row: "" },
    aria: { label: "Tasks. j and k move, Enter opens" }, on: { keydown } }, h("thead", head), above, body, below);
  const box = h("div.tasks-box", { on: { scroll: draw } }, grid);
  const note = h("div", { role: "status" });
  let rows = [];
  let at = 0;

  function update() {
    rows = chosen(ctx);
    at = clamp(at, 0, Math.max(0, rows.length - 1));
    grid.setAttribute("aria-rowcount", rows.length);
    drawHead();
    drawStates();
    draw();
    const none = ctx.tasks().size ? empty("No matching tasks.") : empty("No tasks yet. They appear here once an agent writes a plan.", "handrail init");
    replace(note, rows.length ? null : none);
    box.hidden = !rows.length;
  }

  /** A click sorts, a second one reverses the order, a third restores the plan's own order. */
  function drawHead() {
    const [sort, down] = [sortOf(ctx), ctx.param("down")];
    const turned = (id) => (id !== sort ? { sort: id, down: null } : down ? { sort: "plan", down: null } : { sort, down: 1 });
    const columns = COLUMNS.map(({ id, name }) => ({ id, name, sorted: id !== sort ? "none" : down ? "descending" : "ascending" }));
    keyed(head, columns, ({ id, name, sorted }) =>
      h("th", { class: `c-${id}`, scope: "col", aria: { sort: sorted } }, button(name, () => ctx.go(turned(id)), "link")));
  }

  function drawStates() {
    const counts = {};
    for (const { status } of ctx.tasks().values()) counts[status] = (counts[status] ?? 0) + 1;
    const here = STATES.filter((status) => counts[status]).map((status) => [status, capital(`${word(status)} ${counts[status]}`)]);
    const [q, status] = ["q", "status"].map(ctx.param);
    const view = { options: [["", "All"], ...here], status, sort: sortOf(ctx), q };
    const first = view.sort === "status" ? "plan" : "status";
    renew(states, view, () => h("div.row.chips",
      chips("State", view.options, view.status, (status) => ctx.go({ status })),
      chips("Order", [["status", "Failed first"]], view.sort, () => ctx.go({ sort: first, down: null })),
      q && taken(`“${q}”`, "Clear the search", () => ctx.go({ q: null }))));
  }

  const tall = () => body.firstChild?.offsetHeight || 34;

  /** Draws what is visible and a bit around it; two empty rows take the space of the others. */
  function draw() {
    const all = rows.length <= WHOLE;
    const height = tall(); // measured before anything moves: a table that is briefly shorter loses its scroll position
    const first = all ? 0 : Math.max(0, Math.floor(box.scrollTop / height) - AROUND);
    const last = all ? rows.length : Math.min(rows.length, first + Math.ceil(box.clientHeight / height) + 2 * AROUND);
    const open = ctx.param("task");
    const room = (head.children[1]?.clientWidth ?? 0) - 20;
    const shown = (row, index) => ({ ...row, room, here: first + index === at, open: row.id === open });
    const seen = rows.slice(first, last).map(shown);
    keyed(body, seen, drawRow);
    for (const [place, count] of [[above, first], [below, rows.length - last]]) {
      place.hidden = !count;
      place.firstChild.style.height = `${count * height}px`;
    }
    if (rows[at]) grid.setAttribute("aria-activedescendant", `task-${rows[at].id}`);
  }

  function drawRow(row) {
    const click = () => {
      at = rows.findIndex((each) => each.id === row.id);
      ctx.select(row.id);
    };
    const props = { id: `task-${row.id}`, class: row.here ? "here" : "", data: { id: row.id }, on: { click } };
    return h("tr", { ...props, aria: { selected: row.open } },
      COLUMNS.map((column) => h("td", { class: `c-${column.id}` }, column.draw(row))));
  }

  function keydown(event) {
    const step = { j: 1, k: -1, ...STEPS }[event.key];
    if (event.target !== grid || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && rows[at]) ctx.select(rows[at].id);
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    at = clamp(at + step, 0, rows.length - 1);
    const top = at * tall();
    box.scrollTop = Math.min(Math.max(box.scrollTop, top - box.clientHeight + 3 * tall()), top);
    draw();
  }

  const sized = new ResizeObserver(draw);
  const stop = whileSeen(update, 15000);
  sized.observe(box);
  update();
  return {
    node: h("section.screen.fills", tools, box, note),
    update,
    close() {
      sized.disconnect();
      stop();
    },
  };
}

function board(ctx) {
  const lanes = LANES.map(([name, ...states]) => {
    const [count, list, rest] = [h("span.muted"), h("ol.cards", { role: "list" }), h("div")];
    const node = h("section", { class: `lane s-${states[0]}` }, h("h2", icon(states[0]), name, count), list, rest);
    return { states, count, list, rest, node };
  });
  const card = (row) => h("li.card", taskLink(ctx, row.id, row.name), asks(row),
    smallFacts(row.agent, row.status === "pending" && word(row.status), row.waits > 0 && `waits for ${row.waits}`, row.attempts > 1 && `try ${row.attempts}`, when(row.updated_at)));

  function update() {
    const rows = chosen(ctx).sort((one, other) => other.updated_at - one.updated_at);
    for (const { states, count, list, rest } of lanes) {
      const mine = rows.filter((row) => states.includes(row.status));
      replace(count, mine.length);
      keyed(list, mine.slice(0, CARDS), card);
      const more = mine.length - CARDS;
      replace(rest, more > 0 && button(`${more} more in the table`, () => ctx.go({ tab: "tasks", status: states[0] }), "link"));
    }
  }
  update();
  return { node: h("section.screen.board", lanes.map((lane) => lane.node)), update, close() {} };
}
