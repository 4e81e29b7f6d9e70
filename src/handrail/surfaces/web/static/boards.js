// The blackboards: what agents leave for each other under keys.
import { clock, h, when } from "./dom.js";
import { entry, listing } from "./listing.js";

export const title = "Blackboard";

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export function screen(ctx) {
  return listing(ctx, {
    path: () => "/api/board",
    topics: ["board"],
    items: (found) => found.boards.flatMap((board) => board.entries.map((each) => ({ ...each, board: board.name }))),
    key: (each) => `${each.board} ${each.key}`,
    empty: ["The boards are empty. Agents leave things for each other here.", "handrail board"],
    draw: (each) => entry(
      [h("span", { class: "muted" }, each.board), h("b", { class: "mono" }, each.key)],
      [each.set_by, when(each.updated_at), `version ${each.version}`, each.expires_at && `until ${clock(each.expires_at)}`, ...each.tags],
      h("pre", {}, written(each.value))),
  });
}
