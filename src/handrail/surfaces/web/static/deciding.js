// A person decides: the dialogs in which a gate is read, commented, answered; a review closed; a message answered.
import { button, cut, h, iconButton, replace, when } from "./dom.js";
import { api, loadNeeds, state } from "./live.js";
import { styled } from "./prose.js";

const NEEDS_REASON = ["reject", "abandon"];

/** What is asked, for people: a gate of a run has a short name for its question, so the phase says it better. */
export const asked = (item) => item.phase ?? item.question;

/** An option of a gate as a button says it. */
export const label = (word) => word[0].toUpperCase() + word.slice(1).replaceAll("_", " ");

/** A modal dialog; the browser keeps the focus inside, closes it with Esc and gives the focus back. */
export function dialog(title, looks = "") {
  const before = document.activeElement;
  const body = h("div", { class: "stack" });
  const foot = h("footer");
  const node = h("dialog", { class: looks, aria: { label: title } },
    h("header", {}, h("h2", {}, title), iconButton("close", "Close (Esc)", () => node.close())), body, foot);
  node.addEventListener("close", () => {
    node.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(node);
  node.showModal();
  return { node, body, foot, close: () => node.close() };
}

const told = (error) => h("p", { class: "notice s-failed" }, error.message, " ", error.hint);

function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function matter(gate) {
  return facts([
    ["Question", h("b", {}, asked(gate))],
    ["Workflow", gate.workflow_name],
    ["Task", gate.task_name],
    ["Document", gate.path && h("code", {}, gate.path)],
    ["Content", gate.content_hash && h("code", { title: gate.content_hash }, gate.content_hash.slice(0, 8))],
    ["Why", gate.why],
  ]);
}

/**
 * A form of one text and one act. `text.why`: the text is required, and this says why.
 * The act runs once; what it throws is shown, and the form stays.
 */
function form({ title, about, text, act, looks, run, more = [] }) {
  const box = dialog(title);
  const field = h("textarea", { class: "field", rows: 4, id: "said", aria: { describedby: "said-why" } });
  const why = h("p", { id: "said-why", class: "muted small" });
  const problem = h("div", { role: "alert" });
  const go = button(act, submit, looks);
  const check = () => {
    const missing = Boolean(text.why) && !field.value.trim();
    go.disabled = missing;
    why.textContent = missing ? text.why : (text.note ?? "");
  };

  async function submit() {
    go.disabled = true;
    try {
      await run(field.value.trim());
      box.close();
    } catch (error) {
      replace(problem, told(error));
      check();
    }
  }

  field.addEventListener("input", check);
  replace(box.body, about, h("label", { for: "said" }, text.label), field, why, problem);
  replace(box.foot, more, button("Cancel", box.close), go);
  check();
  (text.why ? field : go).focus();
  return box;
}

/** Answers the gate. Where it changed meanwhile nothing is answered: the person sees what lies there now. */
async function answer(gate, word, feedback) {
  const body = { answer: word, feedback: feedback || null, content_hash: gate.content_hash };
  try {
    const { next } = await api.post(`/api/gates/${gate.id}/decision`, body);
    document.getElementById("announce").textContent = next;
    loadNeeds();
  } catch (error) {
    if (error.status !== 409) throw error;
    material({ ...gate, id: error.details?.gate_id ?? gate.id }, { refused: error, before: gate, feedback });
  }
}

/** The step between the button and the answer. */
export function decide(gate, word) {
  const text = NEEDS_REASON.includes(word)
    ? { label: "What is to change", why: "A reason is required: the next agent is told it." }
    : { label: "A remark for the next agent (optional)" };
  if (word === "abandon") Object.assign(text, { label: "Why it ends", why: "A reason is required. The run ends; its documents stay." });
  const meaning = h("p", {});
  api.get("/api/gates/" + gate.id).then((found) => replace(meaning, styled(found.meanings?.[word] ?? "")[0].shown), () => {});
  const read = button("Read it first", () => {
    box.close();
    material(gate);
  }, "quiet");
  const box = form({
    title: `${label(word)}?`, about: [matter(gate), meaning], text, act: label(word),
    looks: NEEDS_REASON.includes(word) ? "danger" : "primary", run: (said) => answer(gate, word, said), more: [read],
  });
}

export function closeReview(gate) {
  form({
    title: "Looked at", about: matter(gate), text: { label: "A remark (optional)", note: "Nothing waits for this; it leaves the list." },
    act: "Looked at", looks: "primary", run: (remark) => api.post(`/api/reviews/${gate.id}/close`, { word: "looked at", remark: remark || null }),
  });
}

export function reply(message) {
  const about = [facts([["From", message.sender], ["About", message.title]]), h("p", {}, message.question)];
  form({
    title: "Reply", about, text: { label: "Your answer", why: "Nothing is written yet.", note: "Sending acknowledges the message." },
    act: "Send", looks: "primary", run: async (body) => {
      await api.post("/api/messages", { body, reply_to: message.id });
      await api.post(`/api/messages/${message.id}/read`, { ack: true });
    },
  });
}

/** The document, a button a line, so that each line can be commented on. */
function paper(text, comment) {
  const lines = text.split("\n");
  return h("div", { class: "paper", role: "group", aria: { label: "The document" } }, styled(text).map(({ looks, shown }, index) => h("button", {
    type: "button", class: "paper-line", title: "Comment on this line", on: { click: (event) => comment(index + 1, lines[index], event.currentTarget) },
  }, h("i", {}, String(index + 1)), h("span", { class: looks }, shown))));
}

/** Comments on lines and one remark on all of it; together they are the feedback. */
function comments(changed) {
  const list = h("div", { class: "stack" });
  const remark = h("textarea", { class: "field", rows: 3, aria: { label: "Remark on all of it" }, placeholder: "Remark on all of it", on: { input: changed } });
  const made = new Map();

  function add(number, line, place) {
    if (made.has(number)) return made.get(number).field.focus();
    const field = h("textarea", { class: "field", rows: 2, aria: { label: "Comment on line " + number }, on: { input: changed } });
    const drop = () => {
      made.delete(number);
      node.remove();
      place.classList.remove("commented");
      changed();
    };
    const quote = h("span", { class: "muted small line-cut" }, `line ${number}: ${line.trim()}`);
    const node = h("div", { class: "remark" }, quote, iconButton("close", "Remove this comment", drop), field);
    made.set(number, { field, line });
    place.classList.add("commented");
    list.append(node);
    field.focus();
  }

  function text() {
    const said = [...made].sort(([a], [b]) => a - b).filter(([, one]) => one.field.value.trim());
    const lines = said.map(([number, one]) => `line ${number}: ${one.field.value.trim()} (“${cut(one.line.trim(), 120)}”)`);
    return [...lines, remark.value.trim()].filter(Boolean).join("\n");
  }

  return { list, remark, add, text };
}

/** Why the material is not what the person expects: it was answered, or changed, or both. */
function whatHappened({ refused, before }, gate) {
  const anew = "The document was changed after this was asked. You are asked about what lies there now.";
  if (!refused) return gate.changed_from ? h("p", { class: "notice s-waiting" }, anew) : null;
  const answered = gate.answer && [` ${gate.answered_by ?? "Somebody"} answered “${gate.answer}” `, when(gate.answered_at), "."];
  const hash = (one) => h("code", {}, one.content_hash.slice(0, 8));
  const other = gate.content_hash !== before.content_hash && [" You were shown ", hash(before), "; this is ", hash(gate), ". Please read it and answer again."];
  return h("p", { class: "notice s-waiting", role: "alert" }, h("b", {}, "Nothing was answered. "), refused.message, answered, other);
}

/** What there is to read: the document, or the changes of a task, or a sentence that there is neither. */
function reading(gate, comment) {
  if (gate.text) return paper(gate.text, comment);
  const missing = gate.gone ? "The document is gone from where it lay." : "No document belongs to this question.";
  const place = h("div", { class: "paper" }, h("p", { class: "empty" }, missing));
  if (gate.diff_task) import("./diff.js").then(({ diffView }) => replace(place, diffView(gate.diff_task, api)));
  return place;
}

/** The material beside the answer. `again`: why it is shown once more, and what had been written. */
export async function material(item, again = {}) {
  const box = dialog(asked(item), "wide");
  replace(box.body, h("p", { class: "muted" }, "Loading…"));
  try {
    const gate = { ...item, ...(await api.get("/api/gates/" + item.id)) };
    const open = state.session.decides && gate.status === "open";
    if (open && gate.kind === "decision") return answering(box, gate, again);
    replace(box.body, whatHappened(again, gate), h("div", { class: "material" }, reading(gate, () => {}), h("aside", {}, matter(gate))));
    if (open) replace(box.foot, button("Looked at…", () => (box.close(), closeReview(gate)), "primary"));
  } catch (error) {
    replace(box.body, told(error));
  }
}

function answering(box, gate, again) {
  const side = comments(() => check());
  side.remark.value = again.feedback ?? "";
  const why = h("p", { class: "muted small" });
  const problem = h("div", { role: "alert" });
  const hint = gate.text ? h("p", { class: "muted small" }, "Click a line to comment on it.") : null;
  replace(box.body, whatHappened(again, gate), h("div", { class: "material" }, reading(gate, side.add),
    h("aside", { class: "stack" }, matter(gate), hint, side.list, side.remark, why, problem)));

  const send = button("Ask for changes", () => {
    send.disabled = true;
    answer(gate, "reject", side.text()).then(box.close, (error) => (replace(problem, told(error)), check()));
  }, "danger");
  const check = () => {
    send.disabled = !side.text();
    why.textContent = send.disabled ? "“Ask for changes” needs a comment or a remark." : "What you wrote goes to the next agent.";
  };
  const choice = (word, looks) => button(label(word) + "…", () => (box.close(), decide(gate, word)), looks);
  const others = gate.options.filter((word) => !NEEDS_REASON.includes(word));
  replace(box.foot, choice("abandon", "quiet bad"), h("span", { class: "grow" }), gate.options.includes("reject") ? send : null,
    others.map((word) => choice(word, word === "approve" ? "primary" : "")));
  check();
}
