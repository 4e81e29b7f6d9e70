// The phases of a run, in a strip below the top bar.
import { h, icon, keyed } from "./dom.js";

const ICONS = { done: "completed", now: "in_progress", waits: "gate", next: "pending" };
const WORDS = { now: "running", waits: "waiting", next: "to do" };

export function drawn(strip, phases, href) {
  keyed(strip, phases, (phase) => phase.id, (phase) => h("a", {
    class: "phase s-" + phase.state, href, title: `${phase.label}: ${WORDS[phase.state] ?? phase.state}`,
    aria: phase.state === "now" || phase.state === "waits" ? { current: "step" } : {},
  }, icon(ICONS[phase.state] ?? phase.state), phase.label, h("span.sr", WORDS[phase.state] ?? phase.state)), href);
}
