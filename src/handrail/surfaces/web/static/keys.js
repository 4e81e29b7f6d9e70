// Keys. help.js explains them.
import { clamp } from "./dom.js";
import { state } from "./live.js";

/** A decision never takes a single key: `a` and `d` only move the focus to the button. */
function toButton(answer) {
  document.querySelector(`#needs [data-answer="${answer}"]`)?.focus();
}

/** The next or previous focusable item in the screen's list. */
function step(by) {
  const rows = [...document.querySelectorAll("#main :is(a.flow, [data-row], tbody tr[tabindex], .entries > li a, .entries > li button)")];
  const at = rows.indexOf(document.activeElement);
  rows[at < 0 ? 0 : clamp(at + by, 0, rows.length - 1)]?.focus();
}

export function keys(shell) {
  let leading = "";
  const runs = {
    "/": () => document.getElementById("search")?.focus(),
    "?": () => import("./help.js").then((help) => help.about()),
    a: () => toButton("approve"),
    d: () => toButton("reject"),
    f: () => shell.screen()?.fit?.(),
    j: () => step(1),
    k: () => step(-1),
    h: () => leading === "g" && (location.hash = "#/"),
    Escape: () => shell.closeDrawer(),
  };
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]"); // wherever its focus is
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || writing || !state.session) return;
    const tab = /^[1-9]$/.test(event.key) ? shell.tabs()[event.key - 1] : null;
    const run = tab ? () => shell.go({ tab }) : runs[event.key];
    run?.();
    if (run && event.key !== "Escape") event.preventDefault();
    leading = event.key;
  });
}
