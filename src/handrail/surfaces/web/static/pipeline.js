// A pipeline run as steps: where it stands, what each phase took, what was spent.
import { bar, h, icon, pill, span, when } from "./dom.js";
import { action, asking, entry, facts, listing } from "./listing.js";

export const title = "Pipeline";

const STATES = { done: "completed", now: "in_progress", waits: "waiting", next: "pending" };

function spending({ spent, budget }) {
  return Object.entries(spent ?? {}).filter(([, count]) => count !== null).map(([name, count]) => {
    const most = budget?.[`hard_${name}`] ?? budget?.[`soft_${name}`];
    const text = `${count.toLocaleString()}${most ? ` of ${most.toLocaleString()}` : ""} ${name}`;
    return h("div", { class: "spent" }, text, most && bar(Math.min(count, most), most));
  });
}

export function screen(ctx) {
  const send = (word, body) => ctx.api.post(`/api/workflows/${ctx.id}/${word}`, body);

  function head(run, refresh) {
    const pause = () => asking("Pause", "Why should it wait?", (reason) => send("pause", { reason }), refresh);
    const resume = () => action("Resume", () => send("resume", {}).then(refresh), "primary");
    return [h("h2", {}, run.title), run.sentence && h("p", {}, run.sentence),
      facts(run.flow, run.effort, run.branch && h("code", {}, run.branch), run.driven_by && `driven by ${run.driven_by}`),
      h("div", { class: "row" }, spending(run)), run.warning && h("p", { class: "bad" }, run.warning),
      !run.ended && ctx.state.session?.decides && h("div", { class: "row" }, run.stopped ? resume() : pause()),
      run.go_on_with && h("code", {}, run.go_on_with)];
  }

  function draw(phase) {
    return entry(
      [pill(STATES[phase.state] ?? phase.state, phase.state), h("b", {}, phase.label), phase.gate && icon("gate")],
      [phase.gate ? "a person decides" : phase.agent ?? phase.kind, phase.elapsed_ms && `took ${span(phase.elapsed_ms)}`,
        phase.started_at && ["began ", when(phase.started_at)], phase.tries > 1 && `${phase.tries} tries`,
        phase.tokens > 0 && `${phase.tokens.toLocaleString()} tokens`,
        phase.answer && `${phase.answer}${phase.answered_by ? ` by ${phase.answered_by}` : ""}`,
        phase.output && h("code", {}, phase.output)],
      (phase.again ?? phase.feedback) && h("blockquote", {}, phase.again ?? phase.feedback));
  }

  return listing(ctx, {
    path: () => `/api/workflows/${ctx.id}/pipeline`,
    topics: ["pipeline", "gates", "workflows"],
    looks: "steps",
    items: (run) => run.phases,
    empty: ["This workflow is no run of a pipeline.", "handrail pipeline"],
    head,
    draw,
  });
}
