// Text cut to a width in the drawing. Measured, because a name in capitals needs half as much room again.
import { cut } from "./dom.js";

const pen = document.createElement("canvas").getContext("2d");

let set = 0;

function fits(text, width, size) {
  if (size !== set) pen.font = `${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif`;
  set = size;
  return pen.measureText(text).width <= width;
}

export function fitted(text, width, size) {
  if (fits(text, width, size)) return text;
  let [low, high] = [2, text.length];
  while (high - low > 1) {
    const length = (low + high) >> 1;
    if (fits(cut(text, length), width, size)) low = length;
    else high = length;
  }
  return cut(text, low);
}

const BREAKS = /(?<=[\s\p{sc=Han}\p{sc=Hira}\p{sc=Kana}])/u; // these scripts put no spaces between words

/** One or two lines: the first takes whole words, the second is cut. */
export function twoLines(text, width, size) {
  const words = text.split(BREAKS);
  let first = words.shift();
  while (words.length && fits((first + words[0]).trimEnd(), width, size)) first += words.shift();
  return [first.trimEnd(), words.join("")].filter(Boolean).map((line) => fitted(line, width, size));
}
