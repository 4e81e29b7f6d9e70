// Dialogs, and the form in one: how every question to the person is asked.
import { button, h, iconButton, replace, told } from "./dom.js";

const DRAFT = "handrail.draft";

/** Keeps what somebody is writing until the dialog ends; `name` and `about` tell deciding.js how to reopen it. */
export const keepDraft = (name, about, text) => sessionStorage.setItem(DRAFT, JSON.stringify({ name, about, text }));

/** Signed out: nothing stays on the screen, but drafts are kept. */
export const lowerAll = () => document.querySelectorAll("dialog").forEach((node) => node.remove());

export const draft = () => JSON.parse(sessionStorage.getItem(DRAFT));

/** A modal dialog; the browser keeps the focus inside, closes it with Esc and restores the focus. */
export function dialog(title, looks = "") {
  const body = h("div.stack");
  const foot = h("footer");
  const node = h("dialog", { class: looks, aria: { label: title } },
    h("header", h("h2", title), iconButton("close", "Close (Esc)", () => node.close())), body, foot);
  node.addEventListener("close", () => {
    node.remove();
    sessionStorage.removeItem(DRAFT);
  });
  document.body.append(node);
  node.showModal();
  return { node, body, foot, close: () => node.close() };
}

export const trouble = (error) => h("p.notice.s-failed", told(error));

/** Names and values; those without a value are left out. */
export function facts(values) {
  const known = Object.entries(values).filter(([, value]) => value);
  return h("dl.facts", known.map(([name, value]) => [h("dt", name), h("dd", value)]));
}

/** Runs a dialog's act once and closes it. What it throws is shown, and the buttons can be pressed again. */
export async function send(box, problem, run, check) {
  const buttons = [...box.foot.querySelectorAll("button")];
  box.busy = true;
  for (const one of buttons) one.disabled = true;
  try {
    await run();
    box.close();
  } catch (error) {
    replace(problem, trouble(error));
    for (const one of buttons) one.disabled = false;
    check();
  }
  box.busy = false;
}

/**
 * A form of one text and one act. `text.why`: the text is required, and this says why. `said` is the initial text;
 * `kept`, a name and arguments of deciding.js, makes it a draft.
 */
export function form({ title, about, text, act, looks, run, said = "", kept }) {
  const box = dialog(title);
  const field = h("textarea.field", { rows: 4, id: "said", aria: { describedby: "said-why" }, on: { input: write, keydown: press } });
  const why = h("p.muted.small", { id: "said-why" });
  const problem = h("div", { role: "alert" });
  const submit = () => send(box, problem, () => run(field.value.trim()), check);
  const go = button(act, submit, looks);

  function check() {
    go.disabled = Boolean(text.why) && !field.value.trim();
    why.textContent = go.disabled ? text.why : (text.note ?? "");
  }

  function write() {
    if (kept) keepDraft(...kept, field.value);
    check();
  }

  function press(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !go.disabled) submit();
  }

  replace(box.body, about, h("label", { for: "said" }, text.label), field, why, problem);
  replace(box.foot, button("Cancel", box.close), go);
  field.value = said;
  check();
  (text.why ? field : go).focus();
  return box;
}
