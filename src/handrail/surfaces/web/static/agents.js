// The agents. A heartbeat shows that a process is alive, the last action that it works: both are shown.
import { h, now, pill, span, when } from "./dom.js";
import { asking, entry, listing, releasing, smallFacts, taskLink } from "./listing.js";

const LOOKS = { working: "in_progress", idle: "ready" };

export function screen(ctx) {
  const left = (until) => (until > now() ? `lease ends in ${span(until - now())}` : `lease ended ${span(now() - until)} ago`);

  function held(agent, task, refresh) {
    return h("li.row",
      taskLink(ctx, task.id, task.name, ctx.id ?? task.workflow_id),
      releasing(ctx, task.id, refresh, "quiet", { agent_id: agent.id }),
      smallFacts(["since ", when(task.since)], left(task.lease_expires_at), !ctx.id && task.workflow_name));
  }

  function draw(agent, refresh) {
    const last = agent.last_action;
    const how = agent.tier === "ok" ? agent.status : agent.tier;
    const write = (body) => ctx.api.post("/api/messages", { recipient_id: agent.id, body });
    return entry(
      [pill(LOOKS[how] ?? how, how), h("b", agent.name),
        smallFacts(agent.type, agent.role, agent.unread > 0 && `${agent.unread} unread`),
        ctx.decides && agent.tier !== "gone" && asking("Message", `To ${agent.name}`, write, refresh, "quiet")],
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
