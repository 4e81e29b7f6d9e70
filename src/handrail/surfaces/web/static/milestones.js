// What agents noted on the way: how far they are.
import { bar, h, icon, when } from "./dom.js";
import { entry, listing, taskLink } from "./listing.js";

export const title = "Milestones";

export function screen(ctx) {
  return listing(ctx, {
    path: () => `/api/workflows/${ctx.id}/milestones`,
    topics: ["checkpoints", "tasks"],
    items: (found) => found.milestones,
    head: ({ progress }) => [h("p", {}, `${progress.done} of ${progress.total} tasks are over`), bar(progress.done, progress.total)],
    empty: ["No milestone yet. Agents note one when something that matters is reached."],
    draw: (each) => entry(
      [icon(each.status === "complete" ? "completed" : "pending"), taskLink(ctx, each.task_id, each.title)],
      [each.status, each.by, when(each.at), each.progress !== null && `${Math.round(each.progress * 100)} % of the task`],
      h("p", { class: "prose" }, each.text)),
  });
}
