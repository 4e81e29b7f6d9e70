// What a task changed, file by file. Lines are drawn when a file is unfolded, in chunks: big changes open at once.

import { button, cut, h, icon, iconButton, replace, told } from "./dom.js";

const OPEN_AT_ONCE = 400; // lines
const CHUNK = 500; // lines drawn in one go
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

/** Side by side: each run of removed lines is next to the run that was added. */
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

function table(rows, split) {
  const columns = split ? ["n", "", "n", ""] : ["n", "n", ""];
  const number = (value) => h("td.line-number", value);
  const words = (line, sign = "") => h("td", { class: "line-" + (line?.kind ?? "none") }, sign, line?.text);
  const one = (line) => [number(line.old), number(line.new), words(line, { in: "+", out: "−" }[line.kind] ?? " ")];
  const two = ([left, right]) => [number(left?.old), words(left), number(right?.new), words(right)];
  return h("table", { class: "diff-lines" + (split ? " split" : "") },
    h("colgroup", columns.map((looks) => h("col", { class: looks }))),
    h("tbody", rows.map((row) => {
      const first = split ? row[0] : row;
      if (first?.kind === "head") return h("tr.hunk", h("td", { colspan: columns.length }, first.text));
      return h("tr", split ? two(row) : one(row));
    })));
}

/** A patch: its first lines, and buttons for the rest, which is drawn one chunk per animation frame. */
function chunks(patch, split) {
  const rows = split ? pairs(parse(patch)) : parse(patch);
  const place = h("div.diff-chunks");
  const more = h("div.row");
  let drawn = 0;

  function next(all) {
    place.append(h("div.diff-chunk", table(rows.slice(drawn, (drawn += CHUNK)), split)));
    const left = rows.length - drawn;
    const goesOn = all && left > 0 && place.isConnected;
    if (goesOn) requestAnimationFrame(() => next(true));
    replace(more, left > CHUNK && !goesOn && button(`${CHUNK} more lines`, () => next()),
      left > 0 && !goesOn && button(`All ${left.toLocaleString()} remaining lines`, () => next(true)));
  }
  next();
  return [place, more];
}

export function copyButton(name, label, text) {
  return iconButton(name, label, (event) => {
    event.preventDefault(); // inside a summary, keep a folded file folded
    navigator.clipboard?.writeText(text);
    replace(event.currentTarget, icon("completed"));
  });
}

const counts = ({ added, removed, binary }) => (binary ? h("span.muted", "binary") : [
  h("span.plus", `+${added.toLocaleString()}`),
  h("span.minus", `−${removed.toLocaleString()}`),
]);

export function diffView(taskId, api) {
  const node = h("div.diff", h("p.muted", "Reading the changes…"));
  const path = `/api/tasks/${encodeURIComponent(taskId)}/diff`;
  let split = false;

  /** Fills a file that was unfolded. One too long to be sent with the others is requested now. */
  async function fill(place, file) {
    if (file.binary) return replace(place, h("p.muted", "Binary file, not shown."));
    if (file.patch === null) {
      replace(place, h("p.muted", "Reading the changes…"));
      const asked = api.get(`${path}?file=${encodeURIComponent(file.path)}`);
      const answer = await asked.catch((error) => ({ files: [], note: told(error) }));
      file.patch = answer.files.find((other) => other.path === file.path)?.patch ?? null;
      file.note = answer.note;
    }
    const text = file.note ?? (file.patch === null && "The text was not kept.");
    replace(place, text && h("p.muted", text), file.patch !== null && chunks(file.patch, split));
  }

  function fold(file, open) {
    const lines = h("div.diff-body");
    const name = file.old_path && file.old_path !== file.path ? `${file.old_path} → ${file.path}` : file.path;
    const toggle = (event) => event.target.open && !lines.querySelector("table") && fill(lines, file);
    return h("details", { open, on: { toggle } },
      h("summary", icon("down"), h("b", { class: "letter " + file.status, title: file.status }, LETTERS[file.status] ?? "?"),
        h("span.mono.path", { title: name }, cut(name, Math.max(18, (innerWidth - 250) / 7.6))), file.in_scope === false && h("span.pill.s-failed", "out of scope"),
        counts(file), copyButton("copy", "Copy the path", file.path)),
      lines);
  }

  function draw(told) {
    let left = OPEN_AT_ONCE;
    const opens = ({ added, removed, patch, binary }) => {
      const fits = !binary && patch !== null && added + removed <= left;
      if (fits) left -= added + removed;
      return fits; // a big one leaves room for the others
    };
    const { files, base, more } = told;
    const turn = () => {
      split = !split;
      draw(told);
      node.querySelector("button.wide-only").focus(); // it was redrawn
    };
    if (!files.length) return replace(node, h("p.empty", told.note ?? "No files changed."));
    replace(node,
      h("div.row", h("b", files.length === 1 ? "1 file" : `${files.length} files`), counts(told),
        base && h("span.muted", `since ${base.branch ?? ""} ${base.commit?.slice(0, 8) ?? ""}`),
        button("Side by side", turn, "wide-only", { aria: { pressed: split } })),
      told.note && h("p.muted", told.note),
      files.map((file) => fold(file, opens(file))),
      more > 0 && h("p.muted", `${more} more changed files are not shown.`));
  }

  api.get(path).then(draw, (error) => replace(node, h("p.empty", told(error))));
  return node;
}
