"""A plan and its timeline as SVG inside a page: boxes and lines, bars by task. Only shapes and text; no style of its
own, no script, nothing to fetch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from handrail.domain.overview.graph import GraphView, PlanBox, PlanLine
from handrail.domain.overview.report_tasks import ReportTask
from handrail.domain.overview.timeline import Bar, WorkflowTimeline
from handrail.kernel.clock import spoken_time
from handrail.kernel.wording import on_one_line, shortened
from handrail.surfaces.report.markup import Html, readable, tag
from handrail.surfaces.report.words import MARKS, word

MARGIN = 8.0
LABEL = 25
"""Letters of a name that fit into a box."""
ROWS = 300
"""Tasks that a timeline has rows for: the first that were begun."""
ROW, NAMES, CHART, BESIDE = 20.0, 250.0, 680.0, 80.0
"""The height of a row, and the room for names, for bars, and for the last moment's name beside them."""
TICKS = 6
"""The most steps of a timeline's axis."""
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
STEPS = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14)),
)
"""Steps that people count in. Beyond the last one, months of 30 days."""
LEAST = 2.0
"""Pixels of the shortest bar, so that it can be seen."""
APART = 1.5
"""Pixels between two bars, so that one attempt is not taken for a part of the next."""
_KINDS = {"queue": "queue", "paused": "pause", "approval": "person"}


def _short(text: str, most: int) -> str:
    return shortened(on_one_line(readable(text)), most)


# -- the plan ---------------------------------------------------------------------------------------------------------


def graph(view: GraphView, tasks: Mapping[str, ReportTask]) -> Html:
    """The plan as it stands: a box for each task or group, what comes first on the left."""
    width, height = view.width + 2 * MARGIN, view.height + 2 * MARGIN
    return tag(
        "svg",
        tag("title", "The plan: what waits for what"),
        [_edge(edge) for edge in sorted(view.edges, key=lambda edge: edge.on_critical)],
        [_box(node, tasks) for node in view.nodes],
        role="img",
        width=width,
        height=height,
        viewBox=f"{-MARGIN:g} {-MARGIN:g} {width:g} {height:g}",
    )


def _edge(edge: PlanLine) -> Html:
    """Level past boxes, softly bent between two columns."""
    x, y = edge.points[0]
    way = [f"M{x:g} {y:g}"]
    for (x, y), (to_x, to_y) in pairwise(edge.points):
        middle = (x + to_x) / 2
        way.append(f"L{to_x:g} {to_y:g}" if y == to_y else f"C{middle:g} {y:g} {middle:g} {to_y:g} {to_x:g} {to_y:g}")
    return tag("path", class_=f"edge{' critical' if edge.on_critical else ''}", d="".join(way))


def _box(node: PlanBox, tasks: Mapping[str, ReportTask]) -> Html:
    status, below = _state_and_words(node, tasks)
    return tag(
        "g",
        tag("title", f"{node.label}: {below}"),
        tag(
            "rect",
            class_=f"box{' critical' if node.on_critical else ''}",
            x=node.x,
            y=node.y,
            width=node.w,
            height=node.h,
            rx="6",
        ),
        tag("text", _short(node.label, LABEL), x=node.x + 10, y=node.y + 19),
        tag(
            "text", f"{MARKS.get(status, '·')} {_short(below, LABEL + 2)}", class_="small", x=node.x + 10, y=node.y + 35
        ),
        class_=f"s-{status}",
    )


def _state_and_words(node: PlanBox, tasks: Mapping[str, ReportTask]) -> tuple[str, str]:
    """The state of a box and what is written under its name."""
    if node.kind == "task":
        task = tasks.get(node.id)
        if task is None:
            return "pending", "not told of here"
        words = word(task.row.status)
        return task.row.status, f"{words}, {task.row.agent}" if task.row.agent else words
    states = [tasks[key].row.status for key in node.tasks if key in tasks]
    finished = sum(state in ("completed", "skipped") for state in states)
    for status in ("failed", "in_progress", "planning", "paused"):
        if status in states:
            return status, f"{finished} of {len(node.tasks)} done"
    whole = bool(states) and finished == len(states)
    return "completed" if whole else "pending", f"{finished} of {len(node.tasks)} done"


