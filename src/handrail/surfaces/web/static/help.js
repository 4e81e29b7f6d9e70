// The dialog that explains the keys, who is signed in, and how to sign in from another device.
import { dialog, facts, trouble } from "./dialog.js";
import { button, h, replace } from "./dom.js";
import { api, signOut, state } from "./live.js";

const HELP = [
  ["1 – 9", "open a tab"], ["/", "search"], ["j k", "next, previous row"], ["f", "fit the graph"],
  ["a", "go to Approve"], ["d", "go to Reject"], ["g h", "all workflows"], ["Ctrl Enter", "send"], ["Esc", "close"], ["?", "show this"],
];

const isHere = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname) || location.hostname.endsWith(".localhost");

const onlyHere = () => [
  h("b", "This link only opens on this machine."), " For a phone, serve the page to your network: ",
  h("code", "handrail up --http 0.0.0.0:8765 --set allow_hosts=NAME"), ", where NAME is this machine's name on the network.",
];

async function anotherDevice(place) {
  try {
    const { url } = await api.post("/api/links");
    const field = h("input.field.mono.link-out", { value: url, readonly: true, aria: { label: "Sign-in link" } });
    replace(place, h("p.small", "Works once, for the next ten minutes. Anyone who has it can decide as you."), isHere && h("p.small", onlyHere()), field,
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
      You: name + (decides ? " (can decide)" : " (read-only)"), Project: project, Store: store,
      Approvals: approvals === "human" ? "by people only" : "by people or agents", Version: version,
    }),
    state.workflow && h("p.small", "Report: ", ["html", "md"].map((kind) => [
      h("a", { href: `/api/workflows/${state.workflow.workflow.id}/report.${kind}`, download: "" }, kind), " ",
    ])),
    h("dl.help", HELP.map(([key, text]) => [h("dt", h("kbd", key)), h("dd", text)])), place);
  if (decides) {
    replace(box.foot, button("Sign in another device", () => anotherDevice(place)),
      button("Sign out", () => api.post("/api/session/end").then(signOut, (error) => replace(place, trouble(error)))));
  }
}
