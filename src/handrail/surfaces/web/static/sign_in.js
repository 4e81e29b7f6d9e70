// Signing in: with the one-time code that the terminal shows, or with a person's token.
import { h, replace } from "./dom.js";
import { api } from "./live.js";

export function signIn(done) {
  const field = h("input", { class: "field mono", id: "code", type: "password", autocomplete: "off", required: true, autofocus: true });
  const problem = h("div", { role: "alert" });
  const enter = h("button", { type: "submit", class: "button primary" }, "Sign in");

  async function submit(event) {
    event.preventDefault();
    enter.disabled = true;
    try {
      // The whole link may be pasted as well.
      await api.post("/api/session", { token: field.value.trim().replace(/^.*[?&]token=/, "") });
      await done();
    } catch (error) {
      replace(problem, h("p", { class: "notice s-failed" }, error.message, " ", error.hint));
      enter.disabled = false;
      field.select();
    }
  }

  return h("div", { class: "centre" }, h("form", { class: "card stack sign-in", on: { submit } },
    h("h2", {}, "Sign in"),
    h("p", { class: "muted" }, "The terminal in which ", h("code", {}, "handrail up"), " runs shows a link. Open it, or paste the link or its code here. It works once."),
    h("label", { for: "code" }, "Code or token"), field, problem, enter,
    h("p", { class: "muted small" }, "No terminal at hand? ", h("code", {}, "handrail token create NAME --rights decide"), " makes a token for a person.")));
}
