// What a task changed, file by file. A file's lines are drawn when it is unfolded, so a big change opens at once.

import { button, h, icon, iconButton, replace } from "./dom.js";

const OPEN_AT_ONCE = 400; // lines
const LETTERS = { added: "A", modified: "M", deleted: "D", renamed: "R" };
const KINDS = { "+": "in", "-": "out", " ": "same" };

/** The lines of a unified patch: {kind: "head" | "same" | "out" | "in", text, old, new}. */
function parse(patch) {
  const lines = [];
  let [old, fresh] = [0, 0];
  for (const line of patch.split("\n")) {
    const hunk = /^@@ -(\d+)\S* \+(\d+)/.exec(line);
    const kind = KINDS[line[0]];
    if (hunk) {
      [old, fresh] = [Number(hunk[1]), Number(hunk[2])];
      lines.push({ kind: "head", text: line });
    } else if (lines.length && kind) {
      lines.push({ kind, text: line.slice(1), old: kind === "in" ? "" : old++, new: kind === "out" ? "" : fresh++ });
    } else if (line[0] === "\\") lines.push({ kind: "head", text: line.slice(2) });
  }
  return lines;
}

/** Side by side: each run of lines taken out stands beside the run put in. */
function pairs(lines) {
  const rows = [];
  let at = 0;
  const run = (kind) => {
    const from = at;
    while (lines[at]?.kind === kind) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const [out, put] = [run("out"), run("in")];
    for (let place = 0; place < Math.max(out.length, put.length); place += 1) rows.push([out[place], put[place]]);
    if (!out.length && !put.length) rows.push([lines[at], lines[at++]]);
  }
  return rows;
}

function table(patch, split) {
  const lines = parse(patch);
  const columns = split ? ["n", "", "n", ""] : ["n", "n", ""];
  const number = (value) => h("td", { class: "line-number" }, String(value ?? ""));
  const words = (line, sign = "") => h("td", { class: "line-" + (line?.kind ?? "none") }, sign, line?.text);
  const one = (line) => [number(line.old), number(line.new), words(line, { in: "+", out: "−" }[line.kind] ?? " ")];
  const two = ([left, right]) => [number(left?.old), words(left), number(right?.new), words(right)];
  const rows = split ? pairs(lines) : lines;
  return h("table", { class: "diff-lines" + (split ? " split" : "") },
    h("colgroup", {}, columns.map((looks) => h("col", { class: looks }))),
    h("tbody", {}, rows.map((row) => {
      const first = split ? row[0] : row;
      if (first?.kind === "head") return h("tr", { class: "hunk" }, h("td", { colspan: columns.length }, first.text));
      return h("tr", {}, split ? two(row) : one(row));
    })));
}

/** A button that copies a text, and shows that it did. */
export function copyButton(name, label, text) {
  return iconButton(name, label, (event) => {
    event.preventDefault(); // inside a summary: what is folded stays folded
    navigator.clipboard?.writeText(text);
    replace(event.currentTarget, icon("completed"));
  });
}

const counts = ({ added, removed }) => [
  h("span", { class: "plus" }, `+${added}`),
  h("span", { class: "minus" }, `−${removed}`),
];

/** @returns {HTMLElement} the files a task changed; filled when the server has answered */
export function diffView(taskId, api) {
  const node = h("div", { class: "diff" }, h("p", { class: "muted" }, "Reading the changes…"));
  const path = `/api/tasks/${encodeURIComponent(taskId)}/diff`;
  let split = false;

  function body(file) {
    if (file.binary) return h("p", { class: "muted" }, "A binary file: its content is not shown.");
    if (file.patch !== null) return table(file.patch, split);
    const ask = button("Show this file", async () => {
      ask.disabled = true;
      const asked = api.get(`${path}?file=${encodeURIComponent(file.path)}`);
      const told = await asked.catch((error) => ({ files: [], note: error.message }));
      file.patch = told.files.find((other) => other.path === file.path)?.patch ?? null;
      ask.replaceWith(file.patch === null ? told.note ?? "Its text was not kept." : table(file.patch, split));
    });
    return ask;
  }

  function fold(file, open) {
    const lines = h("div", { class: "diff-body" });
    const name = file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path;
    const toggle = (event) => event.target.open && !lines.firstChild && replace(lines, body(file));
    return h("details", { open, on: { toggle } },
      h("summary", {}, icon("down"), h("b", { class: "letter " + file.status, title: file.status }, LETTERS[file.status] ?? "?"),
        h("span", { class: "mono path" }, name), file.in_scope === false && h("span", { class: "pill s-failed" }, "out of scope"),
        counts(file), copyButton("copy", "Copy the path", file.path)),
      lines);
  }

  function draw(told) {
    let left = OPEN_AT_ONCE;
    const { files, base, more } = told;
    const turn = () => {
      split = !split;
      draw(told);
    };
    if (!files.length) return replace(node, h("p", { class: "empty" }, told.note ?? "No file changed."));
    replace(node,
      h("div", { class: "row" }, h("b", {}, files.length === 1 ? "1 file" : `${files.length} files`), counts(told),
        base && h("span", { class: "muted" }, `since ${base.branch ?? ""} ${base.commit?.slice(0, 8) ?? ""}`),
        button("Side by side", turn, "wide-only", { aria: { pressed: String(split) } })),
      told.note && h("p", { class: "muted" }, told.note),
      files.map((file) => fold(file, (left -= file.added + file.removed) > 0)),
      more > 0 && h("p", { class: "muted" }, `${more} more files changed; they are not shown here.`));
  }

  api.get(path).then(draw, (error) => replace(node, h("p", { class: "empty" }, error.message, " ", error.hint)));
  return node;
}
