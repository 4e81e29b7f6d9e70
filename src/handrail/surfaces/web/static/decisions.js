// What was decided, why, what else there was, and what took its place.
import { button, h, pill, when } from "./dom.js";
import { entry, finder, listing, taskLink } from "./listing.js";

export const title = "Decisions";

export function screen(ctx) {
  const rowOf = (id) => document.getElementById(`decision-${id}`);
  const jump = (id, words) => id && button(words, () => {
    rowOf(id)?.scrollIntoView({ block: "center" });
    rowOf(id)?.focus();
  }, "link");

  function draw(each) {
    const row = entry(
      [pill(each.superseded_by ? "skipped" : "completed", each.status), h("b", {}, each.title),
        taskLink(ctx, each.task_id, each.task_name)],
      [each.by, when(each.at), ...each.tags,
        jump(each.superseded_by, "what took its place"), ...[each.supersedes].flat().map((id) => jump(id, "what it replaced"))],
      each.chosen && h("p", {}, each.chosen),
      each.reason && h("p", {}, h("span", { class: "muted" }, "Why: "), each.reason),
      each.consequences && h("p", {}, h("span", { class: "muted" }, "Follows: "), each.consequences),
      each.alternatives.length > 0 && h("p", { class: "muted" }, `Not taken: ${each.alternatives.join("; ")}`));
    row.id = `decision-${each.id}`;
    row.tabIndex = -1;
    return row;
  }

  return listing(ctx, {
    tools: h("div", { class: "tools row" }, finder(ctx, "search", "Search decisions")),
    path: () => `/api/workflows/${ctx.id}/decisions?search=${encodeURIComponent(ctx.params.get("search") ?? "")}`,
    topics: ["decisions"],
    items: (found) => found.decisions,
    empty: ["No such decision is noted. Agents note what they chose, why, and what else there was.", "handrail decisions"],
    draw,
  });
}
