// Dialogs, and the form in one: what every question to the person is asked in.
import { button, h, iconButton, replace, told } from "./dom.js";

const DRAFT = "handrail.draft";

/** Keeps what somebody writes: `name` and `about` say how deciding.js opens the dialog again. Ends with the dialog. */
export const keepDraft = (name, about, text) => sessionStorage.setItem(DRAFT, JSON.stringify({ name, about, text }));

/** Signed out: nothing stays on the screen, but what was written is not lost. */
export const lowerAll = () => document.querySelectorAll("dialog").forEach((node) => node.remove());

/** What was written when somebody was signed out; null where nothing was. */
export const draft = () => JSON.parse(sessionStorage.getItem(DRAFT));

/** A modal dialog; the browser keeps the focus inside, closes it with Esc and gives the focus back. */
export function dialog(title, looks = "") {
  const before = document.activeElement;
  const body = h("div.stack");
  const foot = h("footer");
  const node = h("dialog", { class: looks, aria: { label: title } },
    h("header", h("h2", title), iconButton("close", "Close (Esc)", () => node.close())), body, foot);
  node.addEventListener("close", () => {
    node.remove();
    sessionStorage.removeItem(DRAFT);
    if (before?.isConnected) before.focus();
  });
  document.body.append(node);
  node.showModal();
  return { node, body, foot, close: () => node.close() };
}

export const trouble = (error) => h("p.notice.s-failed", told(error));

/** Names and values; what has no value is left out. */
export function facts(values) {
  const known = Object.entries(values).filter(([, value]) => value);
  return h("dl.facts", known.map(([name, value]) => [h("dt", name), h("dd", value)]));
}

/**
 * A form of one text and one act. `text.why`: the text is required, and this says why.
 * The act runs once; what it throws is shown, and the form stays. `said` stands there already; `kept`, a name and
 * arguments of deciding.js, makes it a draft.
 */
export function form({ title, about, text, act, looks, run, more, said = "", kept }) {
  const box = dialog(title);
  const field = h("textarea.field", { rows: 4, id: "said", aria: { describedby: "said-why" }, on: { input: write, keydown: press } });
  const why = h("p.muted.small", { id: "said-why" });
  const problem = h("div", { role: "alert" });
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

  async function submit() {
    go.disabled = box.busy = true;
    try {
      await run(field.value.trim());
      box.close();
    } catch (error) {
      replace(problem, trouble(error));
      check();
    }
    box.busy = false;
  }

  replace(box.body, about, h("label", { for: "said" }, text.label), field, why, problem);
  replace(box.foot, more, button("Cancel", box.close), go);
  field.value = said;
  check();
  (text.why ? field : go).focus();
  return box;
}
