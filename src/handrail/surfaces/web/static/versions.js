// How the plan changed: each version with what came and went.
import { h, when } from "./dom.js";
import { entry, listing } from "./listing.js";

export const title = "Versions";

export function screen(ctx) {
  const names = (each, word) => each[word] > 0 &&
    h("p", {}, h("span", { class: "muted" }, `${each[word]} ${word}: `), each[`${word}_names`].join(", "));
  return listing(ctx, {
    path: () => `/api/workflows/${ctx.id}/versions`,
    topics: ["plan", "workflows"],
    items: (found) => found.versions,
    key: (each) => each.version,
    empty: ["The plan was never changed. Each change of it is kept here."],
    draw: (each) => entry([h("b", {}, `Version ${each.version}`), each.summary], [each.by, when(each.at)],
      ["added", "removed", "changed"].map((word) => names(each, word))),
  });
}
