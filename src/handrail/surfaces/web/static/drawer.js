// The drawer beside the screens, in which one task is inspected. What it says of the task is inspector.js's.
import { replace } from "./dom.js";
import { inspector } from "./inspector.js";

const part = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 800px)");
const NOTHING = { topics: new Set(), workflows: new Set(), tasks: new Set(), all: false };

export function drawer() {
  const node = part("drawer");
  let task = null;
  let view = null;
  let before = null; // what had the focus before the drawer opened

  /** On a phone the drawer covers the page: what lies below it is out of reach for keys and for readers as well. */
  function makeInert() {
    for (const id of ["skip", "top", "phases", "needs", "tabs", "main"]) part(id).inert = narrow.matches && !node.hidden;
  }

  /** Shows a task, none with null. `context` is what a screen gets; `focused` had the focus when that was asked for. */
  function inspect(wanted, context, focused) {
    if (task === wanted) return view?.update?.(NOTHING);
    const wasOpen = task !== null;
    view?.close?.();
    view = null;
    task = wanted;
    node.hidden = !task;
    makeInert();
    if (!task) {
      replace(node);
      (before?.isConnected ? before : part("main")).focus();
      return;
    }
    if (!wasOpen) before = focused;
    view = inspector(context);
    replace(node, view.node);
    node.scrollTop = 0;
    node.focus();
  }

  narrow.addEventListener("change", makeInert);
  return { inspect, update: (change) => view?.update?.(change) };
}
