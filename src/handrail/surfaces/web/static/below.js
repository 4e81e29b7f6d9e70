// How much of Needs you is out of sight: few screens show a scroll bar.
import { button } from "./dom.js";
import { state } from "./live.js";

/** A button at the end of the strip that shows the count and scrolls on. Returns a function that recounts. */
export function below(strip) {
  const more = button("", () => strip.scrollBy({ top: strip.clientHeight / 2 }), "quiet below");

  function count() {
    strip.append(more);
    const end = strip.scrollTop + strip.clientHeight;
    const hidden = [...strip.querySelectorAll("[data-gate]")].filter((row) => row.offsetTop + row.offsetHeight / 2 > end).length;
    more.hidden = !hidden;
    more.textContent = `+${hidden + (hidden && state.moreNeeds)} more`;
  }

  strip.addEventListener("scroll", () => more.isConnected && count());
  addEventListener("resize", count);
  return count;
}
