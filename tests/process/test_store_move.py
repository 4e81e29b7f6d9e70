"""Moves with real processes: killed at any point, a move leaves the old store whole and the new one complete, empty or
not there; whatever a writer was told is written is in the new store, or in the old one if it still is the store."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Event
from handrail.store import store_move
from handrail.store.marks import is_moved
from handrail.store.ports import lasting
from handrail.store.store import Store
from tests.process.store_audit import _acknowledged, _whole
from tests.process.store_mover import DONE, HERE, POINTS, opened
from tests.process.store_units import Worker, prepare
from tests.store.server import running, schema_of_its_own

ROOT = Path(__file__).parent.parent.parent
WAYS = ("sqlite to postgres", "postgres to sqlite", "sqlite to sqlite", "postgres to postgres")
DEADLINE_S = 60
ROUNDS = 12
_numbers = itertools.count(1)

Places = Callable[[str], str]


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    """Makes addresses where nothing is yet, of a kind."""
    with contextlib.ExitStack() as stack:

        def place(kind: str) -> str:
            if kind == "sqlite":
                return str(tmp_path / f"store_{next(_numbers)}.db")
            server = stack.enter_context(running())
            return stack.enter_context(schema_of_its_own(server, f"move_{os.getpid()}_{next(_numbers)}"))

        yield place


class Other:
    """Another process, and what it has said so far."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.process.store_mover", *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        self.said: list[dict[str, Any]] = []
        self.news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.news:
                self.said.append(msgspec.json.decode(line))
                self.news.notify_all()

    def wait_for(self, lines: int) -> None:
        with self.news:
            assert self.news.wait_for(lambda: len(self.said) >= lines, DEADLINE_S), self.said

    def end(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        finally:
            self.process.kill()
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()

    @property
    def acks(self) -> list[dict[str, Any]]:
        return [line for line in self.said if "tag" in line]


@contextlib.contextmanager
def store_at(address: str) -> Iterator[Store]:
    store = opened(address)
    try:
        yield store
    finally:
        store.engine.close()


def events_of(store: Store) -> list[Event]:
    found: list[Event] = []
    while page := store.feed(after=found[-1].position if found else 0, limit=1000):
        found += page
    return found


def audited(address: str, acks: list[dict[str, Any]]) -> list[Event]:
    """The events of a sound store that holds all that was acknowledged, once."""
    with store_at(address) as store:
        assert store.engine.check() == []
        assert store.verify() == []
        events = events_of(store)
        assert [*_acknowledged(events, acks), *_whole(store, events)] == []
        return events


def filled(address: str, units: int) -> list[dict[str, Any]]:
    with store_at(address) as store:
        prepare(store)
        worker = Worker(store, "first", "0", 1)
        return [worker.run(number) for number in range(1, units + 1)]


def has_moved(source: str) -> bool:
    return is_moved(store_move.found_at(source, HERE).schema)


def look_after_a_kill(source: str, target: str, acks: list[dict[str, Any]]) -> bool:
    """The old store is whole; the new one is complete, empty or not there. Whether it is complete."""
    there = store_move.found_at(target, HERE).schema
    with contextlib.ExitStack() as stack:
        empty = not there or lasting(stack.enter_context(store_at(target)).engine).is_empty()
    if has_moved(source):
        assert not empty
        with pytest.raises(StoreUnusable, match="has moved to"):
            opened(source)
    else:
        before = audited(source, acks)
        assert empty or audited(target, acks) == before
    if not empty:
        audited(target, acks)
    return not empty


@pytest.mark.parametrize("way", [*WAYS[:2], *(pytest.param(way, marks=pytest.mark.torture) for way in WAYS[2:])])
def test_a_move_that_is_killed_leaves_no_half_store(places: Places, way: str) -> None:
    source_kind, _, target_kind = way.partition(" to ")
    source = places(source_kind)
    acks = filled(source, 40)
    for point in POINTS:
        target = places(target_kind)
        mover = Other("move", source, target, point)
        assert mover.end() == -signal.SIGKILL, (point, mover.said)
        complete = look_after_a_kill(source, target, acks)
        assert complete == (point in DONE), point
        assert has_moved(source) == (point == "after the mark")
        if not complete:  # what is left of it is in nobody's way
            with store_at(source) as store:
                store_move.move(lasting(store.engine), target, project=HERE, version="0", keep=True)
            audited(target, acks)


def move_while_others_write(source: str, target: str, seed: int, before: int) -> None:
    writers = [Other("write", source, f"writer-{number}", str(seed)) for number in range(3)]
    try:
        for writer in writers:
            writer.wait_for(before)
        mover = Other("move", source, target, "")
        assert mover.end() == 0, mover.said
        assert [writer.end() for writer in writers] == [1, 1, 1]
    finally:
        for writer in writers:
            writer.process.kill()
    for writer in writers:
        assert "has moved to" in writer.said[-1]["refused"]["message"], writer.said[-1]
    acks = [ack for writer in writers for ack in writer.acks]
    store_move.release(source, HERE)
    assert audited(target, acks) == audited(source, acks)


@pytest.mark.parametrize("way", WAYS[:2])
def test_what_was_acknowledged_during_a_move_has_moved(places: Places, way: str) -> None:
    source_kind, _, target_kind = way.partition(" to ")
    move_while_others_write(places(source_kind), places(target_kind), seed=1, before=20)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", WAYS)
def test_what_was_acknowledged_during_many_moves_has_moved(places: Places, way: str, seed: int) -> None:
    source_kind, _, target_kind = way.partition(" to ")
    move_while_others_write(places(source_kind), places(target_kind), seed=seed, before=100 * (seed + 1))


@pytest.mark.torture
@pytest.mark.parametrize("way", WAYS)
def test_a_move_that_is_killed_at_any_moment_leaves_no_half_store(places: Places, way: str) -> None:
    """From outside, at random moments, with a store that takes a while."""
    source_kind, _, target_kind = way.partition(" to ")
    chance = random.Random(way)
    source = places(source_kind)
    acks = filled(source, 800)
    complete = 0
    for _ in range(ROUNDS):
        target = places(target_kind)
        mover = Other("move", source, target, "")
        mover.wait_for(1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            mover.process.wait(chance.uniform(0, 1.2))
        mover.process.kill()
        mover.end()
        complete += look_after_a_kill(source, target, acks)
        if has_moved(source):
            store_move.release(source, HERE)
    print(f"{way}: {complete} of {ROUNDS} moves came to their end")
