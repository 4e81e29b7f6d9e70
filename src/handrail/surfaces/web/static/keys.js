// Keys, and the dialog that tells them: who is signed in, where, and how to come in from another device.
import { button, h, replace } from "./dom.js";
import { dialog } from "./deciding.js";
import { api, state } from "./live.js";

const HELP = [
  ["1 – 9", "tabs, in order"], ["/", "search"], ["j k", "next, previous row"], ["f", "fit the graph"],
  ["a", "to the first Approve button"], ["d", "to the first Reject button"], ["g h", "all workflows"], ["Esc", "close"], ["?", "this help"],
];

/** A decision is never one key: `a` and `d` only lead to the button. */
function toButton(answer) {
  document.querySelector(`#needs [data-answer="${answer}"]`)?.focus();
}

/** Next or previous of what can be focused in the screen's list. */
function step(by) {
  const rows = [...document.querySelectorAll("#main :is(a.flow, [data-row], tbody tr[tabindex], .entries > li a, .entries > li button)")];
  const at = rows.indexOf(document.activeElement);
  rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))]?.focus();
}

export function keys(shell) {
  let leading = "";
  const runs = {
    "/": () => document.getElementById("search").focus(),
    "?": about,
    a: () => toButton("approve"),
    d: () => toButton("reject"),
    f: () => shell.screen()?.fit?.(),
    j: () => step(1),
    k: () => step(-1),
    h: () => leading === "g" && (location.hash = "#/"),
    Escape: () => shell.closeDrawer(),
  };
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest?.("input, textarea, select, dialog");
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || writing || !state.session) return;
    const tab = /^[1-9]$/.test(event.key) ? shell.tabs()[event.key - 1] : null;
    const run = tab ? () => shell.go({ tab }) : runs[event.key];
    run?.();
    if (run && event.key !== "Escape") event.preventDefault();
    leading = event.key;
  });
}

/** A fresh one-time link, for a phone or another browser. */
async function anotherDevice(place) {
  try {
    const { url } = await api.post("/api/links");
    const field = h("input", { class: "field mono link-out", value: url, readonly: true, aria: { label: "Sign-in link" } });
    replace(place, h("p", { class: "small" }, "Opens this page once, within ten minutes. Whoever has it decides as you do."), field,
      button("Copy the link", () => (field.select(), navigator.clipboard?.writeText(url))));
    field.select();
  } catch (error) {
    replace(place, h("p", { class: "bad" }, error.message, " ", error.hint));
  }
}

export function about() {
  const box = dialog("Handrail");
  const { name, decides, version, project, store, approvals } = state.session ?? {};
  const place = h("div", { class: "stack" });
  const fact = (term, text) => [h("dt", {}, term), h("dd", {}, text)];
  replace(box.body,
    state.session && h("dl", { class: "facts" }, fact("You", name + (decides ? ", who decides" : ", reading only")), fact("Project", project),
      fact("Store", store), fact("Approvals", approvals === "human" ? "only a person's" : "by a person or an agent"), fact("Version", version)),
    h("dl", { class: "help" }, HELP.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])), place);
  if (decides) {
    replace(box.foot, button("Sign in another device", () => anotherDevice(place)),
      button("Sign out", () => api.post("/api/session/end").then(() => location.reload())));
  }
}
