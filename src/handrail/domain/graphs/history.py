"""What a graph was: the rows it is made of, told again from the events of its stream up to the one that made a version.

For plans and for graphs of their own alike; how rows become a graph is `plan_graph.py`'s and `free_graph.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork

_COUNTS_VERSIONS = ("tally", "graph")
"""The tables that hold a graph's version."""
_PAGE = 250
_PAGE_CHANGES = 20_000
"""Changes of rows that are in memory at once, as far as events can be parted."""

SeenT = TypeVar("SeenT")


class Past:
    """The rows of some tables, as far as the events of a stream have been taken in."""

    def __init__(self, shown: Mapping[str, frozenset[str]]) -> None:
        self._shown = shown
        self.rows: dict[str, dict[str, dict[str, Any]]] = {table: {} for table in shown}

    def take(self, event: Event) -> None:
        for change in event.changes:
            rows, shown = self.rows.get(change.table), self._shown.get(change.table)
            if rows is None or shown is None:
                continue
            if change.after is None:
                rows.pop(change.key, None)
            else:
                row = rows.setdefault(change.key, {})
                row |= {name: value for name, value in change.after.items() if name in shown}


class VersionEvent(NamedTuple, Generic[SeenT]):
    """The event that made a version, and what was seen right before and right after it."""

    event: Event
    before: SeenT
    after: SeenT


def made_by(
    unit: UnitOfWork, stream: str, version: int, past: Past, see: Callable[[int], SeenT]
) -> VersionEvent[SeenT] | None:
    """How a version was made: the events of its stream are taken in until then, and `see` looks at what they come to
    as one version and as the next. One that was taken back counts only where somebody made it anew."""
    found: VersionEvent[SeenT] | None = None
    for event in history(unit, stream):
        step = version_step(event)
        if found is not None:
            if step is None or step[1] >= version:
                return found
            found = None  # it was taken back, and somebody made it anew
        if step is not None and step[0] < version == step[1]:
            before = see(version - 1)
            past.take(event)
            found = VersionEvent(event, before, see(version))
        else:
            past.take(event)
    return found


def history(unit: UnitOfWork, stream: str, after: int = 0, *, size: int = 4) -> Iterator[Event]:
    """The events of a stream in order. Few at a time where they are large: one of them can hold a whole plan."""
    while True:
        page = unit.events(stream, after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1].seq
        largest = max(len(event.changes) for event in page)
        size = max(1, min(_PAGE, _PAGE_CHANGES // max(1, largest)))


def version_step(event: Event) -> tuple[int, int] | None:
    """From which version to which an event leads; None where the plan stays what it is. Only what was taken back leads
    to a lower one."""
    for change in event.changes:
        if change.table in _COUNTS_VERSIONS:
            before, after = (change.before or {}).get("version", 0), (change.after or {}).get("version", 0)
            return (before, after) if before != after else None
    return None
