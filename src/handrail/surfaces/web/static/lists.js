// The plain lists of a workflow.
import { material, closeReview } from "./deciding.js";
import { bar, button, clock, h, icon, pill, span, when } from "./dom.js";
import { entry, finder, listing, notChosen, openDocument, taskLink } from "./listing.js";

const ANSWERED = { approve: "approved", reject: "rejected", abandon: "abandoned" };
const GATE_STATES = { open: "waiting", withdrawn: "skipped", reject: "failed", abandon: "failed" };

function gates(ctx) {
  function draw(gate) {
    const question = gate.phase ?? gate.question; // a run's question is the id of its phase
    const open = gate.status === "open";
    const state = GATE_STATES[gate.status] ?? GATE_STATES[gate.answer] ?? "completed";
    return entry(
      [pill(state, open ? "waits for you" : ANSWERED[gate.answer] ?? gate.answer ?? gate.status), h("b", question), taskLink(ctx, gate.task_id, gate.task_name)],
      [gate.kind, ["asked ", when(gate.created_at)], !open && gate.waited_ms > 0 && `waited ${span(gate.waited_ms)}`,
        gate.answered_by && `by ${gate.answered_by}`, gate.channel && `via ${gate.channel}`,
        gate.answered_at && ["answered ", when(gate.answered_at)],
        gate.withdrawn && `withdrawn: ${gate.withdrawn}`, gate.path && h("code", gate.path),
        gate.content_hash && h("code", { title: `Hash of what was shown: ${gate.content_hash}` }, gate.content_hash.slice(0, 8))],
      gate.feedback && h("blockquote", gate.feedback),
      reads(gate, question, open));
  }

  /** What was shown with a closed question is not kept: only the current version can be read. */
  function reads(gate, question, open) {
    const note = `the version asked about had the hash ${gate.content_hash.slice(0, 8)}`;
    if (!open && gate.path) return button("Read the current version", () => openDocument(ctx, gate.path.split("/").at(-1), note));
    const label = open && gate.kind !== "review" ? "Read and decide" : "Read";
    return (open || gate.task_id) && button(label, () => material({ ...gate, question }));
  }

  const empty = ["No decisions to make yet. When a pipeline reaches a gate, it waits here for your answer.", "handrail flow"];
  return { topics: ["gates", "reviews"], empty, draw };
}

/** What a person is asked to look at. Nothing waits for these; they are closed with a word. */
function reviews(ctx) {
  function draw(review) {
    const open = review.status === "open";
    return entry(
      [pill(open ? "waiting" : "completed", open ? "to review" : review.answer ?? review.status), h("b", review.question),
        taskLink(ctx, review.task_id, review.task_name)],
      [["asked ", when(review.created_at)], review.answered_at && ["closed ", when(review.answered_at)],
        review.answered_by && `by ${review.answered_by}`],
      review.resolution && h("p", h("b", "What the agent did: "), review.resolution),
      review.remark && h("blockquote", review.remark),
      open && ctx.decides && button("Mark reviewed…", () => closeReview(review)));
  }
  const empty = ["No reviews requested. Agents ask for one when a person should look at their work.", "handrail review"];
  return { topics: ["reviews", "gates"], empty, draw };
}

function decisions(ctx) {
  const jump = (id, words) => id && button(words, () => {
    const row = document.getElementById(`decision-${id}`);
    row?.scrollIntoView({ block: "center" });
    row?.focus();
  }, "link");

  function draw(each) {
    const row = entry(
      [pill(each.superseded_by ? "skipped" : "completed", each.status), h("b", each.title), taskLink(ctx, each.task_id, each.task_name)],
      [each.by, when(each.at), ...each.tags.map((tag) => tag.replaceAll("_", " ")),
        jump(each.superseded_by, "see what replaced it"), ...[each.supersedes].flat().map((id) => jump(id, "see what it replaced"))],
      each.chosen && h("p", each.chosen),
      each.reason && h("p", h("span.muted", "Why: "), each.reason),
      each.consequences && h("p", h("span.muted", "Consequences: "), each.consequences),
      notChosen(each));
    return Object.assign(row, { id: `decision-${each.id}`, tabIndex: -1 });
  }

  return {
    tools: h("div.tools.row", finder(ctx, "search", "Search decisions")),
    path: () => `/api/workflows/${ctx.id}/decisions?search=${encodeURIComponent(ctx.param("search"))}`,
    topics: ["decisions"],
    empty: ["No decisions found. Agents record what they chose, why, and what else they considered.", "handrail decisions"],
    draw,
  };
}

function share(part) {
  const percent = Math.round(part * 100);
  return part !== null && [bar(percent, 100), `${percent}% of the task`];
}

const milestones = (ctx) => ({
  topics: ["checkpoints", "tasks"],
  head: ({ progress }) => [h("p", `${progress.done} of ${progress.total} tasks finished`), bar(progress.done, progress.total)],
  empty: ["No milestones yet. Agents record one when they reach something that matters."],
  draw: (each) => entry(
    [icon(each.status === "complete" ? "completed" : "ready"), taskLink(ctx, each.task_id, each.title)],
    [each.status, each.by, when(each.at), share(each.progress)],
    h("p.prose", each.text)),
});

function versions() {
  function names(each, kind) {
    const [count, shown] = [each[kind], each[`${kind}_names`]];
    const more = count > shown.length && ` and ${count - shown.length} more`;
    return count > 0 && h("p", h("span.muted", `${count} ${kind}: `), shown.join(", "), more);
  }
  return {
    topics: ["plan", "workflows"],
    key: (each) => each.version,
    empty: ["No plan yet. Every version of it is kept here."],
    draw: (each) => entry([h("b", `Version ${each.version}`), each.summary], [each.by, when(each.at)],
      ["added", "removed", "changed"].map((kind) => names(each, kind))),
  };
}

const boards = () => ({
  path: () => "/api/board",
  topics: ["board"],
  items: (found) => found.boards.flatMap((board) => board.entries.map((each) => ({ ...each, board: board.name }))),
  key: (each) => `${each.board} ${each.key}`,
  empty: ["Nothing on the board yet. Agents share values with each other here.", "handrail board"],
  draw: (each) => entry([h("span.muted", each.board), h("b.mono", each.key)],
    [each.set_by, when(each.updated_at), `version ${each.version}`, each.expires_at && `until ${clock(each.expires_at)}`, ...each.tags],
    h("pre", typeof each.value === "string" ? each.value : JSON.stringify(each.value, null, 2))),
});

const LISTS = { gates, reviews, decisions, milestones, versions, boards, board: boards };

export const screen = (ctx) => listing(ctx, LISTS[ctx.tab](ctx));
