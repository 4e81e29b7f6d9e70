"""Following the ledger: which events somebody wants, page by page, each once, none skipped. Reads only.

The store filters by what it can (streams, actors, prefixes of kinds); the rest (the task an event is about, its level)
is checked here, event by event, until something matches or the ledger ends. So an empty page means that there is
nothing, and a reader that continues where a page ended misses nothing and sees nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from handrail.domain.registry.envelopes import (
    ABOUT_TASKS,
    CATEGORIES,
    ROUTINE,
    category_of,
    kinds_at,
    level_of,
    task_of,
)
from handrail.domain.work.task import Task
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork

PAGE = 500
"""How many events are read at once."""
LOOKED_AT = 20_000
"""How many events are examined to fill a page that already has something in it, or to find the newest matches."""
ELSEWHERE = ("message.", "op.", "paths.")
"""Kinds that can be about a task but are not in its workflow's stream."""


class EventFilter(NamedTuple):
    """Which events are wanted. Empty fields match everything; all others must match."""

    categories: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    run_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    """The agent that did it, or that it was done to."""

    def fits(self, event: Event) -> bool:
        """Whether an event is wanted. Does not repeat what the store has already filtered."""
        if event.kind in ROUTINE and category_of(event) not in self.categories:
            return False
        if self.levels and level_of(event) not in self.levels:
            return False
        return self.task_id is None or task_of(event) == self.task_id


class Cursor:
    """How far one call has looked without finding anything, and where it starts when it looks again."""

    def __init__(self) -> None:
        self.seq: int | None = None
        self.truncated_before = 0
        self.looked_back_to = 0

    def keep(self, page: TailPage) -> TailPage:
        """The page, including what earlier looks found to be missing; an empty page advances the cursor."""
        self.truncated_before = max(self.truncated_before, page.truncated_before)
        self.looked_back_to = max(self.looked_back_to, page.looked_back_to)
        if not page.entries:
            self.seq = page.next_seq
        return page._replace(truncated_before=self.truncated_before, looked_back_to=self.looked_back_to)


class TailPage(NamedTuple):
    """What was found, in the form shown, and where to continue."""

    entries: tuple[dict[str, Any], ...]
    next_seq: int
    truncated_before: int = 0
    """The first event still shown, if older ones were asked for but are hidden."""
    looked_back_to: int = 0
    """The oldest event examined, if a search backwards ended before it had found enough."""


class EventForm(NamedTuple):
    """How events are shown, and the most per page: in number, and in total bytes. At least one is always shown."""

    entry: Callable[[Event], dict[str, Any]]
    limit: int
    room: int = 1_000_000


class EventSource(Protocol):
    """Events in one order, each with its number in that order."""

    def number(self, event: Event) -> int: ...

    def after(self, number: int, limit: int) -> list[Event]: ...

    def newest(self, limit: int) -> list[Event]:
        """The newest events, in order."""
        ...

    def end(self) -> int:
        """The number up to which everything has been seen once the events run out."""
        ...


class OneStream:
    """The events of one stream, numbered within it."""

    def __init__(self, unit: UnitOfWork, stream: str) -> None:
        self._unit = unit
        self._stream = stream

    def number(self, event: Event) -> int:
        return event.seq

    def after(self, number: int, limit: int) -> list[Event]:
        return self._unit.events(self._stream, number, limit)

    def newest(self, limit: int) -> list[Event]:
        return self.after(max(0, self.end() - limit), limit)

    def end(self) -> int:
        return self._unit.head_seq(self._stream)


class Bus:
    """The events of all streams, or those that pass at least one of several filters, by position in the ledger."""

    def __init__(self, unit: UnitOfWork, onlys: Sequence[Only] = (Only(),)) -> None:
        self._unit = unit
        self._onlys = onlys
        self._end = unit.position()  # taken before anything is read, so that everything up to here will be seen

    def number(self, event: Event) -> int:
        return event.position

    def after(self, number: int, limit: int) -> list[Event]:
        return _merged(self._unit.feed(number, limit, only) for only in self._onlys)[:limit]

    def newest(self, limit: int) -> list[Event]:
        found = self._merged_newest(limit)
        ahead = sum(event.position > self._end for event in found)  # there, other filters may still lack some
        if ahead:
            found = self._merged_newest(limit + ahead)
        return [event for event in found if event.position <= self._end][-limit:]

    def _merged_newest(self, limit: int) -> list[Event]:
        return _merged(self._unit.newest(limit, only) for only in self._onlys)

    def end(self) -> int:
        return self._end


def _merged(found: Iterable[list[Event]]) -> list[Event]:
    """The events of several results in one order, each once."""
    by_position = {event.position: event for events in found for event in events}
    return [by_position[position] for position in sorted(by_position)]


# -- which events a store looks for -----------------------------------------------------------------------------------


def bus_of(unit: UnitOfWork, wanted: EventFilter) -> Bus:
    """A source that includes all wanted events."""
    onlys: list[Only] = [Only()]
    for narrower in _filters(unit, wanted):
        onlys = [both for one in onlys for other in narrower if (both := meet(one, other)) is not None]
    return Bus(unit, tuple(onlys))


def bus_of_agent(unit: UnitOfWork, agent_id: str) -> Bus:
    """What an agent did, and what was done to it."""
    return bus_of(unit, EventFilter(agent_id=agent_id))


