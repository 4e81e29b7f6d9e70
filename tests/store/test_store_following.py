"""Following the ledger page by page while four processes write: every event once, in order, none missing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Event, Only
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.store.ground import Ground
from tests.store.process import EACH, SHARED, elsewhere
from tests.store.records import ANNA

WRITERS = ("w_1", "w_2", "w_3", "w_4")
PAGE = 250
WAIT_S = 5.0
Read = Callable[..., list[Event]]
"""The next page after the last event that was seen."""


def by_position(unit: Unit, last: Event | None) -> list[Event]:
    return unit.feed(last.position if last else 0, PAGE)


def by_position_later(unit: Unit, last: Event | None) -> list[Event]:
    """As a tool asks, which looks at other things first."""
    assert unit.get(Workflow, "nothing") is None
    return unit.feed(last.position if last else 0, PAGE)


def by_kind(unit: Unit, last: Event | None) -> list[Event]:
    return unit.feed(last.position if last else 0, PAGE, Only(kinds=("shared.",)))


def by_streams(unit: Unit, last: Event | None) -> list[Event]:
    return unit.feed(last.position if last else 0, PAGE, Only(streams=WRITERS))


def by_number(unit: Unit, last: Event | None) -> list[Event]:
    """One stream by its own numbers: the watch loop of a run."""
    return unit.events(SHARED, last.seq if last else 0, PAGE)


READS: tuple[Read, ...] = (by_position, by_position_later, by_kind, by_streams, by_number)


class Follower(threading.Thread):
    """Reads page by page, waits for news where there is no page, and ends when all is written and read."""

    def __init__(self, store: Store, read: Read, written: threading.Event) -> None:
        super().__init__()
        self._store = store
        self._read = read
        self._written = written
        self.seen: list[Event] = []

    def run(self) -> None:
        while True:
            ending = self._written.is_set()
            position = self._store.position()
            last = self.seen[-1] if self.seen else None
            page = self._store.run(ANNA, partial(self._read, last=last))
            self.seen += page
            if not page and ending:
                return
            if not page:
                self._store.wait(position, WAIT_S, self._written.is_set)


def follow(ground: Ground, units: int) -> None:
    written = threading.Event()
    followers = {read: Follower(ground.another(), read, written) for read in READS}
    with ExitStack() as ends:
        writers = [ends.enter_context(elsewhere(ground.address, "pour", name, str(units))) for name in WRITERS]
        for follower in followers.values():
            follower.start()
        for writer in writers:
            writer.go()
        told = [writer.answer() for writer in writers]
        written.set()
        for follower in followers.values():
            follower.join(60)
    assert told == ["done"] * len(WRITERS)
    seen = {read: follower.seen for read, follower in followers.items()}
    whole = seen[by_position]
    assert Counter(event.stream for event in whole) == {
        SHARED: len(WRITERS) * units * EACH // 2,
        **dict.fromkeys(WRITERS, units * EACH // 2),
    }
    for stream in (SHARED, *WRITERS):
        numbers = [event.seq for event in whole if event.stream == stream]
        assert numbers == list(range(1, len(numbers) + 1)), stream
    positions = [event.position for event in whole]
    assert positions == sorted(set(positions))
    assert seen[by_position_later] == whole
    assert seen[by_kind] == seen[by_number] == [event for event in whole if event.stream == SHARED]
    assert seen[by_streams] == [event for event in whole if event.stream != SHARED]


def test_followers_see_every_event_of_four_processes_once_and_in_order(lasting: Ground) -> None:
    follow(lasting, units=25)


@pytest.mark.torture
def test_followers_see_every_one_of_a_hundred_thousand_events_of_four_processes(lasting: Ground) -> None:
    follow(lasting, units=2500)
    assert lasting.store.verify() == []
