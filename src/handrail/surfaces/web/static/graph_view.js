// Draws a graph that the server laid out: boxes, lines, text by zoom level, and keyboard navigation. Statuses come from
// the task rows, so a change of status repaints one box and never changes the layout.

import { camera } from "./camera.js";
import { h, icon, joined, now, replace, span, svg, took, visible, word } from "./dom.js";
import { fitted, twoLines } from "./measure.js";

const FAR = 0.38;
const NEAR = 0.82;
const SIZES = { middle: { task: [17, 0], group: [19, 16] }, near: { task: [11.5, 10], group: [14, 11] } };
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function curve([[x, y], ...points]) {
  let path = `M${x} ${y}`;
  for (const [nextX, nextY] of points) {
    const half = (x + nextX) / 2;
    path += `C${half} ${y} ${half} ${nextY} ${nextX} ${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return path;
}

const isRunning = (row) => row.status === "in_progress" || row.status === "planning";

const isStuck = (row) => row.stuck_at !== null && now() >= row.stuck_at;

export const isIn = (row, state) => (state === "lost" ? isStuck(row) : state === "waiting" ? row.waiting : row.status === state);

/** A group's tasks in one line, and the one status that represents them. */
function summary(tasks) {
  const count = (...states) => tasks.filter((task) => states.includes(task.status)).length;
  const [done, failed, running] = [count("completed", "skipped"), count("failed"), tasks.filter(isRunning).length];
  const stuck = tasks.filter(isStuck).length;
  const rest = count("ready") || done ? "ready" : "blocked";
  const settled = done === tasks.length ? "completed" : rest;
  const status = failed ? "failed" : running ? "in_progress" : count("paused") ? "paused" : settled;
  const told = [`${done}/${tasks.length}`, failed && `${failed} failed`, stuck && `${stuck} stuck`,
    running > stuck && `${running - stuck} running`];
  const waiting = tasks.some((task) => task.waiting);
  return { status: stuck && !failed ? "lost" : status, waiting, under: joined(told), part: done / tasks.length };
}

function small(row) {
  const since = took(row);
  return joined([row.agent, row.attempts > 1 && `try ${row.attempts}`, since && span(since)]) || word(row.status);
}

/** `tasks` returns the current rows by id; `pressed` is called with the box that was pressed, or null. */
export function graphView(tasks, pressed) {
  const head = svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerUnits: "userSpaceOnUse",
    markerWidth: 8, markerHeight: 8, orient: "auto" }, svg("path", { d: "M0 .5L8 4L0 7.5z" }));
  const lines = svg("g.lines");
  const boxes = svg("g");
  const layer = svg("g", lines, boxes);
  const frame = svg("svg.graph-frame.far", { role: "group", aria: { label: "Tasks. Arrow keys move, Enter opens" } }, svg("defs", head), layer);
  const corner = h("div", { hidden: true });
  const eye = camera(frame, layer, moved);
  let graph = { nodes: [], edges: [], width: 0, height: 0 };
  let [map, making, mapped] = [null, null, null];
  let drawn = new Map(); // id of a box -> {node, box, texts}
  let home = new Map(); // id of a task -> id of its box
  let level = "far";
  let size = { width: 0, height: 0 };

  const itemOf = (task) => drawn.get(home.get(task) ?? task);
  const idsOf = (node) => (node.kind === "group" ? node.tasks : [node.id]);
  const rowsOf = (node) => idsOf(node).map((id) => tasks().get(id)).filter(Boolean);

  function moved(at) {
    const wanted = at.k < FAR ? "far" : at.k < NEAR ? "middle" : "near";
    if (wanted !== level) frame.classList.replace(level, wanted);
    level = wanted;
    if (level !== "far") drawn.forEach(write);
    showMap(at);
  }

  /** The map is shown only while part of the graph is out of view, and created when first needed. */
  function showMap(at) {
    const inside = (from, length, room) => from >= 0 && from + length * at.k <= room;
    corner.hidden = inside(at.x, graph.width, size.width) && inside(at.y, graph.height, size.height);
    if (corner.hidden || !size.width) return; // not measured yet
    making ??= import("./minimap.js").then(({ minimap }) => {
      map = minimap(eye.center);
      corner.append(map.node);
      showMap(eye.at);
    });
    if (map && mapped !== graph) map.draw(graph, (id) => drawn.get(id).looks);
    mapped = map && graph;
    map?.moved(at, size);
  }

  function seen({ x, y, w, h }) {
    const { k, x: right, y: down } = eye.at;
    const inside = (from, to, room) => to > -200 && from < room + 200;
    return inside(x * k + right, (x + w) * k + right, size.width) && inside(y * k + down, (y + h) * k + down, size.height);
  }

  /** The text of a box at this zoom level, created when it is first seen. */
  function write({ node, box, texts, name, under }) {
    const key = name + under;
    if (level === "far" || texts[level]?.key === key || !seen(node)) return;
    const [size, smaller] = SIZES[level][node.kind];
    const room = node.w - 44;
    const names = node.kind === "group" ? [fitted(name, room, size)] : twoLines(name, room, size);
    const rows = names.map((words) => [words, size, "name"]);
    if (smaller) rows.push([fitted(under, room, smaller), smaller, "under"]);
    let y = (node.h - rows.reduce((sum, row) => sum + row[1] * 1.15, 0)) / 2;
    const spans = rows.map(([words, tall, looks]) =>
      svg("tspan", { class: looks, x: 36, y: (y += tall * 1.15) - tall * 0.22, "font-size": tall }, words));
    const text = svg("text", { class: "at-" + level }, spans);
    texts[level]?.text.remove();
    texts[level] = { key, text };
    box.append(text);
  }

  function paint(item) {
    const { node, box } = item;
    const group = node.kind === "group";
    const rows = rowsOf(node);
    const [row] = rows;
    const known = () => (group ? summary(rows) : { ...row, status: isStuck(row) ? "lost" : row.status, under: small(row) });
    const about = row ? known() : { status: "ready", under: "", part: 0 }; // a growing plan: its row is on its way
    item.name = group ? node.label : about.name ?? node.label;
    item.under = about.under;
    if (group) box.querySelector(".done").setAttribute("width", node.w * about.part);
    if (item.status !== about.status) replace(box.querySelector(".sign"), icon(about.status).firstChild);
    item.status = about.status;
    item.looks = `s-${about.status}` + (about.waiting ? " asks" : "");
    box.setAttribute("class", `node ${node.kind} ${item.looks} ${node.on_critical ? "critical" : ""} ${item.marks}`);
    const told = [item.name, word(about.status), group ? about.under : about.agent, about.waiting && "waits for you"];
    box.setAttribute("aria-label", visible(joined(told, ", ")));
    box.firstChild.textContent = visible(`${item.name}\n${about.under}`);
    map?.paint(node.id, item.looks);
    write(item);
  }

  function make(node) {
    const { id, x, y, w: width, h: height } = node;
    const group = node.kind === "group";
    const box = svg("g", { transform: `translate(${x} ${y})`, role: "button", data: { id } }, svg("title"),
      group && svg("rect.back", { x: 4, y: 4, width, height, rx: 6 }),
      svg("rect.box", { width, height, rx: 6 }),
      group && svg("rect.done", { y: height - 5, height: 5, rx: 2 }),
      svg("g.sign"), svg("circle.ask", { cx: width, r: 7 }));
    for (const task of idsOf(node)) home.set(task, id);
    drawn.set(id, { node, box, texts: {}, marks: "" });
    return box;
  }

  /** Draws anew; `mark` then paints it. The box nearest to the middle of the view stays where it is. */
  function draw(next) {
    const was = nearest();
    graph = next;
    [drawn, home] = [new Map(), new Map()];
    replace(boxes, graph.nodes.map(make));
    for (const edge of graph.edges) edge.line = svg("path", { d: curve(edge.points), "marker-end": "url(#head)" });
    replace(lines, graph.edges.map((edge) => edge.line));
    const is = was && itemOf(idsOf(was)[0])?.node;
    if (is) eye.move((was.x - is.x) * eye.at.k, (was.y - is.y) * eye.at.k);
  }

  function nearest() {
    const x = (frame.clientWidth / 2 - eye.at.x) / eye.at.k;
    const y = (frame.clientHeight / 2 - eye.at.y) / eye.at.k;
    const far = (node) => Math.hypot(node.x + node.w / 2 - x, node.y + node.h / 2 - y);
    return graph.nodes.reduce((best, node) => (best && far(best) <= far(node) ? best : node), null);
  }

  /** Highlights the selection, its lineage, and what a filter leaves (sets of task ids, null: all); dims the rest. */
  function mark(chosen, lineage, kept) {
    const has = (node, ids) => !ids || idsOf(node).some((id) => ids.has(id));
    const lit = new Set(graph.nodes.filter((node) => has(node, lineage) && has(node, kept)).map((node) => node.id));
    for (const [id, item] of drawn) {
      item.marks = (lit.has(id) ? "" : "dim ") + (home.get(chosen) === id ? "chosen" : "");
      paint(item);
    }
    for (const { line, source, target, on_critical } of graph.edges) {
      const both = lit.has(source) && lit.has(target);
      line.setAttribute("class", (both ? (lineage ? "hot" : "") : "dim") + (on_critical ? " critical" : ""));
    }
    rove(itemOf(chosen) ?? drawn.values().next().value);
  }

  /** Makes one box at a time reachable by Tab. */
  function rove(item) {
    for (const other of boxes.children) other.setAttribute("tabindex", other === item?.box ? 0 : -1);
  }

  /** Shows these tasks, or the whole graph; no smaller than `least`, in which case from the first of them. */
  function show(ids, least = 0) {
    const found = ids ? ids.map((id) => itemOf(id)?.node).filter(Boolean) : graph.nodes;
    if (!found.length) return;
    const [x, y] = ["x", "y"].map((side) => Math.min(...found.map((node) => node[side])));
    const w = Math.max(...found.map((node) => node.x + node.w)) - x;
    const h = Math.max(...found.map((node) => node.y + node.h)) - y;
    eye.show({ x, y, w, h });
    if (eye.at.k < least) eye.center(found[0].x + found[0].w / 2, found[0].y, least);
  }

  /** The box an arrow key leads to: right and left along the lines, up and down within the column. */
  function travel(node, [right, down]) {
    const [from, to] = right > 0 ? ["source", "target"] : ["target", "source"];
    const beside = (other) => other.x < node.x + node.w && node.x < other.x + other.w;
    const near = right
      ? graph.edges.filter((edge) => edge[from] === node.id).map((edge) => drawn.get(edge[to]).node)
      : graph.nodes.filter((other) => beside(other) && (other.y - node.y) * down > 0);
    const [next] = near.sort((a, b) => Math.abs(a.y - node.y) - Math.abs(b.y - node.y));
    if (!next) return;
    rove(drawn.get(next.id));
    drawn.get(next.id).box.focus({ preventScroll: true });
    eye.reveal(next);
  }

  const nodeAt = (event) => drawn.get(event.target.closest(".node")?.dataset.id)?.node ?? null;

  frame.addEventListener("click", (event) => eye.wasDragged() || pressed(nodeAt(event)));
  frame.addEventListener("keydown", (event) => {
    const [node, arrow] = [nodeAt(event), ARROWS[event.key]];
    const zoom = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
    if (zoom) eye.zoom(zoom);
    else if (arrow && event.shiftKey) eye.move(-arrow[0] * 80, -arrow[1] * 80);
    else if (arrow && node) travel(node, arrow);
    else if (node && (event.key === "Enter" || event.key === " ")) pressed(node);
    else return;
    event.preventDefault();
  });

  return {
    frame, map: corner, draw, mark, show, zoom: eye.zoom, scale: () => eye.at.k,
    paint: (task) => itemOf(task) && paint(itemOf(task)),
    reveal: (task) => itemOf(task) && eye.reveal(itemOf(task).node),
    resized(rect) {
      size = rect;
      moved(eye.at);
    },
  };
}
