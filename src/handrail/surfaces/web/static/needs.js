// Needs you: one line for each thing that waits for the person, on every screen, and the notice of a new one.
import { button, capital, h, icon, keyed, placeOf, when } from "./dom.js";
import { state } from "./live.js";

/** The question in a person's words: a run's gate has only a short name for it, so the phase says it better. */
export const asked = (item) => item.headline || item.phase || item.question;

export const label = (answer) => capital(answer.replaceAll("_", " "));

/** A dialog of deciding.js, which is loaded when somebody first decides. */
const open = (name, ...about) => () => import("./deciding.js").then((dialogs) => dialogs[name](...about));

/** What can be done at once. Every decision is confirmed in a dialog that says what it is about. */
function acts(item) {
  const read = (words) => button(words, open("material", item), "quiet");
  if (!state.session.decides) {
    const why = h("span.muted.small", "Read-only. Sign in to decide.");
    return [item.kind !== "message" && read("Read"), why];
  }
  if (item.kind === "message") {
    return [button("Reply…", open("reply", item), "quiet"), button("Acknowledge", open("acknowledge", item))];
  }
  if (item.kind === "review") return [read("Read"), button("Mark reviewed…", open("closeReview", item))];
  const choice = (answer) => button(label(answer) + "…", open("material", item, { rejects: answer === "reject" }),
    { approve: "primary", reject: "danger" }[answer], { data: { answer } });
  const last = (answer) => answer === "reject";
  const options = item.options.filter((answer) => answer !== "abandon").sort((one, other) => last(one) - last(other));
  return [read("Read"), options.map(choice)];
}

function line(item) {
  const question = asked(item);
  const isNew = (text) => text && !question.includes(text) && text !== item.workflow_name && text !== "Message";
  const more = item.count > 1 && `${item.count} messages`;
  const about = [item.sender, more, item.title, item.task_name, item.path, item.why].filter(isNew);
  return h("div.need", { role: "group", aria: { label: question }, data: { gate: item.id, kind: item.kind } },
    icon({ decision: "waiting" }[item.kind] ?? item.kind),
    h("span.question.line-cut", { title: question }, question),
    h("span.about.line-cut", { title: about.join(" · ") },
      item.workflow_id && h("a", { href: placeOf(item.workflow_id, item.task_id) }, item.workflow_name), about.map((text) => " · " + text)),
    when(item.created_at), h("span.acts.row", acts(item)));
}

/** The strip. It stays put while nothing changes: a button under somebody's finger must not move away. */
export function needsStrip(node, announce) {
  let known = null;
  let count = () => {};
  import("./below.js").then(({ below }) => (count = below(node))(), () => {});
  return {
    update(change) {
      node.hidden = state.needs.length === 0;
      if (!change.all && !change.topics.has("needs")) return;
      const fresh = state.needs.filter((item) => known && item.kind === "decision" && !known.has(item.id));
      known = new Set(state.needs.map((item) => item.id));
      keyed(node, state.needs, line, undefined, state.session.decides);
      if (state.moreNeeds) node.append(h("p.need.muted", `${state.moreNeeds} more are waiting.`));
      count();
      if (!fresh.length) return;
      announce(`Needs you: ${fresh.map(asked).join("; ")}`);
      import("./bell.js").then((bell) => bell.notice(fresh[0].id, asked(fresh[0]), fresh[0].title));
    },
  };
}
