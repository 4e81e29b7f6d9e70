"""The feed without a browser: what is told, what is told again, and who is sent away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.crew.tokens import issue
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import StoreAway, StoreBusy, StoreRefused, StoreUnusable
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor, Event
from handrail.kernel.records import UnitOfWork
from handrail.protocol.http.reply import Reply
from handrail.store.memory import MemoryEngine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.surfaces.web import feed as module
from handrail.surfaces.web.feed import STREAMS, FeedListener, PageFeed, pump

DEADLINE_S = 10.0
ANN = Actor("ann", "test")


def told(unit: UnitOfWork, events: Sequence[Event]) -> Any:
    return {"position": events[-1].position, "kinds": [event.kind for event in events]}


class Ledger(Store):
    """A store that can be out of order for a while, or be another one."""

    busy = False
    gone: type[StoreRefused] | None = None
    position_is: int | None = None

    def position(self) -> int:
        if self.busy:
            raise StoreBusy("busy")
        self._check_there()
        return super().position() if self.position_is is None else self.position_is

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        self._check_there()
        if self.position_is is None:
            return super().wait(position, timeout_s, cancelled)
        return threading.Event().wait(timeout_s)

    def _check_there(self) -> None:
        if self.gone:
            raise self.gone("it was moved away")


class Studio:
    """A feed over a store in memory, where no other is given."""

    def __init__(
        self, news: Callable[[UnitOfWork, Sequence[Event]], Any] = told, engine: SqliteEngine | None = None
    ) -> None:
        self.store = Ledger(engine or MemoryEngine(), clock=FixedClock(1), ids=CountingIds())
        self.feed = PageFeed(self.store, news)
        self._count = 0

    def write(self, times: int = 1) -> int:
        """Something happens; the position afterwards."""
        for _ in range(times):
            self._count += 1
            self.store.run(ANN, lambda unit: issue(unit, f"name {self._count}", ("read",), "s"))
        return Store.position(self.store)

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S):
                await scene()

        try:
            asyncio.run(main())
        finally:
            self.feed.close()


class Visitor:
    """Somebody who reads one stream."""

    def __init__(self, studio: Studio, after: int | None = None, most: int = STREAMS) -> None:
        self._studio = studio
        self.listener = FeedListener(asyncio.get_running_loop())
        self.joined = studio.feed.join(self.listener, after, most)
        self.welcome = True
        self._sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._leaving: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.takes = asyncio.Event()
        self.takes.set()
        self.task: asyncio.Task[None] | None = None

    def reads(self) -> Visitor:
        async def is_welcome() -> bool:
            return self.welcome

        async def send(message: MutableMapping[str, Any]) -> None:
            await self.takes.wait()
            await self._sent.put(message)

        reply = Reply(self._leaving.get, send)
        self.task = asyncio.create_task(pump(self._studio.feed, self.listener, reply, (), is_welcome))
        return self

    async def event(self) -> tuple[str, Any]:
        """The next event: its kind and what it says; ("end", None) at the end."""
        while True:
            message = await self._sent.get()
            if message["type"] == "http.response.start":
                continue
            if not message.get("more_body"):
                return "end", None
            *before, last = (_taken_apart(part) for part in message["body"].decode().split("\n\n") if part)
            for other in before:
                self._sent.put_nowait({"type": "again", "more_body": True, "body": other[2]})
            return last[0], last[1]

    async def events(self, count: int) -> list[tuple[str, Any]]:
        return [await self.event() for _ in range(count)]

    def leave(self) -> None:
        self._leaving.put_nowait({"type": "http.disconnect"})

    async def left(self) -> None:
        assert self.task is not None
        await self.task


def _taken_apart(text: str) -> tuple[str, Any, bytes]:
    fields = dict(line.split(": ", 1) for line in text.split("\n"))
    data = msgspec.json.decode(fields["data"])
    if "id" in fields:
        assert int(fields["id"]) == data["position"]
    return fields.get("event", "message"), data, text.encode() + b"\n\n"


def test_what_is_written_is_told_to_everybody_in_order() -> None:
    studio = Studio()
    studio.write()

    async def scene() -> None:
        ann, ben = Visitor(studio).reads(), Visitor(studio).reads()
        for visitor in (ann, ben):
            assert await visitor.event() == ("hello", {"position": 1})
        for position in (2, 3):
            studio.write()
            for visitor in (ann, ben):
                assert await visitor.event() == ("message", {"position": position, "kinds": ["token.created"]})

    studio.play(scene)


def test_one_thread_follows_while_somebody_listens_and_ends_after_the_last() -> None:
    studio = Studio()

    async def scene() -> None:
        assert not studio.feed.is_following
        before = set(threading.enumerate())
        visitors = [Visitor(studio).reads() for _ in range(5)]
        thread = studio.feed._thread
        assert set(threading.enumerate()) - before == {thread}
        assert thread is not None
        for visitor in visitors:
            visitor.leave()
            await visitor.left()
        await asyncio.to_thread(thread.join, DEADLINE_S)
        assert not studio.feed.is_following
        after = studio.write()
        late = Visitor(studio, after - 1).reads()
        assert await late.event() == ("hello", {"position": after - 1})
        assert (await late.event())[1]["position"] == after  # a thread that begins again goes over what it missed

    studio.play(scene)


def test_who_comes_back_is_told_what_was_missed_and_only_that() -> None:
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        places = []
        for _ in range(3):
            studio.write()
            places.append((await ann.event())[1]["position"])
        again = Visitor(studio, places[0]).reads()
        assert await again.event() == ("hello", {"position": places[0]})
        assert [(await again.event())[1]["position"] for _ in range(2)] == places[1:]

    studio.play(scene)


def test_who_was_away_for_too_long_loads_everything_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RING", 2)
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        for _ in range(4):
            studio.write()
            await ann.event()
        assert not Visitor(studio, 2).listener.anew
        late = Visitor(studio, 1)
        assert late.listener.anew
        late.reads()
        assert {kind for kind, _ in await late.events(2)} == {"hello", "reset"}
        studio.write()
        assert (await late.event())[1]["position"] == 5  # and goes on from there

    studio.play(scene)


def test_the_ring_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RING_BYTES", 100)
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        for _ in range(10):
            studio.write()
            await ann.event()
        assert len(studio.feed._ring) <= 3
        assert studio.feed._ring_bytes <= 100

    studio.play(scene)


def test_the_first_reader_begins_where_its_page_was_made_unless_that_is_long_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CATCH_UP", 5)
    for after, anew in ((4, False), (3, True)):
        studio = Studio()
        studio.write(9)

        async def scene(studio: Studio = studio, after: int = after, anew: bool = anew) -> None:
            assert Visitor(studio, after).listener.anew == anew

        studio.play(scene)


def test_who_is_ahead_of_the_ledger_loads_everything_anew() -> None:
    studio = Studio()
    studio.write()

    async def scene() -> None:
        assert not Visitor(studio, 1).listener.anew
        ahead = Visitor(studio, 2)
        assert ahead.listener.anew
        assert ahead.listener.position == 1

    studio.play(scene)


def test_a_reader_that_falls_behind_the_ring_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RING", 2)
    studio = Studio()

    async def scene() -> None:
        quick, slow = Visitor(studio).reads(), Visitor(studio).reads()
        await quick.event()
        await slow.event()
        slow.takes.clear()
        for _ in range(5):
            studio.write()
            await quick.event()
        slow.takes.set()
        kinds = [(await slow.event())[0] for _ in range(2)]
        assert kinds == ["message", "end"]  # what was on its way, and nothing of what is lost

    studio.play(scene)


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    studio = Studio()

    async def scene() -> None:
        stuck = Visitor(studio).reads()
        await stuck.event()
        stuck.takes.clear()
        studio.write()
        await stuck.left()
        assert not studio.feed._listeners

    studio.play(scene)


def test_what_comes_in_quick_succession_is_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    studio = Studio()
    studio.write()

    async def scene() -> None:
        ann = Visitor(studio, 0)
        studio.write(20)
        ann.reads()
        await ann.event()
        seen: list[str] = []
        pieces = 0
        while len(seen) < 21:
            seen += (await ann.event())[1]["kinds"]
            pieces += 1
        assert pieces <= 3

    studio.play(scene)


def test_leaving_streams_end_and_none_begins() -> None:
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        studio.feed.drain()
        assert (await ann.event())[0] == "end"
        await ann.left()
        assert not Visitor(studio).joined

    studio.play(scene)


def test_who_is_not_welcome_any_more_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.01)
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        ann.welcome = False
        assert (await ann.event())[0] == "end"

    studio.play(scene)


def test_nobody_hears_anything_before_it_is_known_that_they_may() -> None:
    studio = Studio()
    studio.write()

    async def scene() -> None:
        ann = Visitor(studio, 0)
        ann.welcome = False
        ann.reads()
        assert [kind for kind, _ in await ann.events(2)] == ["hello", "end"]

    studio.play(scene)


def test_a_silent_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.01)
    monkeypatch.setattr(module, "BEAT_S", 0.0)
    studio = Studio()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        assert (await ann._sent.get())["type"] == "http.response.start"
        assert b"retry: 1000\n" in (await ann._sent.get())["body"]
        assert (await ann._sent.get())["body"] == b"event: beat\ndata: {}\n\n"

    studio.play(scene)


def test_there_is_an_end_to_streams() -> None:
    studio = Studio()

    async def scene() -> None:
        first, second = Visitor(studio), Visitor(studio)
        assert first.joined
        assert second.joined
        assert not Visitor(studio, most=2).joined
        assert Visitor(studio, most=3).joined, "who is signed in finds room where a token does not"
        studio.feed.leave(first.listener)
        studio.feed.leave(second.listener)
        assert Visitor(studio, most=2).joined

    studio.play(scene)


def test_a_store_that_cannot_be_asked_leaves_no_stream_behind() -> None:
    studio = Studio()
    studio.store.busy = True

    async def scene() -> None:
        with pytest.raises(StoreBusy):
            Visitor(studio)
        assert not studio.feed._listeners

    studio.play(scene)


def test_after_a_mistake_of_ours_visitors_load_everything_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    wrong = threading.Event()
    wrong.set()

    def stumbles(unit: UnitOfWork, events: Sequence[Event]) -> Any:
        if wrong.is_set():
            wrong.clear()
            raise ZeroDivisionError
        return told(unit, events)

    studio = Studio(stumbles)

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        studio.write()
        assert (await ann.event())[0] == "end"
        again = Visitor(studio, 0)
        assert again.listener.anew
        again.reads()
        await again.events(2)
        studio.write()
        assert (await again.event())[0] == "message"

    studio.play(scene)
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_when_another_ledger_takes_the_place_of_this_one_everybody_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    studio = Studio()
    studio.write(3)

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        studio.store.position_is = 1
        assert (await ann.event())[0] == "end"
        assert Visitor(studio, 3).listener.anew

    studio.play(scene)


@pytest.mark.parametrize("kind", [StoreUnusable, StoreAway])
def test_a_store_that_is_gone_ends_every_stream_and_whoever_comes_back_is_told(
    kind: type[StoreRefused], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    studio = Studio()
    studio.write(3)

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        studio.store.gone = kind
        assert (await ann.event())[0] == "end"
        with pytest.raises(kind):
            Visitor(studio, 3)
        studio.store.gone = None
        assert not Visitor(studio, 3).listener.anew, "who has seen all of it goes on"
        assert Visitor(studio, 2).listener.anew

    studio.play(scene)


def test_a_store_that_has_moved_ends_every_stream_and_lets_nobody_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    engine = SqliteEngine(tmp_path / "a.db", version="1")
    studio = Studio(engine=engine)
    studio.write()

    async def scene() -> None:
        ann = Visitor(studio).reads()
        await ann.event()
        with engine.still() as still:
            still.mark("elsewhere")
        assert (await ann.event())[0] == "end"
        with pytest.raises(StoreUnusable, match="moved to elsewhere"):
            Visitor(studio, 1)

    studio.play(scene)
    engine.close()
