// The timeline: who worked on what, when, and what waited for whom.
import { capital, chips, h, icon, joined, keyed, now, renew, replace, span, whileSeen, word } from "./dom.js";
import { empty, problem, touches } from "./listing.js";
import { paced } from "./paced.js";
import { lanes, scale, stretches, ticks } from "./timeline_scale.js";

const WINDOWS = [["", "All"], ["1440", "1 day"], ["60", "1 h"], ["10", "10 min"]];
const KINDS = { queue: "waited for an agent", work: "work", approval: "waited for a person", paused: "paused" };
const LANE = 26;
const MOST_LANES = 12;
const SHORTEST = 7; // the least width of a bar in pixels, as in the style sheet

const HOURS = new Intl.DateTimeFormat([], { timeStyle: "short" }); // created once: that takes longer than drawing a bar

export function screen(ctx) {
  const tools = h("div");
  const ruler = h("div.tl-ruler", { aria: { hidden: "true" } });
  const body = h("div");
  const note = h("div", { role: "status" }, empty("Loading…"));
  const plot = h("div.timeline", { role: "group", aria: { label: "Timeline" }, on: { keydown: travel } }, ruler, body, note);
  let found = null;
  let width = 0; // the width as drawn
  let view = ""; // the parameters as drawn

  const asked = () => ({ by: ctx.param("rows") || "agent", minutes: ctx.param("window"), squash: ctx.param("squash") !== "0" });

  /** At most every two seconds: a busy crew makes news all the time. */
  const load = paced(() => ctx.api.get(`/api/workflows/${ctx.id}/timeline`).then((answer) => {
    found = answer;
    draw();
  }).catch((error) => replace(note, problem(error, load))), 2000);

  function draw() {
    if (!found || !plot.isConnected) return;
    width = plot.clientWidth;
    view = String(ctx.params);
    drawTools();
    const bars = found.bars.map((bar) => ({ ...bar, open: bar.to === null, to: Math.max(bar.from, bar.to ?? now()) }));
    bars.push(...found.gates.map(asBar));
    bars.sort((one, other) => one.from - other.from);
    const more = found.more > 0 && h("p.muted", "Older work is not shown.");
    replace(note, bars.length ? more : empty("Nothing has started yet. A bar appears when an agent takes a task.", "handrail next"));
    if (!bars.length) return;
    const end = bars.some((bar) => bar.open) ? now() : bars.reduce((last, bar) => Math.max(last, bar.to), 0);
    const { minutes, squash } = asked();
    const from = minutes ? end - minutes * 60e3 : bars[0].from;
    const axis = scale(stretches(bars, from, end, squash));
    drawRuler(axis);
    drawRows(rowsOf(bars.filter((bar) => bar.to >= axis.pieces[0].from && bar.from <= end)), axis);
  }

  /** A question, as long as it waited. A run's question is the id of its phase. */
  function asBar(gate) {
    const name = found.rows.phases.find((each) => each.id === gate.phase)?.label ?? gate.question;
    return { ...gate, name, gate: true, kind: "approval", status: "waiting", open: gate.to === null, to: gate.to ?? now() };
  }

  function drawTools() {
    const options = found.rows.phases.length ? ["agent", "group", "phase"] : ["agent", "group"];
    const { by, minutes, squash } = asked();
    renew(tools, { options, by, minutes, squash }, () => h("div.tools.row",
      h("span.row", "Rows", chips("Rows", options.map((name) => [name, capital(name)]), by, (rows) => ctx.go({ rows }))),
      chips("Gaps", [[true, "Skip idle time"]], squash, () => ctx.go({ squash: squash ? "0" : null })),
      h("span.row", "Window", chips("Window", WINDOWS, minutes, (window) => ctx.go({ window })))));
  }

  /** Rows in the server's order, then any others; what waits for a person comes first. */
  function rowsOf(bars) {
    const { by } = asked();
    const rows = new Map();
    const row = (key, name) => rows.get(key) ?? rows.set(key, { key, name, bars: [] }).get(key);
    row("gates", "Waits for you");
    for (const each of found.rows[`${by}s`] ?? []) row(each.id, each.name ?? each.label);
    for (const bar of bars) {
      const key = by === "agent" ? bar.agent_id : bar[by];
      row(bar.gate ? "gates" : key ?? "", key ?? (by === "agent" ? "Not taken yet" : `No ${by}`)).bars.push(bar);
    }
    return [...rows.values()].filter((each) => each.bars.length);
  }

  /** Nodes are kept and only moved, so that a tooltip or a press survives news. */
  function drawRows(rows, axis) {
    for (const row of rows) {
      row.lanes = lanes(row.bars, MOST_LANES, (axis.length * SHORTEST) / width);
      row.more = row.bars.filter((bar) => bar.lane === MOST_LANES && !bar.strip).length;
    }
    keyed(body, rows.map(({ key, name, more }) => ({ key, name, more })), rowNode, ({ key }) => key);
    rows.forEach(({ bars, lanes: count }, index) => {
      const track = body.children[index].lastChild;
      track.style.height = `${count * LANE + 4}px`;
      for (const bar of bars) {
        bar.x = axis.at(bar.from);
        bar.wide = axis.at(bar.to) - bar.x;
      }
      const seen = bars.filter((bar) => bar.lane < MOST_LANES && (!bar.strip || bar.wide * width > 2));
      keyed(track, seen.map(look), barNode, (each) => each.at);
      seen.forEach((bar, at) => {
        const places = { left: `${bar.x * 100}%`, width: `${bar.wide * 100}%`, top: `${bar.lane * LANE + 3}px` };
        Object.assign(track.children[at].style, places);
      });
    });
    const stop = body.querySelector('.tl-bar[tabindex="0"]') ?? body.querySelector(".tl-bar");
    if (stop) stop.tabIndex = 0;
  }

  function rowNode({ name, more }) {
    return h("div.tl-row", { role: "group", aria: { label: name } },
      h("div.tl-name", { title: name }, name, more > 0 && h("div.muted.small", `${more} more`)), h("div.tl-track"));
  }

  /** Everything a bar shows, except its position. */
  function look(bar, at) {
    const text = (bar.attempt > 1 ? `#${bar.attempt} ` : "") + bar.name;
    const told = [text, `${KINDS[bar.kind]}, ${span(bar.to - bar.from)}${bar.open ? " so far" : ""}`,
      `${HOURS.format(bar.from)} to ${bar.open ? "now" : HOURS.format(bar.to)}`, bar.agent, bar.kind !== "queue" && word(bar.how ?? bar.status)];
    const pixels = bar.strip ? 0 : bar.wide * width;
    const marks = joined([bar.strip && "strip", bar.task_id && bar.task_id === ctx.param("task") && "chosen"], " ");
    return {
      at, told: joined(told, "\n"), class: `tl-bar k-${bar.kind} s-${bar.status} ${marks}`,
      icon: pixels > 24 && (bar.kind === "approval" ? "waiting" : bar.kind === "queue" ? "ready" : bar.status), text: pixels > 60 && text,
      task: !bar.gate && bar.task_id, tab: bar.gate ? "gates" : "pipeline",
    };
  }

  function barNode(bar) {
    const click = () => (bar.task ? ctx.select(bar.task) : ctx.go({ tab: bar.tab }));
    return h("button", { type: "button", class: bar.class, tabindex: -1, title: bar.told, on: { click },
      aria: { label: bar.told.replaceAll("\n", ", ") } }, bar.icon && icon(bar.icon), bar.text);
  }

  function drawRuler(axis) {
    const mark = (looks, x, text) => {
      const node = h("div", { class: looks }, text && h("span", text));
      node.style.left = `${x * 100}%`;
      return node;
    };
    const room = ticks(axis, Math.max(3, width / 110)).filter((tick) => (1 - tick.x) * width > 60); // "now" is at the end
    replace(ruler, room.map((tick) => mark(tick.x * width < 50 ? "tl-tick edge" : "tl-tick", tick.x, tick.text)),
      axis.pieces.slice(1).map((piece) => mark("tl-break", piece.x - axis.gap / 2)),
      now() - axis.pieces.at(-1).to < 1000 && mark("tl-now", 1, "now"));
  }

  const stop = whileSeen(() => found?.bars.some((bar) => bar.to === null) && draw(), 15000);
  // Only a new width matters: drawing itself changes the height.
  const sized = new ResizeObserver(() => plot.clientWidth !== width && draw());
  sized.observe(plot);
  load();
  return {
    node: h("section.screen", tools, plot, legend()),
    update(change) {
      if (touches(ctx, change, ["tasks", "gates", "plan", "pipeline"])) load();
      else if (view !== String(ctx.params)) draw();
    },
    close() {
      stop();
      sized.disconnect();
    },
  };
}

function legend() {
  const kinds = [["k-work s-completed", "done"], ["k-work s-in_progress", "running"], ["k-work s-failed", "failed"],
    ...["queue", "approval", "paused"].map((kind) => [`k-${kind}`, KINDS[kind]])];
  return h("ul.tl-legend.muted", kinds.map(([looks, text]) => h("li", h("i", { class: `tl-bar ${looks}` }), text)));
}

/** Arrow keys move from bar to bar: along the row, and to the nearest one in the next row. */
function travel(event) {
  const bars = [...event.currentTarget.querySelectorAll(".tl-bar")];
  const here = bars.indexOf(document.activeElement);
  const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (!step || here < 0) return;
  event.preventDefault();
  let next = bars[here + step];
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const rows = [...event.currentTarget.querySelectorAll(".tl-row")];
    const row = rows[rows.indexOf(bars[here].closest(".tl-row")) + step];
    const far = (bar) => Math.abs(bar.offsetLeft - bars[here].offsetLeft);
    next = row && [...row.querySelectorAll(".tl-bar")].reduce((best, bar) => (far(bar) < far(best) ? bar : best));
  }
  if (!next) return;
  bars[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
