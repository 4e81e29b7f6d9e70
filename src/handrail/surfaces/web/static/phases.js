// The phases of a run, in a strip below the bar on top.
import { h, icon, keyed } from "./dom.js";

const ICONS = { done: "completed", now: "in_progress", waits: "gate", next: "pending" };

export function drawn(strip, phases, href) {
  keyed(strip, phases, (phase) => phase.id, (phase) => h("a", {
    class: "phase s-" + phase.state, href, title: `${phase.label}: ${phase.state}`,
    aria: phase.state === "now" || phase.state === "waits" ? { current: "step" } : {},
  }, icon(ICONS[phase.state] ?? phase.state), phase.label, h("span.sr", phase.state)), href);
}
