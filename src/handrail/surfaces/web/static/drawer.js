// The drawer beside the screens, where one task is inspected. inspector.js provides its content.
import { replace } from "./dom.js";
import { inspector } from "./inspector.js";
import { noChange } from "./live.js";

const part = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 800px)");

export function drawer() {
  const node = part("drawer");
  let task = null;
  let view = null;
  let before = null; // what had the focus before the drawer opened

  /** On a phone the drawer covers the page, so keys and screen readers must not reach what is below it. */
  function makeInert() {
    for (const id of ["skip", "top", "phases", "needs", "tabs", "main"]) part(id).inert = narrow.matches && !node.hidden;
  }

  /** Shows a task, or none with null. `context` is what a screen gets; `focused` had the focus at the request. */
  function inspect(wanted, context, focused) {
    if (task === wanted) return view?.update?.(noChange());
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
