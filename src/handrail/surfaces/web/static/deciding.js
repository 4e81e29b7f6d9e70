// A person decides: the dialogs to read, comment on and answer a gate, to close a review, to answer a message.
import { dialog, draft, facts, form, keepDraft, send, trouble } from "./dialog.js";
import { button, clamp, cut, h, iconButton, joined, replace, STEPS, visible, when } from "./dom.js";
import { api, listen, loadNeeds, state } from "./live.js";
import { asked, label } from "./needs.js";
import { linesOf, styled } from "./prose.js";

function matter(gate) {
  return facts({
    Question: h("b", asked(gate)),
    Workflow: gate.workflow_name,
    Task: gate.task_name,
    Document: gate.path && h("code", gate.path),
    Hash: gate.content_hash && h("code", { title: gate.content_hash }, gate.content_hash.slice(0, 8)),
    Why: gate.why,
  });
}

const answered = (gate) => [gate.answered_by ?? "Someone", ` answered “${gate.answer}” `, when(gate.answered_at)];

/** Answers the gate. If it changed meanwhile nothing is answered, and the person sees the current version. */
async function answer(gate, word, feedback) {
  const body = { answer: word, feedback: feedback || null, content_hash: gate.content_hash };
  try {
    const { next } = await api.post(`/api/gates/${gate.id}/decision`, body);
    document.getElementById("announce").textContent = visible(next);
    loadNeeds();
  } catch (error) {
    if (error.status !== 409) throw error;
    material({ ...gate, id: error.details?.gate_id ?? gate.id }, { refused: error, before: gate, feedback });
  }
}

const LOOK_MS = 5000; // a document can change without news

/**
 * While a question is open here, somebody else may answer it or its document may change: that is reported once, and
 * then only Close can be pressed. Returns a function that checks now. `written()` is text that must not be lost.
 */
function keepTrue(box, gate, written = () => "") {
  const isSame = (now) => now.status === "open" && now.id === gate.id && now.content_hash === gate.content_hash;
  const isOpen = () => box.node.isConnected || end();

  async function look() {
    const now = await api.get("/api/gates/" + gate.id);
    if (isOpen() && !isSame(now) && !box.busy) tell(now);
    return now;
  }

  function tell(now) {
    box.busy = true; // another check may return the same result
    end();
    for (const one of box.node.querySelectorAll("footer button, .paper-line")) one.disabled = true;
    for (const one of box.node.querySelectorAll("textarea")) one.readOnly = true;
    const close = button("Close", box.close, "primary");
    const again = () => (box.close(), material({ ...gate, id: now.id }, { before: gate, feedback: written() }));
    const isAnswered = now.status !== "open";
    const said = isAnswered ? [now.answer ? answered(now) : "This question was withdrawn", ". There is nothing left to decide here."] : "The document has changed. Nothing was answered.";
    box.foot.before(h("p.notice.s-waiting", { role: "alert" }, said));
    box.foot.append(...(isAnswered ? [close] : [button("Read the current version", again), close]));
    close.focus();
  }

  const quietly = () => void look().catch(() => {});
  const clock = setInterval(() => isOpen() && !document.hidden && quietly(), LOOK_MS);
  const deaf = listen(({ all, topics }) => isOpen() && (all || topics.has("gates") || topics.has("reviews")) && quietly());
  const end = () => void (clearInterval(clock), deaf());
  return look;
}

const meaning = ({ meanings }, word) => meanings[word] && h("p.small", h("b", label(word)), ": ", styled(meanings[word])[0].shown);

function abandon(gate, said) {
  const box = form({
    title: "Abandon?", about: [matter(gate), meaning(gate, "abandon")], act: "Abandon", looks: "danger", said, kept: ["abandon", [gate]],
    text: { label: "Why end it?", why: "A reason is required. The run ends; its documents stay." },
    run: (reason) => answer(gate, "abandon", reason),
  });
  keepTrue(box, gate, () => box.node.querySelector("textarea").value);
}

export function closeReview(gate, said) {
  const box = form({
    title: "Mark reviewed", about: matter(gate), text: { label: "Comment (optional)", note: "No work is waiting for this; it just leaves the list." },
    act: "Mark reviewed", looks: "primary", said, kept: ["closeReview", [gate]],
    run: (remark) => api.post(`/api/reviews/${gate.id}/close`, { word: "looked at", remark: remark || null }),
  });
  keepTrue(box, gate);
}

/** Marks a message as read, together with the earlier ones of its thread that it stands for. */
async function markRead(message) {
  for (const id of message.ids ?? [message.id]) await api.post(`/api/messages/${id}/read`, { ack: true });
}

export function acknowledge(message) {
  markRead(message).catch((error) => replace(dialog("Could not acknowledge it").body, trouble(error)));
}

export function reply(message, said) {
  const about = [facts({ From: message.sender, About: message.subject }), h("p.said", message.question)];
  form({
    title: "Reply", about, text: { label: "Your reply", why: "This cannot be empty.", note: "Sending it also acknowledges the message." },
    act: "Send", looks: "primary", said, kept: ["reply", [message]], run: async (body) => {
      await api.post("/api/messages", { body, reply_to: message.id });
      await markRead(message);
    },
  });
}

/** Reopens what was being written when somebody was signed out. */
export function resume() {
  const { name, about, text } = draft();
  const dialogs = { abandon, closeReview, reply, material: (item) => material(item, { feedback: text }) };
  dialogs[name](...about, text);
  document.querySelector("dialog:last-of-type header").after(
    h("p.notice.s-waiting", "You were signed out before this was sent. What you wrote is still here."));
  keepDraft(name, about, text);
}

