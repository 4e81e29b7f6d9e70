// The ledger as it is: numbered events, newest first, each with its data.
import { button, chips, h, iconButton, keyed, replace, taken, when } from "./dom.js";
import { empty, finder, problem } from "./listing.js";
import { paced } from "./paced.js";

const PAGE = 100;
const MOST = 2000; // rows kept while news keeps coming

export function screen(ctx) {
  const list = h("ol.entries.events", { role: "list" });
  const foot = h("div.row", { role: "status" });
  const follow = h("div.row");
  const tools = h("div.tools.row", finder(ctx, "kind", "Kind, e.g. task.completed"), finder(ctx, "actor", "Who, e.g. an agent"), follow);
  let events = [];
  let shown = null;
  let paused = false;

  /** `of` is the task whose events are shown; `task` in the address is the one in the drawer. */
  const filters = () => [["kind", "kind"], ["actor", "actor"], ["task", "of"]]
    .map(([name, param]) => [name, ctx.param(param)]).filter(([, value]) => value);

  function path(more = {}) {
    const query = new URLSearchParams({ limit: PAGE, ...more });
    if (ctx.id) query.set("workflow", ctx.id);
    for (const [name, value] of filters()) query.set(name, value);
    return `/api/events?${query}`;
  }

  const sought = () => Number(ctx.param("seq"));
  const asked = () => path({ seq: sought() });

  async function load(more, join) {
    const mine = (shown = asked());
    try {
      const found = await ctx.api.get(path(more));
      if (mine !== shown) return;
      events = join(found.events);
      keyed(list, events, draw, (event) => event.position, sought());
      const older = () => load({ before: found.oldest }, (next) => [...events, ...next]);
      const none = filters().length ? empty("No matching events.")
        : empty("Nothing has happened yet. Every change by an agent or a person is recorded here.", "handrail init");
      const end = events.length ? "No older events." : none;
      if (more.after === undefined) replace(foot, found.more ? button("Older events", older) : end);
    } catch (error) {
      replace(foot, problem(error, begin));
    }
  }

  async function begin() {
    drawFollow();
    await load(sought() ? { before: sought() + 10 } : {}, (found) => found);
    if (sought()) list.querySelector(".chosen")?.scrollIntoView({ block: "center" });
  }

  const newest = paced(() => load({ after: events[0]?.position ?? 0 }, (fresh) => [...fresh, ...events].slice(0, MOST)));

  function drawFollow() {
    const toggle = () => {
      paused = !paused;
      begin();
    };
    const of = ctx.param("of");
    const name = ctx.tasks().get(of)?.name ?? of;
    replace(follow, of && taken(name, "Show all events", () => ctx.go({ of: null })), sought()
      ? button("Follow the newest", () => ctx.go({ seq: null }))
      : chips("Stream", [[true, "Pause"]], paused, toggle));
  }

  function draw(event) {
    const written = JSON.stringify(event, null, 2);
    const body = h("pre");
    const chosen = event.position === sought();
    const summary = h("summary", h("code", `#${event.position}`), h("b", event.kind), h("span.muted", { title: event.text }, event.text),
      h("span.muted", `${event.actor_name} via ${event.channel}`), when(event.at));
    const toggle = () => replace(body, written);
    return h("li", { class: chosen ? "entry chosen" : "entry" }, h("details", { open: chosen, on: { toggle } }, summary,
      h("div.row", iconButton("copy", "Copy JSON", () => navigator.clipboard?.writeText(written)),
        iconButton("link", "Link to this event", () => ctx.go({ seq: event.position }))), body));
  }

  begin();
  return {
    node: h("section.screen", tools, list, foot),
    update(change) {
      if (asked() !== shown) begin();
      else if (!paused && !sought() && (change.all || change.topics.size)) newest();
    },
  };
}
