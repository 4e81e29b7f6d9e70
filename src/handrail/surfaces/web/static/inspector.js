// One task in full: why it is in its state, and everything known about it. Reloads when its task changes.

import { facts } from "./dialog.js";
import { copyButton, diffView } from "./diff.js";
import { button, h, icon, iconButton, keyed, now, pill, replace, span, told, when, word } from "./dom.js";
import { asking, notChosen } from "./listing.js";
import { prose } from "./prose.js";

const signed = (text, by, at) => [text, " ", h("span.muted.small", by && `${by} · `, when(at))];
const said = (...words) => words.filter(Boolean).join(" · ");

function lines(items, draw = (item) => item, looks = "") {
  return h("ul", { class: "plain " + looks }, items.map((item) => h("li", draw(item))));
}

function attempt({ number, agent, outcome, error, started_at: from, ended_at: to }) {
  return [h("b", `${number}. `), said(agent ?? "no agent", word(outcome ?? "running"), to && span(to - from)), " · ", when(from),
    error && h("p.bad", error)];
}

function journal({ directory, areas, files, added, removed, out_of_scope: outside, warnings }) {
  const changed = files !== null && `${files} ${files === 1 ? "file" : "files"}, +${added} −${removed}`;
  return [
    facts({ Directory: directory, Areas: areas.join(", "), Changed: changed }),
    outside.length > 0 && h("div.notice.s-failed",
      h("b.bad", icon("failed"), " Out of scope"), lines(outside, undefined, "mono")),
    lines(warnings, undefined, "bad"),
  ];
}

function gate({ status, answer, question, feedback, answered_by: by, channel, answered_at: at, created_at: since }) {
  return [pill(at ? "completed" : "waiting", answer ?? status), " ", signed(question, said(by, channel), at ?? since),
    feedback && h("p.quote", feedback)];
}

function decision(one) {
  const { title, chosen, reason, by, at } = one;
  return [h("b", title), chosen && h("p", h("span.muted", "Chosen: "), chosen), h("p", signed(reason, by, at)),
    notChosen(one)];
}

function evidence({ name, ok, text }) {
  const verdict = ok ? pill("completed", "passed") : pill("failed");
  return h("details", h("summary", verdict, " ", name), h("pre", text));
}

const checkpoint = (one) => [h("b", one.type), " ", signed(one.summary, one.by, one.created_at)];
const message = (one) => [h("b", `${one.sender} → ${one.recipient}`), " ", signed(one.body, one.subject, one.created_at)];
const worktree = ({ branch, path, status }) => facts({ Branch: branch, Path: path, State: status });

export function inspector(ctx) {
  const id = ctx.params.get("task");
  const path = "/api/tasks/" + encodeURIComponent(id);
  const node = h("div.inspector");
  const over = h("dialog.diff-over", { aria: { label: "Changes" }, on: { close: () => ctx.go({ diff: null }) } });

  const chips = (items) => h("div.task-chips", items.map((task) =>
    button([icon(task.status), task.name], () => ctx.select(task.id), "chip s-" + task.status, { title: word(task.status) })));
  const events = () => button("Events", () => ctx.go({ tab: "events", task: null, of: id }));

  function head({ task, why, changes }) {
    return [
      h("div.row.title", h("h2.grow", task.name),
        iconButton("close", "Close (Esc)", () => ctx.select(null))),
      h("p", why),
      h("div.row", pill(task.status), task.waiting && pill("waiting", "waits for you"),
        task.group && h("span.chip", task.group),
        h("span.acts.row", changes && button("Changes", () => ctx.go({ diff: "1" })), events(), copyButton("copy", "Copy the id, " + task.id, task.id),
          copyButton("link", "Copy a link to this task", location.href))),
    ];
  }

  function holder({ lease, agent }) {
    const left = lease && lease.expires_at - now();
    const told = left < 0 ? h("b.bad", `lost its lease ${span(-left)} ago`) : `holds it for another ${span(left)}`;
    const release = (reason) => ctx.api.post(path + "/release", { reason });
    return [h("p", lease?.agent ?? agent, lease && [" ", told]),
      lease && ctx.state.session?.decides
        && asking("Release", "Why release it?", release, load, "danger")];
  }

  // Title, the part of the document it shows, how it is drawn. A section is redrawn only if that part changed.
  const parts = [
    ["", ({ task, why, changes }) => ({ task, why, changes }), head],
    ["Error", (doc) => doc.task.error, (error) => h("pre.bad", error)],
    ["Agent", ({ lease, task: { agent } }) => (lease || agent) && { lease, agent }, holder],
    ["Needs", (doc) => doc.needs, chips],
    ["Unlocks", (doc) => doc.unlocks, chips],
    ["Part of", (doc) => doc.parent && [doc.parent], chips],
    ["Subtasks", (doc) => doc.subtasks, chips],
    ["Result", (doc) => [doc.outcome, doc.detail].filter(Boolean), (texts) => texts.map(prose)],
    ["Brief", (doc) => doc.description, prose],
    ["Acceptance criteria", (doc) => doc.acceptance, (items) => lines(items, undefined, "ticks")],
    ["Evidence", (doc) => doc.evidence, (items) => items.map(evidence)],
    ["Attempts", (doc) => doc.attempts, (items) => lines(items, attempt)],
    ["Files", (doc) => doc.files, (items) => lines(items, undefined, "mono")],
    ["Journal", (doc) => doc.journal, journal],
    ["Worktree", (doc) => doc.workspace, worktree],
    ["Approvals", (doc) => doc.gates, (items) => lines(items, gate)],
    ["Decisions", (doc) => doc.decisions, (items) => lines(items, decision, "quotes")],
    ["Checkpoints", (doc) => doc.checkpoints, (items) => lines(items, checkpoint)],
    ["Messages", (doc) => doc.messages, (items) => lines(items, message, "quotes")],
  ];

  function draw(doc) {
    const filled = parts.map(([name, pick], place) => ({ name, place, value: pick(doc) }))
      .filter(({ value }) => value && value.length !== 0);
    keyed(node, filled, (part) => part.name, ({ name, place, value }) =>
      h("section", name && h("h3", name), parts[place][2](value)));
  }

  function load() {
    const fail = (error) => replace(node, h("p.empty", told(error)));
    return ctx.api.get(path).then(draw).catch(fail);
  }

  /** The changes cover the whole page while the address says so. */
  function changes() {
    const wanted = Boolean(ctx.params.get("diff"));
    if (wanted === over.open) return;
    if (!wanted) return over.close();
    const close = iconButton("close", "Close (Esc)", () => over.close());
    const name = ctx.state.workflow?.tasks.get(id)?.name;
    replace(over, h("header", h("h2", "Changes: ", name ?? id), close), diffView(id, ctx.api));
    document.body.append(over);
    over.showModal();
  }

  const row = ctx.state.workflow?.tasks.get(id);
  if (row) draw({ task: row });
  load();
  changes();
  return {
    node,
    update(change) {
      if (change.all || change.tasks.has(id)) load();
      changes();
    },
    close: () => over.remove(),
  };
}
