// Light Markdown, made of elements: headings, lists, code, bold. Anything else stays text.

import { h } from "./dom.js";

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (/^`.+`$/.test(part)) return h("code", part.slice(1, -1));
    return /^\*\*.+\*\*$/.test(part) ? h("b", part.slice(2, -2)) : part;
  });
}

/** The lines of a text, with any line ending; all lists of lines are made by this, so that their numbers agree. */
export const linesOf = (text) => text.split(/\r\n|[\n\r\u2028\u2029]/);

export function styled(text) {
  let code = false;
  return linesOf(text).map((line) => {
    const fence = /^\s*```/.test(line);
    if (fence) code = !code;
    if (code || fence) return { looks: fence ? "p-fence" : "p-code", shown: line };
    const [, head, item, rest] = /^(#{1,6}\s+)?(\s*(?:[-*]|\d+\.)\s+)?(.*)$/s.exec(line);
    return { looks: head ? "p-head" : item ? "p-item" : "", shown: [item?.replace(/[-*]/, "•"), inline(rest)] };
  });
}

export function prose(text) {
  return h("div.paper-text", styled(text.trim()).map(({ looks, shown }) => h("div", { class: looks }, shown)));
}
