// Where moments lie on the timeline: squashed stretches, ticks, lanes. Pure: no page, no clock.

const MINUTE = 60e3;
const HOUR = 60 * MINUTE;
const ROUND = [1, 2, 5, 10, 15, 30];
const STEPS = [...ROUND.map((count) => count * 1e3), ...ROUND.map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 168, 720].map((count) => count * HOUR)];

/** The stretches of [from, to] to show: all of it, or only those in which somebody was working. */
export function stretches(bars, from, to, squash) {
  const least = Math.max((to - from) / 25, MINUTE);
  const found = [];
  for (const bar of bars) {
    const begin = Math.max(bar.from, from);
    const end = Math.min(bar.to, to);
    const last = found.at(-1);
    if (bar.kind === "queue" || end < begin) continue;
    if (last && begin - last.to < least) last.to = Math.max(last.to, end);
    else found.push({ from: begin, to: end });
  }
  return squash && found.length ? found : [{ from, to }];
}

/** Maps moments to fractions of the width, 0 to 1. Between two stretches there is a small gap. */
export function scale(parts) {
  const gap = Math.min(0.02, 0.3 / parts.length);
  const length = parts.reduce((sum, part) => sum + part.to - part.from, 0) || 1;
  const unit = (1 - gap * (parts.length - 1)) / length;
  let x = 0;
  const pieces = parts.map((part) => {
    const piece = { ...part, x };
    x += unit * (part.to - part.from) + gap;
    return piece;
  });
  const at = (time) => {
    const piece = pieces.findLast((each) => each.from <= time) ?? pieces[0];
    return piece.x + unit * (Math.min(Math.max(time, piece.from), piece.to) - piece.from);
  };
  return { pieces, gap, length, at };
}

/** Round moments for the axis, at most about `count`, each with its label. */
export function ticks({ pieces, length, at }, count) {
  const step = STEPS.find((each) => length / each <= count) ?? STEPS.at(-1);
  const found = [];
  let day = "";
  for (const { from, to } of pieces) {
    const offset = new Date(from).getTimezoneOffset() * MINUTE;
    for (let time = Math.ceil((from - offset) / step) * step + offset; time <= to; time += step) {
      const x = at(time);
      const last = found.at(-1);
      if (last && x - last.x < (last.long ? 1.3 : 0.7) / count) continue;
      const date = new Date(time).toLocaleDateString([], { day: "numeric", month: "short" });
      const hour = new Date(time).toLocaleTimeString([], { timeStyle: step < MINUTE ? "medium" : "short" });
      found.push({ x, long: date !== day, text: date === day ? hour : `${date} ${hour}` });
      day = date;
    }
  }
  return found;
}

/**
 * Gives each bar, in order of time, a lane where it overlaps no other; `most` if there is none. Returns how many. A wait
 * becomes a strip below the work that ended it, so that waits do not make a row tall.
 */
export function lanes(bars, most, least = 0) {
  const ends = [];
  const work = new Map();
  const key = (bar) => `${bar.task_id} ${bar.attempt}`;
  const place = (bar) => {
    const free = ends.findIndex((end) => end <= bar.from);
    bar.lane = free < 0 ? ends.length : free;
    if (bar.lane < most) ends[bar.lane] = Math.max(bar.to, bar.from + least);
  };
  for (const bar of bars.filter((each) => each.kind !== "queue")) {
    place(bar);
    work.set(key(bar), bar.lane);
  }
  for (const bar of bars.filter((each) => each.kind === "queue")) {
    bar.strip = work.has(key(bar));
    if (bar.strip) bar.lane = work.get(key(bar));
    else place(bar);
  }
  return Math.max(ends.length, 1);
}
