// What news means: the rows it contains are applied, and the rest is reloaded.
import { isLoaded, line, loadHome, loadNeeds, loadWorkflow, state, takeRows, touch } from "./live.js";
import { paced } from "./paced.js";

let early = []; // news that arrived while everything was loading
const needsAgain = paced(loadNeeds);
const homeAgain = paced(loadHome);
const workflowAgain = paced(() => loadWorkflow(state.workflow?.workflow.id).then(() => touch({ all: true })));

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
  if (topics.has("gates") || topics.has("reviews") || topics.has("messages")) needsAgain();
  if (topics.has("messages")) homeAgain();
  const ours = news.workflows.some((row) => row.id === open);
  if (ours && (topics.has("plan") || topics.has("pipeline"))) workflowAgain();
  touch({ topics, workflows: news.workflows.map((row) => row.id), tasks: news.tasks.map((row) => row.id) });
}

line.loaded = () => {
  const waiting = early;
  early = [];
  waiting.forEach(apply);
  needsAgain(); // these carry no position, so load them again after everything else
};
if (isLoaded()) line.loaded();
