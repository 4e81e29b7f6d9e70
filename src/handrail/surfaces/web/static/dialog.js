// Dialogs, and the form in one: how every question to the person is asked.
import { button, h, iconButton, replace, told } from "./dom.js";

const DRAFT = "handrail.draft";

/** Keeps what somebody is writing until the dialog ends; `name` and `about` tell deciding.js how to reopen it. */
export const keepDraft = (name, about, text) => sessionStorage.setItem(DRAFT, JSON.stringify({ name, about, text }));

/** Signed out: nothing stays on the screen, but drafts are kept. */
export const lowerAll = () => document.querySelectorAll("dialog").forEach((node) => node.remove());

/** What was being written when somebody was signed out, or null. */
export const draft = () => JSON.parse(sessionStorage.getItem(DRAFT));

/** A modal dialog; the browser keeps the focus inside, closes it with Esc and restores the focus. */
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

/** Names and values; those without a value are left out. */
export function facts(values) {
  const known = Object.entries(values).filter(([, value]) => value);
  return h("dl.facts", known.map(([name, value]) => [h("dt", name), h("dd", value)]));
}

/**
 * A form of one text and one act. `text.why`: the text is required, and this says why.
 * The act runs once; what it throws is shown, and the form stays. `said` is the initial text; `kept`, a name and
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
