"""Writes a document as a Mermaid flowchart: tasks with their states, their dependencies, parts in a box. Writing only.

Whatever a name contains, it stays a label: everything except letters, digits and a few punctuation characters is
written as a numeric entity. Mermaid 11 also reads labels as Markdown, so characters that would start a list, emphasis
or a link are encoded too. Viewers have default limits (500 arrows, 50,000 characters); a larger plan is drawn in part
and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.domain.work.task import FINISHED
from handrail.kernel.wording import on_one_line, shortened

MOST_TASKS = 500
MOST_ARROWS = 500
MOST_CHARACTERS = 50_000
LABEL = 60
"""Characters of a name that are drawn."""
_SAFE = frozenset(" .,-_/'!?()")
_MISREAD = re.compile(
    r"^[0-9]*[-.)]|(?<![^\W_])_|_(?![^\W_])|www\.|direction(?=\s+(?:TB|BT|RL|LR|TD))",
    re.IGNORECASE,
)
"""Whatever begins a list or a rule, may begin or end emphasis, begins an address, or is a command anywhere. The last
character of each match is written as a numeric entity."""
_WORDS = frozenset(("end", "graph", "subgraph"))
_LOOKS = {
    "completed": "fill:#dcfce7,stroke:#16a34a,color:#14532d",
    "skipped": "fill:#f3f4f6,stroke:#9ca3af,color:#6b7280",
    "failed": "fill:#fee2e2,stroke:#dc2626,color:#7f1d1d",
    "in_progress": "fill:#e0f2fe,stroke:#0284c7,color:#0c4a6e",
    "planning": "fill:#e0f2fe,stroke:#0284c7,color:#0c4a6e",
    "paused": "fill:#fef9c3,stroke:#ca8a04,color:#713f12",
    "pending": "fill:#ffffff,stroke:#374151,color:#111827",
    "blocked": "fill:#ffffff,stroke:#9ca3af,color:#6b7280",
}
"""The style for each state, which the label also names."""


class Chart(NamedTuple):
    """The chart, and how many of the tasks it shows."""

    text: str
    drawn: int


def write(document: PlanDocument, *, whole: bool = False) -> str:
    """Only the text of the chart."""
    return draw(document, whole=whole).text


def draw(document: PlanDocument, *, whole: bool = False) -> Chart:
    """A chart of as many tasks as fit. `whole` draws everything, however large."""
    most = len(document.tasks) if whole else MOST_TASKS
    while True:
        chart = _Chart(document, most, whole=whole)
        text = "\n".join(chart.lines()) + "\n"
        if whole or len(text) <= MOST_CHARACTERS or most <= 1:
            return Chart(text, chart.drawn)
        most = min(most - 1, most * MOST_CHARACTERS // len(text))


class _Chart:
    """One chart being drawn."""

    def __init__(self, document: PlanDocument, most: int, *, whole: bool) -> None:
        self._document = document
        self._by_name = {task.name: task for task in document.tasks}
        self._parts: dict[str | None, list[PlannedTask]] = {}
        for task in document.tasks:
            above = task.parent if task.parent in self._by_name else None
            self._parts.setdefault(above, []).append(task)
        ordered = list(self._from_the_top())
        self._drawn = ordered[:most]
        self._ids = {task.name: f"t{number}" for number, task in enumerate(self._drawn, 1)}
        arrows = list(self._arrows())
        self._shown_arrows = arrows if whole else arrows[:MOST_ARROWS]
        self._left = (len(ordered) - len(self._drawn), len(arrows) - len(self._shown_arrows))

    @property
    def drawn(self) -> int:
        return len(self._drawn)

    def _from_the_top(self) -> Iterator[PlannedTask]:
        """Each task before its parts."""
        pending = self._parts.get(None, [])[::-1]
        while pending:
            task = pending.pop()
            yield task
            pending += self._parts.get(task.name, [])[::-1]

    def _arrows(self) -> Iterator[tuple[str, str]]:
        """Arrows from the earlier task to the waiting one, but none from a task to its parts: the box shows those."""
        above = {task.name: self._above(task) for task in self._drawn}
        for task in self._drawn:
            for need in task.depends_on:
                if need in self._ids and need not in above[task.name] and task.name not in above[need]:
                    yield self._ids[need], self._ids[task.name]

    def _above(self, task: PlannedTask) -> set[str]:
        found: set[str] = set()
        while task.parent in self._by_name and task.parent not in found:
            found.add(task.parent)
            task = self._by_name[task.parent]
        return found

    def lines(self) -> Iterator[str]:
        yield "flowchart TD"
        tasks, arrows = self._left
        if tasks or arrows:
            all_of_them = len(self._document.tasks)
            yield f"  %% {len(self._drawn)} of {all_of_them} tasks are drawn, and all but {arrows} of their arrows"
            said = f"{tasks} more tasks are not drawn" if tasks else f"{arrows} more arrows are not drawn"
            yield f'  more["{label(said)}"]'
        yield from self._boxes()
        for first, second in self._shown_arrows:
            yield f"  {first} --> {second}"
        yield from self._classes()

    def _boxes(self) -> Iterator[str]:
        """Nodes, and boxes around parts. Does not recurse, however deep they are."""
        pending: list[PlannedTask | int] = [*self._parts.get(None, [])[::-1]]
        depth = 1
        while pending:
            task = pending.pop()
            if isinstance(task, int):
                depth = task
                yield f"{'  ' * depth}end"
            elif task.name in self._ids:
                said = (label(task.name), _state(task, self._by_name).replace("_", " "))
                text = " - ".join(part for part in said if part.strip())
                parts = [part for part in self._parts.get(task.name, []) if part.name in self._ids]
                if parts:
                    yield f'{"  " * depth}subgraph {self._ids[task.name]}["{text}"]'
                    pending += [depth, *parts[::-1]]
                    depth += 1
                else:
                    yield f'{"  " * depth}{self._ids[task.name]}["{text}"]'

    def _classes(self) -> Iterator[str]:
        by_state: dict[str, list[str]] = {}
        for task in self._drawn:
            by_state.setdefault(_state(task, self._by_name), []).append(self._ids[task.name])
        for state, look in _LOOKS.items():
            if state in by_state:
                yield f"  classDef {state} {look}"
                yield f"  class {','.join(by_state[state])} {state}"


def label(name: str) -> str:
    """A name in a form that is safe between quotes."""
    line = shortened(on_one_line(name), LABEL)
    if line.lower() in _WORDS:
        return f"#{ord(line[0])};{line[1:]}"
    by_number = {found.end() - 1 for found in _MISREAD.finditer(line)}
    return "".join(f"#{ord(sign)};" if place in by_number else _sign(sign) for place, sign in enumerate(line))


def _sign(sign: str) -> str:
    if sign in _SAFE or (sign.isalnum() and sign.isprintable()):
        return sign
    return f"#{ord(sign)};" if sign.isprintable() else " "


def _state(task: PlannedTask, by_name: Mapping[str, PlannedTask]) -> str:
    """The state as shown to everyone: a pending task that waits for another is blocked."""
    if task.status != "pending":
        return task.status
    above: PlannedTask | None = task
    seen: set[str] = set()
    while above is not None and above.name not in seen:
        seen.add(above.name)
        if any(by_name[need].status not in FINISHED for need in above.depends_on if need in by_name):
            return "blocked"
        above = by_name.get(above.parent or "")
    return "pending"
