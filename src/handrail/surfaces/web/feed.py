"""News as it happens: one thread follows the ledger for all visitors; a visitor's stream needs none.

The thread turns whatever was written since last time, by any process, into one news item and appends it to a ring. A
stream sends what is on the ring after its own position and keeps nothing itself: a reader that falls behind the ring is
disconnected, and told to reload everything when it comes back. A function decides what news contains.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from handrail.kernel.errors import Refusal, StoreAway, StoreUnusable
from handrail.kernel.ledger import Actor, Event
from handrail.kernel.records import UnitOfWork
from handrail.operation import Ledger
from handrail.protocol.http.reply import Headers, Reply
from handrail.surfaces.web.route import CHANNEL

RING = 512
RING_BYTES = 8 * 1024 * 1024
"""How much news is kept for readers that are behind or come back."""
STREAMS, GUEST_STREAMS = 32, 16
"""Streams at once; a token's stream is only opened while there are fewer, so that a person always finds room."""
AT_ONCE = 500
"""How many events make up one news item at most."""
CATCH_UP = 2_000
"""How many positions a restarted thread goes back over, so that a reader who was away briefly misses nothing."""
PACE_S = 0.05
"""The pause between two news items: writes in quick succession are reported together."""
LOOK_S = 5.0
"""How long the thread waits for news before it checks whether the store is still the same."""
AGAIN_S = 1.0
"""The pause after the store could not be read."""
TICK_S = 1.0
"""How often a stream checks whether its visitor is still signed in."""
BEAT_S = 5.0
"""How often a stream without news says so: a page that hears nothing knows that it is disconnected."""
PATIENCE_S = 10.0
"""How long a reader may take to accept what it was sent."""
RETRY_MS = 1000

FOLLOWING = Actor("handrail", CHANNEL)
News = Callable[[UnitOfWork, Sequence[Event]], Any]
"""What a few events mean for the page, as something `msgspec.json` can encode."""