/** The document, with one button per line so that each line can be commented on. Tab stops once, arrows move on. */
function paper(text, comment, before) {
  const lines = linesOf(text);
  const known = before && new Set(linesOf(before));
  const rows = styled(text).map(({ looks, shown }, index) => {
    const isNew = known && !known.has(lines[index]);
    return h("button", {
      type: "button", class: "paper-line" + (isNew ? " changed" : ""), title: "Comment on this line", tabindex: index ? -1 : 0,
      on: { click: () => comment(index + 1, lines[index], rows[index]), focus: here },
    }, h("i", index + 1), h("span", { class: looks }, isNew && h("span.sr", "changed: "), shown));
  });

  function here({ target }) {
    rows.find((row) => row.tabIndex === 0).tabIndex = -1;
    target.tabIndex = 0;
  }

  function press(event) {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    rows[clamp(rows.indexOf(document.activeElement) + STEPS[event.key], 0, rows.length - 1)].focus();
  }

  return h("div.paper", { role: "group", aria: { label: "The document" }, on: { keydown: press } }, rows);
}

/** Comments on lines and one overall remark, which together are the feedback. */
function comments(changed) {
  const list = h("div.stack");
  const remark = h("textarea.field", { rows: 3, aria: { label: "Overall comment" }, placeholder: "Overall comment", on: { input: changed } });
  const made = new Map();

  function add(number, line, place) {
    if (made.has(number)) return made.get(number).field.focus();
    const field = h("textarea.field", { rows: 2, aria: { label: "Comment on line " + number }, on: { input: changed } });
    const drop = () => {
      made.delete(number);
      node.remove();
      place.classList.remove("commented");
      changed();
    };
    const quote = h("span.muted.small.line-cut", `line ${number}: ${line.trim()}`);
    const node = h("div.remark", quote, iconButton("close", "Remove this comment", drop), field);
    made.set(number, { field, line });
    place.classList.add("commented");
    list.append(node);
    field.focus();
  }

  function text() {
    const said = [...made].sort(([a], [b]) => a - b).filter(([, one]) => one.field.value.trim());
    const lines = said.map(([number, one]) => `line ${number}: ${one.field.value.trim()} (“${cut(one.line.trim(), 120)}”)`);
    return joined([...lines, remark.value.trim()], "\n");
  }

  return { list, remark, add, text };
}

/** Why the material is not what the person expects: it was answered, or changed, or both. */
function whatHappened({ refused, before }, gate) {
  const anew = "The document changed after this was asked. This is the current version.";
  if (!refused) return (before || gate.changed_from) && h("p.notice.s-waiting", anew);
  const hash = (one) => h("code", one.content_hash.slice(0, 8));
  const other = gate.content_hash !== before.content_hash && [" You were shown ", hash(before), "; this is ", hash(gate), ". Please read it and answer again."];
  return h("p.notice.s-waiting", { role: "alert" }, h("b", "Nothing was answered. "), refused.message, gate.answer && [" ", answered(gate), "."], other);
}

function reading(gate, comment, before) {
  if (gate.text) return paper(gate.text, comment, before?.text);
  const none = gate.text === "" ? "The document is empty or too long to show." : "There is no document for this question.";
  const missing = gate.gone ? "The document is no longer there." : none;
  const place = h("div.paper", h("p.empty", missing));
  if (gate.diff_task) import("./diff.js").then(({ diffView }) => replace(place, diffView(gate.diff_task, api)));
  return place;
}

/** The material beside the answer. `again`: why it is shown again, what had been written; `rejects`: to reject it. */
export async function material(item, again = {}) {
  const box = dialog(asked(item), "wide");
  replace(box.body, h("p.muted", "Loading…"));
  try {
    const gate = { ...item, ...(await api.get("/api/gates/" + item.id)) };
    if (!box.node.isConnected) return;
    const open = state.session.decides && gate.status === "open";
    if (open && gate.kind === "decision") return answering(box, gate, again);
    replace(box.body, whatHappened(again, gate), h("div.material", reading(gate, () => {}), h("aside", matter(gate))));
    if (open) replace(box.foot, button("Mark reviewed…", () => (box.close(), closeReview(gate)), "primary"));
  } catch (error) {
    replace(box.body, trouble(error));
  }
}

function answering(box, gate, again) {
  const side = comments(() => {
    keepDraft("material", [gate], side.text());
    check();
  });
  side.remark.value = again.feedback ?? "";
  const why = h("p.muted.small");
  const problem = h("div", { role: "alert" });
  const canReject = gate.options.includes("reject");
  const words = gate.options.filter((word) => word !== "abandon");
  const hint = gate.text && h("p.muted.small", "Click a line to comment on it.");
  replace(box.body, whatHappened(again, gate), h("div.material", reading(gate, side.add, again.before),
    h("aside.stack", matter(gate), words.map((word) => meaning(gate, word)), hint, side.list, side.remark, canReject && why, problem)));

  const settle = (word) => send(box, problem, () => answer(gate, word, side.text()), check);

  const reject = button(label("reject"), () => settle("reject"), "danger");
  const check = () => {
    reject.disabled = !side.text();
    why.textContent = reject.disabled ? "To reject it, write a comment: a reason is required." : "The next agent will see what you wrote. Ctrl+Enter goes to the button.";
  };
  replace(box.foot, button("Abandon…", () => (box.close(), abandon(gate)), "quiet bad"), h("span.grow"), canReject && reject,
    words.map((word) => word !== "reject" && button(label(word), () => settle(word), word === "approve" ? "primary" : "")));
  check();
  const first = box.node.querySelector(".paper-line.changed") ?? box.node.querySelector(".paper-line");
  (again.rejects ? side.remark : first)?.focus(); // otherwise the question's subject, not its answer
  keepTrue(box, gate, side.text);
  box.body.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && reject.focus());
}
