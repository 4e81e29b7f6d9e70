// What a person is asked to look at. Nothing waits for these; they are closed with a word.
import { button, h, pill, when } from "./dom.js";
import { closeReview } from "./deciding.js";
import { entry, listing, taskLink } from "./listing.js";

export const title = "Reviews";

export function screen(ctx) {
  return listing(ctx, {
    path: () => `/api/workflows/${ctx.id}/reviews`,
    topics: ["reviews", "gates"],
    items: (found) => found.reviews,
    empty: ["No review was asked for. Agents ask for one where somebody should look at their work.", "handrail review"],
    draw: (review) => {
      const open = review.status === "open";
      return entry(
        [pill(open ? "waiting" : "completed", review.answer ?? review.status), h("b", {}, review.question),
          taskLink(ctx, review.task_id, review.task_name)],
        [["asked ", when(review.created_at)], review.answered_at && ["closed ", when(review.answered_at)],
          review.answered_by && `by ${review.answered_by}`],
        review.remark && h("blockquote", {}, review.remark),
        open && ctx.state.session?.decides && button("Looked at…", () => closeReview(review)));
    },
  });
}
