// The phases of a run, in a strip below the top bar.
import { h, icon, keyed } from "./dom.js";

const STATES = { done: ["completed"], now: ["in_progress", "running"], waits: ["waiting", "waiting"], next: ["ready", "to do"] };

/** How the state of a phase looks, and what it is called. */
export function standing({ state }) {
  const [looks, text = state] = STATES[state] ?? [state];
  return [looks, text];
}

export function drawn(strip, phases, href) {
  keyed(strip, phases, (phase) => {
    const [looks, text] = standing(phase);
    const aria = phase.state === "now" || phase.state === "waits" ? { current: "step" } : {};
    return h("a", { class: "phase s-" + phase.state, href, title: `${phase.label}: ${text}`, aria }, icon(looks), phase.label, h("span.sr", text));
  }, undefined, href);
}
