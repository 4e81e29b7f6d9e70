// What news means: the rows it contains are applied, and the rest is reloaded. Needed once everything is loaded.
import { isLoaded, isPassing, line, loadHome, loadNeeds, loadWorkflow, state, takeRows, touch } from "./live.js";

let early = []; // news that arrived while everything was loading
const asking = {};

/** Runs at once; then once more, a quarter of a second later, for all calls made meanwhile. Failures are retried. */
function soon(name, run) {
  const one = (asking[name] ??= { busy: false });
  one.again = one.busy;
  one.run = run;
  if (one.busy) return;
  one.busy = true;
  const rest = (ms) => setTimeout(() => {
    one.busy = false;
    if (one.again && state.connection !== "signed-out") soon(name, one.run);
  }, ms);
  run().then(() => rest(250), (error) => {
    one.again ||= isPassing(error);
    rest(2000);
  });
}

/** Applies what the feed sends. */
export function apply(news) {
  if (!isLoaded()) return void early.push(news);
  if (news.position <= state.position) return;
  state.position = news.position;
  takeRows(news.workflows);
  const open = state.workflow?.workflow.id;
  for (const row of news.tasks) {
    if (row.workflow_id !== open) continue;
    if (row.gone) state.workflow.tasks.delete(row.id);
    else state.workflow.tasks.set(row.id, row);
  }
  const topics = new Set(news.topics);
  if (topics.has("gates") || topics.has("reviews") || topics.has("messages")) soon("needs", loadNeeds);
  if (topics.has("messages")) soon("home", loadHome);
  const ours = news.workflows.some((row) => row.id === open);
  if (ours && (topics.has("plan") || topics.has("pipeline"))) soon("workflow", () => loadWorkflow(open).then(() => touch({ all: true })));
  touch({ topics, workflows: news.workflows.map((row) => row.id), tasks: news.tasks.map((row) => row.id) });
}

line.loaded = () => {
  const waiting = early;
  early = [];
  waiting.forEach(apply);
  soon("needs", loadNeeds); // these carry no position, so load them again after everything else
};
if (isLoaded()) line.loaded();