def _filters(unit: UnitOfWork, wanted: EventFilter) -> Iterator[tuple[Only, ...]]:
    """For each condition, its filters: an event meets the condition if any of them lets it through."""
    if wanted.categories:
        yield (Only(kinds=tuple(start for name in wanted.categories for start in CATEGORIES[name])),)
    if wanted.levels and (kinds := kinds_at(wanted.levels)):
        yield (Only(kinds=kinds),)
    if wanted.run_id is not None:
        yield (Only(streams=(wanted.run_id,)),)
    if wanted.agent_id is not None:
        yield (Only(actors=(wanted.agent_id,)), Only(streams=(wanted.agent_id,)))
    if wanted.task_id is not None:
        task = unit.get(Task, wanted.task_id)
        if task is not None:
            yield (Only(streams=(task.stream,), kinds=ABOUT_TASKS), Only(kinds=ELSEWHERE))
        else:  # it may have been removed from its plan; its events are still reported
            yield (Only(kinds=ABOUT_TASKS),)


def meet(one: Only, other: Only) -> Only | None:
    """The filter for what both let through; None if that is nothing."""
    met = Only(
        _common(one.streams, other.streams), _common(one.actors, other.actors), _common_starts(one.kinds, other.kinds)
    )
    for field in range(3):
        if one[field] and other[field] and not met[field]:
            return None
    return met


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value for value in one if value in other) if one and other else one or other


def _common_starts(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    if not (one and other):
        return one or other
    longer = [max(first, second, key=len) for first in one for second in other if _begin_alike(first, second)]
    return tuple(dict.fromkeys(longer))


def _begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


# -- pages ------------------------------------------------------------------------------------------------------------


def page_after(
    source: EventSource, fits: Callable[[Event], bool], after: int, shown: EventForm, cut: int = 0
) -> TailPage:
    """The next matching events. `cut` is the number of the first that may be shown."""
    begin = max(after, cut - 1)
    entries: list[dict[str, Any]] = []
    last, size = begin, 0
    for looked_at, event in enumerate(_walk(source, begin)):
        if entries and looked_at >= LOOKED_AT:
            break
        if not fits(event):
            continue
        entry = shown.entry(event)
        size += len(msgspec.json.encode(entry))
        if entries and (len(entries) == shown.limit or size > shown.room):
            break
        entries.append(entry)
        last = source.number(event)
    return TailPage(tuple(entries), last if entries else max(begin, source.end()), cut)


def newest_page(source: EventSource, fits: Callable[[Event], bool], shown: EventForm, cut: int = 0) -> TailPage:
    """The newest matching events, in order. `cut` is the number of the first that may be shown. If matches are rare,
    the search backwards ends after `LOOKED_AT` events, and the page says how far it went."""
    entries: list[dict[str, Any]] = []
    newest, size, looked_at, looked_back_to = source.end(), 0, 0, 0
    is_full = False
    for event in _walk_back(source):
        if source.number(event) < cut or is_full:
            break
        if looked_at == LOOKED_AT:
            return _newest_first(entries, newest, 0, looked_back_to)
        looked_at, looked_back_to = looked_at + 1, source.number(event)
        if not fits(event):
            continue
        entry = shown.entry(event)
        size += len(msgspec.json.encode(entry))
        if entries and size > shown.room:
            is_full = True
            break
        newest = newest if entries else source.number(event)
        entries.append(entry)
        is_full = len(entries) == shown.limit
    return _newest_first(entries, newest, 0 if is_full else cut)


def _newest_first(entries: list[dict[str, Any]], newest: int, cut: int, looked_back_to: int = 0) -> TailPage:
    return TailPage(tuple(reversed(entries)), newest, cut, looked_back_to)


def first_kept(source: EventSource, after: int, keep: int) -> int:
    """The number of the oldest event that may be shown if only the `keep` newest are and `after` reaches further back;
    else 0."""
    if not keep or source.end() - after <= keep:  # numbers are unique, so there are no more events than that
        return 0
    if isinstance(source, OneStream):  # numbers in a stream have no gaps
        return source.end() - keep + 1
    oldest = 0
    for count, event in enumerate(_walk_back(source)):
        if source.number(event) <= after:
            return 0
        if count == keep:
            return oldest
        oldest = source.number(event)
    return 0


def _walk(source: EventSource, after: int) -> Iterator[Event]:
    while True:
        events = source.after(after, PAGE)
        yield from events
        if len(events) < PAGE:
            return
        after = source.number(events[-1])


def _walk_back(source: EventSource) -> Iterator[Event]:
    """All events, newest first, read in bounded batches."""
    newest = source.newest(PAGE)
    yield from reversed(newest)
    if len(newest) < PAGE:
        return
    upto = source.number(newest[0]) - 1
    width = max(PAGE, source.end() - upto)  # in numbers, which may have gaps
    while upto > 0:
        events = source.after(max(0, upto - width), PAGE)
        if len(events) == PAGE and source.number(events[-1]) < upto:  # there are more than a page in between
            width = max(PAGE, width // 4)
            continue
        found = [event for event in events if source.number(event) <= upto]
        yield from reversed(found)
        upto -= width
        if len(found) < PAGE // 4:
            width *= 4
