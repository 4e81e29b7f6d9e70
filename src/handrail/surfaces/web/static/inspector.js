// One task in full, in the drawer beside the screens: why it is in its state, and everything known about it.

import { dialog, facts } from "./dialog.js";
import { copyButton, diffView } from "./diff.js";
import { button, h, icon, iconButton, joined, keyed, now, pill, replace, span, told, when, word } from "./dom.js";
import { notChosen, releasing } from "./listing.js";
import { noChange } from "./live.js";
import { prose } from "./prose.js";

const signed = (text, by, at) => [text, " ", h("span.muted.small", by && `${by} · `, when(at))];

/** How to draw a list. */
const listed = (looks, draw = (item) => item) => (items) => h("ul", { class: "plain " + looks }, items.map((item) => h("li", draw(item))));

function attempt({ number, agent, outcome, error, started_at: from, ended_at: to }) {
  return [h("b", `${number}. `), joined([agent ?? "no agent", word(outcome ?? "running"), to && span(to - from)]), " · ", when(from),
    error && h("p.bad", error)];
}

function journal({ directory, areas, files, added, removed, out_of_scope: outside, warnings }) {
  const changed = files !== null && `${files} ${files === 1 ? "file" : "files"}, +${added} −${removed}`;
  return [
    facts({ Directory: directory, Areas: areas.join(", "), Changed: changed }),
    outside.length > 0 && h("div.notice.s-failed",
      h("b.bad", icon("failed"), " Out of scope"), listed("mono")(outside)),
    listed("bad")(warnings),
  ];
}

function gate({ status, answer, question, feedback, answered_by: by, channel, answered_at: at, created_at: since }) {
  return [pill(at ? "completed" : "waiting", answer ?? status), " ", signed(question, joined([by, channel]), at ?? since),
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

/** Reloads when its task changes. */
function inspector(ctx) {
  const id = ctx.param("task");
  const path = "/api/tasks/" + encodeURIComponent(id);
  const node = h("div.inspector");
  let over = null; // the dialog with the changes

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
    return [h("p", lease?.agent ?? agent, lease && [" ", told]),
      lease && releasing(ctx, encodeURIComponent(id), load, "danger")];
  }

  // Title, the field of the document it shows, how it is drawn. A section is redrawn only if that changed.
  const parts = [
    ["", ({ task, why, changes }) => ({ task, why, changes }), head],
    ["Error", (doc) => doc.task.error, (error) => h("pre.bad", error)],
    ["Agent", ({ lease, task: { agent } }) => (lease || agent) && { lease, agent }, holder],
    ["Needs", "needs", chips],
    ["Unlocks", "unlocks", chips],
    ["Part of", (doc) => doc.parent && [doc.parent], chips],
    ["Subtasks", "subtasks", chips],
    ["Result", (doc) => [doc.outcome, doc.detail].filter(Boolean), (texts) => texts.map(prose)],
    ["Brief", "description", prose],
    ["Acceptance criteria", "acceptance", listed("ticks")],
    ["Evidence", "evidence", (items) => items.map(evidence)],
    ["Attempts", "attempts", listed("", attempt)],
    ["Files", "files", listed("mono")],
    ["Journal", "journal", journal],
    ["Worktree", "workspace", worktree],
    ["Approvals", "gates", listed("", gate)],
    ["Decisions", "decisions", listed("quotes", decision)],
    ["Checkpoints", "checkpoints", listed("", checkpoint)],
    ["Messages", "messages", listed("quotes", message)],
  ];

  function draw(doc) {
    const filled = parts.map(([name, pick], place) => ({ name, place, value: pick.call ? pick(doc) : doc[pick] }))
      .filter(({ value }) => value && value.length !== 0);
    keyed(node, filled, ({ name, place, value }) => h("section", name && h("h3", name), parts[place][2](value)), (part) => part.name);
  }

  function load() {
    const fail = (error) => replace(node, h("p.empty", told(error)));
    return ctx.api.get(path).then(draw).catch(fail);
  }

  /** The changes cover the whole page while the address says so. */
  function changes() {
    const wanted = Boolean(ctx.param("diff"));
    if (wanted === Boolean(over)) return;
    if (!wanted) return over.close();
    over = dialog(`Changes: ${row?.name ?? id}`, "diff-over");
    over.node.addEventListener("close", () => {
      over = null;
      ctx.go({ diff: null });
    });
    replace(over.body, diffView(id, ctx.api));
  }

  const row = ctx.tasks().get(id);
  if (row) draw({ task: row });
  load();
  changes();
  return {
    node,
    update(change) {
      if (change.all || change.tasks.has(id)) load();
      changes();
    },
    close: () => over?.node.remove(),
  };
}

const part = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 800px)");

export function drawer() {
  const node = part("drawer");
  let task = null;
  let view = null;
  let before = null; // what had the focus before the drawer opened

  /** On a phone the drawer covers the page, so keys and screen readers must not reach what is below it. */
  function makeInert() {
    for (const id of ["skip", "top", "phases", "needs", "tabs", "main"]) part(id).inert = narrow.matches && !node.hidden;
  }

  /** Shows a task, or none with null. `focused` had the focus at the request. */
  function inspect(wanted, context, focused) {
    if (task === wanted) return view?.update?.(noChange());
    const wasOpen = task !== null;
    view?.close?.();
    view = null;
    task = wanted;
    node.hidden = !task;
    makeInert();
    if (!task) {
      replace(node);
      (before?.isConnected ? before : part("main")).focus();
      return;
    }
    if (!wasOpen) before = focused;
    view = inspector(context);
    replace(node, view.node);
    node.scrollTop = 0;
    node.focus();
  }

  narrow.addEventListener("change", makeInert);
  return { inspect, update: (change) => view?.update?.(change) };
}
