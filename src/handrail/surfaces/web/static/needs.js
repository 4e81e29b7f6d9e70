// Needs you: one line for each thing that waits for the person, on every screen, and the notice that there is a new one.
import { asked, closeReview, decide, label, material, reply } from "./deciding.js";
import { button, h, icon, iconButton, when } from "./dom.js";
import { keyed } from "./listing.js";
import { api, state } from "./live.js";

const BELL = "handrail-bell";

/** A button that switches sound and desktop notice on and off. Off until somebody asks for it. */
export function bell() {
  const told = () => (localStorage.getItem(BELL) ? "Notices of new decisions are on" : "Tell me of new decisions, with a sound");
  const look = () => {
    node.title = told();
    node.setAttribute("aria-pressed", Boolean(localStorage.getItem(BELL)));
  };
  const node = iconButton("bell", "Sound and notice for new decisions", async () => {
    if (localStorage.getItem(BELL)) localStorage.removeItem(BELL);
    else {
      localStorage.setItem(BELL, "on");
      chime();
      if (globalThis.Notification?.permission === "default") await Notification.requestPermission();
    }
    look();
  });
  look();
  return node;
}

function chime() {
  const audio = new AudioContext();
  const tone = audio.createOscillator();
  const volume = audio.createGain();
  volume.gain.setValueAtTime(0.12, audio.currentTime);
  volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.5);
  tone.connect(volume).connect(audio.destination);
  tone.frequency.value = 740;
  tone.start();
  tone.stop(audio.currentTime + 0.5);
  tone.onended = () => audio.close();
}

function notice(item) {
  if (!localStorage.getItem(BELL)) return;
  chime();
  if (document.hidden && globalThis.Notification?.permission === "granted") {
    new Notification(asked(item), { body: item.title, tag: item.id }); // the tag: one notice, however many tabs
  }
}

/** What may be done at once. Everything that decides asks once more, in a dialog that says what it is about. */
function acts(item) {
  const read = (words) => button(words, () => material(item), "quiet");
  if (!state.session.decides) {
    const why = h("span", { class: "muted small" }, "You are reading only; a signed-in person decides.");
    return [item.kind === "message" ? null : read("Read"), why];
  }
  if (item.kind === "message") {
    const acknowledge = () => api.post(`/api/messages/${item.id}/read`, { ack: true });
    return [button("Reply…", () => reply(item), "quiet"), button("Acknowledge", acknowledge)];
  }
  if (item.kind === "review") return [read("Read"), button("Looked at…", () => closeReview(item))];
  const choice = (answer) => button(label(answer) + "…", () => decide(item, answer),
    { approve: "primary", reject: "danger" }[answer], { data: { answer } });
  const others = item.options.filter((answer) => answer !== "abandon" && answer !== "reject");
  return [
    read(item.options.includes("reject") ? "Ask for changes…" : "Read"),
    others.map(choice),
    item.options.includes("reject") ? choice("reject") : null,
  ];
}

function line(item) {
  const question = asked(item);
  const isNew = (text) => text && !question.includes(text) && text !== item.workflow_name;
  const about = [item.title, item.task_name, item.sender, item.path, item.why].filter(isNew);
  const href = `#/w/${encodeURIComponent(item.workflow_id)}` + (item.task_id ? "?task=" + encodeURIComponent(item.task_id) : "");
  return h("div", { class: "need", role: "group", aria: { label: question }, data: { gate: item.id, kind: item.kind } },
    icon({ decision: "gate" }[item.kind] ?? item.kind),
    h("span", { class: "question line-cut", title: question }, question),
    h("span", { class: "about line-cut", title: about.join(" · ") },
      item.workflow_id ? h("a", { href }, item.workflow_name) : null, about.map((text) => " · " + text)),
    when(item.created_at), h("span", { class: "acts row" }, acts(item)));
}

/** The strip. It keeps still while nothing changes: a button under somebody's finger must not move away. */
export function needsStrip(node, announce) {
  let known = null;
  return {
    update(change) {
      node.hidden = state.needs.length === 0;
      if (!change.all && !change.topics.has("needs")) return;
      const fresh = state.needs.filter((item) => known && item.kind === "decision" && !known.has(item.id));
      known = new Set(state.needs.map((item) => item.id));
      keyed(node, state.needs, (item) => item.id, line, String(state.session.decides));
      if (state.moreNeeds) node.append(h("p", { class: "need muted" }, `${state.moreNeeds} more wait behind these.`));
      if (!fresh.length) return;
      announce(`Needs you: ${fresh.map(asked).join("; ")}`);
      notice(fresh[0]);
    },
  };
}
