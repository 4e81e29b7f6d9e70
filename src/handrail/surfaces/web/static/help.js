// The dialog that tells the keys, who is signed in, and how to come in from another device.
import { dialog, facts, trouble } from "./dialog.js";
import { button, h, replace } from "./dom.js";
import { api, signedOut, state } from "./live.js";

const HELP = [
  ["1 – 9", "tabs, in order"], ["/", "search"], ["j k", "next, previous row"], ["f", "fit the graph"],
  ["a", "to the first Approve button"], ["d", "to the first Reject button"], ["g h", "all workflows"], ["Ctrl Enter", "send what you wrote"], ["Esc", "close"], ["?", "this help"],
];

const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) || location.hostname.endsWith(".localhost");

const onlyHere = () => [
  h("b", "Only this machine can open it,"), " in another browser. For a phone, serve the page to your network: ",
  h("code", "handrail up --http 0.0.0.0:8765 --set allow_hosts=NAME"), ", where NAME is how others call this machine.",
];

/** A fresh one-time link, for a phone or another browser. */
async function anotherDevice(place) {
  try {
    const { url } = await api.post("/api/links");
    const field = h("input.field.mono.link-out", { value: url, readonly: true, aria: { label: "Sign-in link" } });
    replace(place, h("p.small", "Opens this page once, within ten minutes. Whoever has it decides as you do."), isHere && h("p.small", onlyHere()), field,
      button("Copy the link", () => (field.select(), navigator.clipboard?.writeText(url))));
    field.select();
  } catch (error) {
    replace(place, trouble(error));
  }
}

export function about() {
  const box = dialog("Handrail");
  const { name, decides, version, project, store, approvals } = state.session ?? {};
  const place = h("div.stack");
  replace(box.body,
    state.session && facts({
      You: name + (decides ? ", who decides" : ", reading only"), Project: project, Store: store,
      Approvals: approvals === "human" ? "only a person's" : "by a person or an agent", Version: version,
    }),
    h("dl.help", HELP.map(([key, text]) => [h("dt", h("kbd", key)), h("dd", text)])), place);
  if (decides) {
    replace(box.foot, button("Sign in another device", () => anotherDevice(place)),
      button("Sign out", () => api.post("/api/session/end").then(signedOut, (error) => replace(place, trouble(error)))));
  }
}
