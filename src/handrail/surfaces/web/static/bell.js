// The sound and the desktop notification for new decisions. Off until somebody turns them on.
import { visible } from "./dom.js";

const BELL = "handrail-bell";

export const isOn = () => Boolean(localStorage.getItem(BELL));

export async function toggle() {
  if (isOn()) return localStorage.removeItem(BELL);
  localStorage.setItem(BELL, "on");
  chime();
  if (globalThis.Notification?.permission === "default") await Notification.requestPermission();
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

/** Announces something new; the tag makes it one notification, however many tabs announce it. */
export function notice(tag, title, body) {
  if (!isOn()) return;
  chime();
  if (document.hidden && globalThis.Notification?.permission === "granted") new Notification(visible(title), { body: visible(body), tag });
}
