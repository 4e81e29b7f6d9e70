// The small tools of the bar on top: the bell, light or dark, and the dialog about keys, devices, signing out.
import { h, icon, iconButton, replace } from "./dom.js";

/** Loaded when somebody first asks. */
const about = () => import("./help.js").then((help) => help.about());

function toggleTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const next = (root.dataset.theme ?? system) === "dark" ? "light" : "dark";
  if (next === system) {
    delete root.dataset.theme;
    localStorage.removeItem("handrail-theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("handrail-theme", next);
  }
}

/** The switch of sound and notice. */
function bellButton() {
  const look = (is) => {
    const soundOnly = is && globalThis.Notification?.permission !== "granted";
    const how = soundOnly ? "New decisions are told with a sound; this browser allows no notices" : "Notices of new decisions are on";
    node.title = is ? how : "Tell me of new decisions, with a sound";
    node.setAttribute("aria-pressed", is);
    replace(node, icon("bell"), soundOnly && h("span.small", "sound only"));
  };
  const node = iconButton("bell", "Sound and notice for new decisions", async () => {
    const bell = await import("./bell.js");
    const asked = bell.toggle();
    look(bell.isOn());
    await asked; // whether notices are allowed, which may take long
    look(bell.isOn());
  });
  look(Boolean(localStorage.getItem("handrail-bell")));
  return node;
}

export const tools = () => [
  bellButton(), iconButton("sun", "Light or dark", toggleTheme), iconButton("more", "Keys, devices, sign out (?)", about),
];
