// The small tools of the top bar.
import { h, icon, iconButton, replace } from "./dom.js";

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

function bellButton() {
  const look = (is) => {
    const soundOnly = is && globalThis.Notification?.permission !== "granted";
    const how = soundOnly ? "Sound is on; this browser blocks notifications" : "Notifications for new decisions are on";
    node.title = is ? how : "Notify me of new decisions, with a sound";
    node.setAttribute("aria-pressed", is);
    replace(node, icon("bell"), soundOnly && h("span.small", "sound only"));
  };
  const node = iconButton("bell", "Notify me of new decisions", async () => {
    const bell = await import("./bell.js");
    const asked = bell.toggle();
    look(bell.isOn());
    await asked; // whether notifications are allowed, which may take a while
    look(bell.isOn());
  });
  look(Boolean(localStorage.getItem("handrail-bell")));
  return node;
}

export const tools = () => [
  bellButton(), iconButton("sun", "Light or dark", toggleTheme), iconButton("more", "Keys, devices, sign out (?)", about),
];
