// Signing in: with the one-time code from the terminal, or with a person's token.
import { h, replace, told } from "./dom.js";
import { api, keepProof, state } from "./live.js";

const USED = "This link no longer works: it was already used, or it is too old. Restart `handrail up` to get a new one.";

export function signIn(done) {
  const field = h("input.field.mono", { id: "code", type: "password", autocomplete: "off", required: true, autofocus: true });
  const problem = h("div", { role: "alert" });
  const enter = h("button", { type: "submit", class: "button primary" }, "Sign in");

  async function submit(event) {
    event.preventDefault();
    enter.disabled = true;
    try {
      const { proof } = await api.post("/api/session", { token: field.value.trim().replace(/^.*[?&]token=/, "") }); // or the whole link
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
    h("p.muted", "The terminal running ", h("code", "handrail up"), " shows a link. Open it, or paste the link or its code here. It works once."),
    h("label", { for: "code" }, "Code or token"), field, problem, enter,
    h("p.muted.small", "No terminal at hand? ", h("code", "handrail token create NAME --rights decide"), " makes a token for you.")));
}
