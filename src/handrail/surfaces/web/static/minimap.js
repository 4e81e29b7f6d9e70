// The whole graph in small, with the visible part marked. Press or drag to look elsewhere.

import { svg } from "./dom.js";

export function minimap(look) {
  const view = svg("rect.mini-view");
  const layer = svg("g");
  const node = svg("svg.minimap", { aria: { hidden: "true" } }, layer, view);
  let boxes = new Map();

  function point(event) {
    if (!event.buttons) return;
    const spot = new DOMPoint(event.clientX, event.clientY).matrixTransform(layer.getScreenCTM().inverse());
    look(spot.x, spot.y);
  }
  node.addEventListener("pointermove", point);
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    point(event);
  });

  return {
    node,
    /** `looks`: the class of a box, by its id. */
    draw(graph, looks) {
      node.setAttribute("viewBox", `-40 -40 ${graph.width + 80} ${graph.height + 80}`);
      const boxOf = ({ id, x, y, w, h }) => svg("rect", { x, y, width: w, height: h, class: looks(id) });
      boxes = new Map(graph.nodes.map((one) => [one.id, boxOf(one)]));
      layer.replaceChildren(...boxes.values());
    },
    paint: (id, looks) => boxes.get(id)?.setAttribute("class", looks),
    moved(at, { width, height }) {
      const box = { x: -at.x / at.k, y: -at.y / at.k, width: width / at.k, height: height / at.k };
      for (const [name, value] of Object.entries(box)) view.setAttribute(name, value);
    },
  };
}