# -- time -------------------------------------------------------------------------------------------------------------


def timeline(line: WorkflowTimeline) -> Html | None:
    """Bars by task, in the order in which they were first begun; questions to people below. None where nothing was."""
    rows = _rows(line)
    if not rows:
        return None
    span = max(1, line.until - line.since)

    def place(at: int) -> float:
        return NAMES + CHART * min(max(at - line.since, 0), span) / span

    height = ROW * (len(rows) + 1) + 4
    return tag(
        "svg",
        tag("title", "Who worked on what, and when"),
        [_tick(line.since, after, place, height) for after in tick_marks(span)],
        [_row(name, bars, number, line, place) for number, (name, bars) in enumerate(rows)],
        role="img",
        width=NAMES + CHART + BESIDE,
        height=height,
        viewBox=f"0 0 {NAMES + CHART + BESIDE:g} {height:g}",
    )


def _rows(line: WorkflowTimeline) -> list[tuple[str, list[Bar]]]:
    found: dict[str, tuple[str, list[Bar]]] = {}
    worked = {bar.task_id or bar.id for bar in line.bars if bar.kind != "queue"}
    for bar in line.bars:
        key = bar.task_id or bar.id
        if key in worked:
            found.setdefault(key, (bar.name, []))[1].append(bar)
    rows = sorted(found.values(), key=lambda row: min(bar.since for bar in row[1] if bar.kind != "queue"))[:ROWS]
    asked = [
        Bar(
            id=gate.id,
            task_id=None,
            name=gate.question,
            agent=None,
            agent_id=None,
            phase=gate.phase,
            group=None,
            attempt=1,
            kind="approval",
            since=gate.since,
            until=gate.until,
            status="waiting" if gate.until is None else "completed",
            how=gate.answer or gate.state,
        )
        for gate in line.gates
        if gate.task_id is None
    ]
    return rows + [(f"? {bar.name}", [bar]) for bar in asked]


def _tick(since: int, after: int, place: Callable[[int], float], height: float) -> Html:
    x = place(since + after)
    return tag(
        "g",
        tag("line", class_="grid", x1=x, y1=ROW - 4, x2=x, y2=height),
        tag("text", f"+{brief_span(after)}", class_="small", x=x + 2, y=ROW - 8),
    )


def tick_marks(span: int) -> list[int]:
    """Where the axis of a span has marks, in milliseconds from its beginning: at every step, as few as are round."""
    month = 30 * _DAY
    step = next((step for step in STEPS if span <= step * TICKS), month * -(-span // (month * TICKS)))
    return list(range(0, span + 1, step))


def brief_span(ms: int) -> str:
    """A span in its two largest units, without those that are zero: `1 min 30 s`, `2 h`."""
    seconds = ms // _SECOND
    parts = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        parts.append((count, unit))
    first = next((number for number, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"


def _row(name: str, bars: Sequence[Bar], number: int, line: WorkflowTimeline, place: Callable[[int], float]) -> Html:
    top = ROW * (number + 1)
    drawn = []
    for bar in bars:
        until = bar.until if bar.until is not None else line.until
        left, right = place(bar.since), place(until)
        thin = bar.kind == "queue"
        drawn.append(
            tag(
                "g",
                tag("title", _bar_title(bar, until)),
                tag(
                    "rect",
                    class_=_KINDS.get(bar.kind, "work"),
                    x=left,
                    y=top + (8 if thin else 4),
                    width=max(LEAST, right - left - APART),
                    height=4.0 if thin else 12.0,
                    rx="2",
                ),
                class_=f"s-{bar.status}",
            )
        )
    return tag("g", tag("text", _short(name, 38), x=0.0, y=top + 14), drawn)


def _bar_title(bar: Bar, until: int) -> str:
    who = f", {bar.agent}" if bar.agent else ""
    doing = {"queue": "could be begun", "paused": "paused", "approval": "waited for a person"}.get(bar.kind, "at work")
    again = f", attempt {bar.attempt}" if bar.attempt > 1 and bar.kind == "work" else ""
    return f"{bar.name}{who}{again}: {doing} for {spoken_time(until - bar.since)}, {word(bar.how)}"
