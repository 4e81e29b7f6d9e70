// A pipeline run as steps: where it is, how long each phase took, what was spent.
import { bar, button, h, icon, pill, span, when } from "./dom.js";
import { action, asking, entry, smallFacts, listing, openDocument } from "./listing.js";
import { standing } from "./phases.js";
import { prose } from "./prose.js";

function spending({ spent, budget }) {
  return Object.entries(spent ?? {}).filter(([, count]) => count).map(([name, count]) => {
    const most = budget?.[`hard_${name}`] ?? budget?.[`soft_${name}`];
    const text = `${count.toLocaleString()}${most ? ` of ${most.toLocaleString()}` : ""} ${name}`;
    return h("div.spent", text, most && bar(Math.min(count, most), most));
  });
}

/** The phases in order; consecutive skipped ones are one item. */
function folded(phases) {
  const items = [];
  for (const phase of phases) {
    const last = items.at(-1);
    if (phase.state !== "skipped") items.push(phase);
    else if (last?.skipped) last.skipped.push(phase.label);
    else items.push({ id: "skipped " + phase.id, skipped: [phase.label] });
  }
  return items;
}

export function screen(ctx) {
  let documents = [];
  const send = (word, body) => ctx.api.post(`/api/workflows/${ctx.id}/${word}`, body);

  const paper = (name) => button(name, () => openDocument(ctx, name), "link");
  const output = (name) => (documents.some((one) => one.name === name) ? paper(name) : h("code", name));
  const foot = () => documents.length > 0 && [h("h3", "Documents of this run"), smallFacts(...documents.map((one) => paper(one.name)))];

  function head(run, refresh) {
    const pause = () => asking("Pause", "Why pause it?", (reason) => send("pause", { reason }), refresh);
    const resume = () => action("Resume", () => send("resume", {}).then(refresh), "primary");
    return [h("h2", run.title), run.sentence && prose(run.sentence),
      smallFacts(`flow ${run.flow}`, run.effort && `effort ${run.effort}`, run.branch && h("code", run.branch), run.driven_by && `driven by ${run.driven_by}`),
      h("div.row.spending", spending(run)), run.warning && h("p.bad", run.warning),
      !run.ended && ctx.decides && h("div.row", run.stopped ? resume() : pause()),
      run.go_on_with && h("code", run.go_on_with)];
  }

  function draw(phase) {
    if (phase.skipped) {
      const summary = h("summary", pill("skipped", `${phase.skipped.length} skipped`));
      return h("li.entry", h("details", summary, h("p.muted", phase.skipped.join(", "))));
    }
    return entry(
      [pill(...standing(phase)), h("b", phase.label), phase.gate && icon("waiting")],
      [phase.gate ? "a person decides" : phase.agent ?? phase.kind, phase.elapsed_ms && (phase.state === "now" ? `${span(phase.elapsed_ms)} so far` : `took ${span(phase.elapsed_ms)}`),
        phase.waiting_ms && `waiting ${span(phase.waiting_ms)}`, phase.started_at && ["started ", when(phase.started_at)], phase.tries > 1 && `${phase.tries} tries`,
        phase.tokens > 0 && `${phase.tokens.toLocaleString()} tokens`,
        phase.answer && `${phase.answer}${phase.answered_by ? ` by ${phase.answered_by}` : ""}`,
        phase.output && output(phase.output)],
      (phase.again ?? phase.feedback) && h("blockquote", prose(phase.again ?? phase.feedback)));
  }

  return listing(ctx, {
    topics: ["pipeline", "gates", "workflows"],
    every: 30000,
    looks: "steps",
    items(run) {
      documents = run.documents ?? [];
      return folded(run.phases);
    },
    empty: ["This workflow is not a pipeline run.", "handrail pipeline"],
    head,
    foot,
    draw,
  });
}