class FeedListener:
    """One stream: its position, and what wakes it. On the event loop only, except for what `Feed` sets."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.wake = asyncio.Event()
        self.position = 0
        self.generation = 0
        self.anew = False
        """True if it must reload everything: what it missed is unknown."""

    def wake_soon(self) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the stream with it
            self._loop.call_soon_threadsafe(self.wake.set)


class PageFeed:
    """The ring, the thread that fills it, and its listeners."""

    def __init__(self, ledger: Ledger, news: News) -> None:
        self._ledger = ledger
        self._news = news
        self._lock = threading.Lock()
        self._listeners: set[FeedListener] = set()
        self._ring: deque[tuple[int, bytes]] = deque()
        self._ring_bytes = 0
        self._floor = 0
        """The ring contains everything after this position."""
        self._position = 0
        """How much of the ledger has been reported."""
        self._generation = 0
        """Counts how often the ring was restarted because the ledger was replaced."""
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self.draining = False

    @property
    def is_following(self) -> bool:
        return self._thread is not None

    # -- listeners --------------------------------------------------------------------------------------------------

    def join(self, listener: FeedListener, after: int | None, most: int = STREAMS) -> bool:
        """Adds a stream that has seen everything up to `after`, or that starts now; False if there are `most` already.
        Uses the store: not for the event loop. Raises Refusal."""
        with self._lock:
            if self.draining or len(self._listeners) >= most:
                return False
            self._listeners.add(listener)
        try:
            newest = self._ledger.position()
            self._ledger.wait(newest, 0.0, lambda: False)  # raises if no news can ever come: the store may have moved
        except BaseException:
            self.leave(listener)
            raise
        with self._lock:
            self._begin(newest, after)
            newest = max(newest, self._position)
            listener.anew = after is not None and not self._floor <= after <= newest
            listener.position = newest if after is None or listener.anew else after
            listener.generation = self._generation
        return True

    def leave(self, listener: FeedListener) -> None:
        with self._lock:
            self._listeners.discard(listener)

    def after(self, listener: FeedListener) -> list[tuple[int, bytes]] | None:
        """What the listener has not been sent yet; None if some of it is no longer kept."""
        with self._lock:
            if listener.generation != self._generation or listener.position < self._floor:
                return None
            return [entry for entry in self._ring if entry[0] > listener.position]

    def drain(self) -> None:
        """Ends every stream soon, and admits no new ones."""
        self.draining = True
        for listener in tuple(self._listeners):
            listener.wake_soon()

    def close(self) -> None:
        self.draining = True
        self._ended.set()
        thread = self._thread
        if thread is not None:
            thread.join(AGAIN_S)

    # -- the thread -------------------------------------------------------------------------------------------------

    def _begin(self, newest: int, after: int | None) -> None:
        """Starts the thread if none is running: from where the last one ended or its first reader is or, if that is too
        long ago, from the newest event. With the lock."""
        if self._thread is not None:
            return
        is_first = not self._generation
        if is_first or not self._position <= newest <= self._position + CATCH_UP:
            self._begin_anew(after if after is not None and after <= newest <= after + CATCH_UP else newest)
        self._thread = threading.Thread(target=self._follow, name="handrail-feed", daemon=True)
        self._thread.start()

    def _begin_anew(self, position: int) -> None:
        self._ring.clear()
        self._ring_bytes = 0
        self._floor = self._position = position
        self._generation += 1

    def _follow(self) -> None:
        while self._goes_on():
            try:
                if self._ledger.wait(self._position, LOOK_S, self._is_idle):
                    self._publish_news()
                    self._ended.wait(PACE_S)
                elif not self._is_idle():
                    self._check_same_ledger()
            except (StoreUnusable, StoreAway):  # such as a file that was moved away; the next request reports it
                self._cut_off(self._position)
                self._ended.wait(AGAIN_S)
            except Refusal:
                self._ended.wait(AGAIN_S)
            except Exception as bug:  # noqa: BLE001 - visitors reload everything and carry on
                self._stumble(bug)

    def _is_idle(self) -> bool:
        return not self._listeners or self._ended.is_set()

    def _goes_on(self) -> bool:
        with self._lock:
            if self._is_idle():
                self._thread = None
                return False
            return True

    def _publish_news(self) -> None:
        def look(unit: UnitOfWork) -> tuple[int, bytes] | None:
            events = unit.feed(self._position, AT_ONCE)
            return (events[-1].position, msgspec.json.encode(self._news(unit, events))) if events else None

        told = self._ledger.run(FOLLOWING, look)
        if told is None:
            return
        with self._lock:
            self._position = told[0]
            self._ring.append(told)
            self._ring_bytes += len(told[1])
            while len(self._ring) > RING or (self._ring_bytes > RING_BYTES and len(self._ring) > 1):
                self._floor, data = self._ring.popleft()
                self._ring_bytes -= len(data)
        self._wake_all()

    def _check_same_ledger(self) -> None:
        """Nothing is new: checks that it is still the same ledger, since a backup may have been restored over it."""
        newest = self._ledger.position()
        if newest < self._position:
            self._cut_off(newest)

    def _stumble(self, bug: Exception) -> None:
        traceback.print_exception(bug, file=sys.stderr)
        with contextlib.suppress(Refusal):
            self._cut_off(self._ledger.position())
        self._ended.wait(AGAIN_S)

    def _cut_off(self, position: int) -> None:
        """Ends every stream; returning readers who have not seen all up to `position` reload everything."""
        with self._lock:
            self._begin_anew(position)
        self._wake_all()

    def _wake_all(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener.wake_soon()


# -- one stream ------------------------------------------------------------------------------------------------------


async def pump(
    feed: PageFeed, listener: FeedListener, reply: Reply, headers: Headers, is_welcome: Callable[[], Awaitable[bool]]
) -> None:
    """Sends news to one visitor who has joined, until they leave, are no longer welcome or too slow, or the server
    stops. Removes the listener afterwards."""
    loop = asyncio.get_running_loop()
    try:
        await reply.start_events(headers)
        reply.watch(listener.wake.set)
        await _write(reply, _greeting(listener))
        said_at = loop.time()
        while not (reply.gone or feed.draining):
            listener.wake.clear()
            if not await is_welcome():
                break
            news = feed.after(listener)
            if news is None:
                break  # told to reload everything on coming back
            for position, data in news:
                await _write(reply, b"id: %d\ndata: %b\n\n" % (position, data))
                listener.position = position
                said_at = loop.time()
            if loop.time() - said_at >= BEAT_S:
                await _write(reply, b"event: beat\ndata: {}\n\n")
                said_at = loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await listener.wake.wait()
        await _end(reply)
    except TimeoutError:
        reply.abandon()
    finally:
        feed.leave(listener)


def _greeting(listener: FeedListener) -> bytes:
    """How a stream begins: from which position, and whether everything must be reloaded first."""
    position = listener.position
    hello = b'retry: %d\nid: %d\nevent: hello\ndata: {"position":%d}\n\n' % (RETRY_MS, position, position)
    if not listener.anew:
        return hello
    return hello + b'id: %d\nevent: reset\ndata: {"position":%d}\n\n' % (position, position)


async def _write(reply: Reply, data: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await reply.write(data)


async def _end(reply: Reply) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await reply.end()
