// The agents. A heartbeat shows that a process is alive, the last action that it works: both are shown.
import { h, now, pill, span, when } from "./dom.js";
import { asking, entry, smallFacts, listing, taskLink } from "./listing.js";

const LOOKS = { working: "in_progress", idle: "pending" };

export function screen(ctx) {
  const may = ctx.state.session?.decides;
  const left = (until) => (until > now() ? `lease ends in ${span(until - now())}` : `lease ended ${span(now() - until)} ago`);

  function held(agent, task, refresh) {
    const release = (reason) => ctx.api.post(`/api/tasks/${task.id}/release`, { reason, agent_id: agent.id });
    return h("li.row",
      ctx.id ? taskLink(ctx, task.id, task.name) : h("a", { href: `#/w/${task.workflow_id}/graph?task=${task.id}` }, task.name),
      may && asking("Release", "Why release it?", release, refresh, "quiet"),
      smallFacts(["since ", when(task.since)], left(task.lease_expires_at), !ctx.id && task.workflow_name));
  }

  function draw(agent, refresh) {
    const last = agent.last_action;
    const how = agent.tier === "ok" ? agent.status : agent.tier;
    const write = (body) => ctx.api.post("/api/messages", { recipient_id: agent.id, body });
    return entry(
      [pill(LOOKS[how] ?? how, how), h("b", agent.name),
        smallFacts(agent.type, agent.role, agent.unread > 0 && `${agent.unread} unread`),
        may && agent.tier !== "gone" && asking("Message", `To ${agent.name}`, write, refresh, "quiet")],
      [["heartbeat ", when(agent.heartbeat_at)], last ? ["last action ", when(last.at), ": ", last.text] : "no action yet",
        agent.workspace && h("code", { title: agent.workspace.path }, agent.workspace.branch ?? agent.workspace.path)],
      h("ul.held", agent.tasks.map((task) => held(agent, task, refresh))));
  }

  return listing(ctx, {
    path: () => "/api/agents" + (ctx.id ? `?workflow=${ctx.id}` : ""),
    topics: ["agents", "tasks"],
    every: 15000,
    ages: true,
    items: (found) => found.agents,
    empty: ["No agents yet. An agent appears here with its first call.", "handrail init"],
    draw,
  });
}
