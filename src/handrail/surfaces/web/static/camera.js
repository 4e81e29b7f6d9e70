// Pan and zoom of one <g>: wheel, drag, pinch.
import { clamp } from "./dom.js";

const CLOSEST = 2;
const FARTHEST = 0.04;
const DRAG_STARTS_AT = 4;

/** `layer` moves within the visible `frame`; `moved` is called with each step: {x, y, k}. */
export function camera(frame, layer, moved) {
  const at = { x: 0, y: 0, k: 1 };
  const fingers = new Map();
  let dragged = false;
  let coming = 0;

  /** Moves with the next animation frame: many steps between two frames cost as much as one. */
  function set(x, y, k) {
    Object.assign(at, { x, y, k });
    coming ||= requestAnimationFrame(() => {
      coming = 0;
      layer.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.k})`);
      moved(at);
    });
  }

  const move = (dx, dy) => set(at.x + dx, at.y + dy, at.k);

  /** Zooms so that the point (px, py) of the frame stays where it is. */
  function zoom(factor, px = frame.clientWidth / 2, py = frame.clientHeight / 2) {
    const k = clamp(at.k * factor, FARTHEST, CLOSEST);
    set(px - ((px - at.x) * k) / at.k, py - ((py - at.y) * k) / at.k, k);
  }

  function center(x, y, k = at.k) {
    set(frame.clientWidth / 2 - x * k, frame.clientHeight / 2 - y * k, k);
  }

  /** Shows a whole box, clear of what overlaps the frame's upper and lower edge. */
  function show(box) {
    const width = frame.clientWidth - 48;
    const height = frame.clientHeight - 112;
    const k = Math.max(FARTHEST, Math.min(1, width / box.w, height / box.h));
    center(box.x + box.w / 2, box.y + box.h / 2, k);
  }

  /** Pans just enough to have a box inside the frame, clear of its edges. */
  function reveal(box) {
    const shift = (start, size, room, edge) => Math.max(edge - start, 0) || Math.min(room - edge - start - size, 0);
    const dx = shift(at.x + box.x * at.k, box.w * at.k, frame.clientWidth, 24);
    const dy = shift(at.y + box.y * at.k, box.h * at.k, frame.clientHeight, 56);
    if (dx || dy) move(dx, dy);
  }

  const middle = () => {
    const [a, b = a] = fingers.values();
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
  };

  function drag(event) {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const before = middle();
    const [x, y] = [event.clientX, event.clientY];
    if (!dragged && Math.hypot(x - finger.x, y - finger.y) < DRAG_STARTS_AT) return;
    if (!dragged) frame.setPointerCapture(event.pointerId);
    dragged = true;
    Object.assign(finger, { x, y });
    const after = middle();
    const edge = frame.getBoundingClientRect();
    move(after.x - before.x, after.y - before.y);
    if (before.apart) zoom(after.apart / before.apart, after.x - edge.left, after.y - edge.top);
  }

  frame.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!fingers.size) dragged = false;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  frame.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    frame.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const edge = frame.getBoundingClientRect();
    const step = event.deltaMode ? event.deltaY * 30 : event.deltaY;
    if (event.shiftKey) move(-(step || event.deltaX), 0);
    else zoom(Math.exp(-step * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - edge.left, event.clientY - edge.top);
  }, { passive: false });

  return { at, move, zoom, center, show, reveal, wasDragged: () => dragged };
}
