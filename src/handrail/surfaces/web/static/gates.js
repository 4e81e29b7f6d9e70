// Every decision that was asked for: who answered, when, through which channel, and what exactly lay before them.
import { button, h, pill, span, when } from "./dom.js";
import { material } from "./deciding.js";
import { entry, listing, taskLink } from "./listing.js";

export const title = "Gates";

const STATES = { open: "waiting", withdrawn: "skipped", reject: "failed", abandon: "failed" };

export function screen(ctx) {
  function draw(gate) {
    const phase = ctx.state.workflow?.pipeline?.phases.find((each) => each.id === gate.question);
    const question = phase?.label ?? gate.question; // a run asks by the id of its phase
    const open = gate.status === "open";
    const state = STATES[gate.status] ?? STATES[gate.answer] ?? "completed";
    return entry(
      [pill(state, open ? "waits for you" : gate.answer ?? gate.status), h("b", {}, question), taskLink(ctx, gate.task_id, gate.task_name)],
      [gate.kind, ["asked ", when(gate.created_at)], !open && gate.waited_ms > 0 && `waited ${span(gate.waited_ms)}`,
        gate.answered_by && `by ${gate.answered_by}`, gate.channel && `through ${gate.channel}`,
        gate.answered_at && ["answered ", when(gate.answered_at)],
        gate.content_hash && h("code", { title: `What was shown: ${gate.content_hash}` }, gate.content_hash.slice(0, 8))],
      gate.feedback && h("blockquote", {}, gate.feedback),
      open && button(gate.kind === "review" ? "Read" : "Read and decide", () => material({ ...gate, question })));
  }
  return listing(ctx, {
    path: () => `/api/workflows/${ctx.id}/gates`,
    topics: ["gates", "reviews"],
    items: (found) => found.gates,
    empty: ["Nobody was asked for a decision yet. The gates of a pipeline stop here and wait for you.", "handrail flow"],
    draw,
  });
}
