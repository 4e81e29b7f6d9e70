// Signing in: with the one-time code that the terminal shows, or with a person's token.
import { h, replace, told } from "./dom.js";
import { api, keepProof, state } from "./live.js";

const USED = "This link does not sign in any more: it was used before, or it is too old. A new start of `handrail up` shows a new one.";

export function signIn(done) {
  const field = h("input.field.mono", { id: "code", type: "password", autocomplete: "off", required: true, autofocus: true });
  const problem = h("div", { role: "alert" });
  const enter = h("button", { type: "submit", class: "button primary" }, "Sign in");

  async function submit(event) {
    event.preventDefault();
    enter.disabled = true;
    try {
      // The whole link may be pasted as well.
      const { proof } = await api.post("/api/session", { token: field.value.trim().replace(/^.*[?&]token=/, "") });
      keepProof(proof);
      await done();
    } catch (error) {
      replace(problem, h("p.notice.s-failed", told(error)));
      enter.disabled = false;
      field.select();
    }
  }

  if (state.refusedLink) replace(problem, h("p.notice.s-waiting", told({ message: USED })));
  return h("div.centre", h("form.card.stack.sign-in", { on: { submit } },
    h("h2", "Sign in"),
    h("p.muted", "The terminal in which ", h("code", "handrail up"), " runs shows a link. Open it, or paste the link or its code here. It works once."),
    h("label", { for: "code" }, "Code or token"), field, problem, enter,
    h("p.muted.small", "No terminal at hand? ", h("code", "handrail token create NAME --rights decide"), " makes a token for a person.")));
}
