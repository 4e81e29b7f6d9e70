"""Resource updates: one thread per server that follows the ledger while somebody is subscribed to a resource.

It sees what every process writes, because all of them write to the ledger. A function says which resources an event
touches; the protocol decides who is notified.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from handrail.kernel.errors import Refusal
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Event
from handrail.operation import Ledger
from handrail.protocol.subscriptions import Subscribers

if TYPE_CHECKING:
    import traceback
else:
    traceback = late_module("traceback")

NAMED_BY = ("message", "resources")
"""The toolsets that have resources."""
LOOK_S = 5.0
"""How long it waits for news before it checks whether anybody is still subscribed."""
AGAIN_S = 1.0
"""The pause after the store could not be read."""


class Follower:
    """Follows the ledger from the first subscription to the end of the last."""

    def __init__(
        self,
        ledger: Ledger,
        feed: Callable[[int], Sequence[Event]],
        touched: Callable[[Event], Iterable[str]],
    ) -> None:
        self._ledger = ledger
        self._feed = feed
        """The events after a position, as many as are read at once."""
        self._touched = touched
        """The resources that an event changes."""
        self._subscribers = Subscribers()
        self._lock = threading.Lock()
        self._opening = 0
        self._position = 0
        self._thread: threading.Thread | None = None

    def tells(self, subscribers: Subscribers) -> None:
        """Sets who is notified. Called once, before anybody subscribes."""
        self._subscribers = subscribers

    @property
    def is_following(self) -> bool:
        return self._thread is not None

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Held while a subscription is being made: what is written from here on will be announced."""
        with self._lock:
            if self._thread is None:
                self._position = self._ledger.position()
                self._thread = threading.Thread(target=self._follow, name="handrail-follower", daemon=True)
                self._thread.start()
            self._opening += 1
        try:
            yield
        finally:
            with self._lock:
                self._opening -= 1

    def _follow(self) -> None:
        while self._goes_on():
            try:
                self._ledger.wait(self._position, LOOK_S, lambda: not self._subscribers.is_watched())
                self._tell()
            except Refusal:
                threading.Event().wait(AGAIN_S)
            except Exception as bug:  # noqa: BLE001 - one event that cannot be told ends no subscription
                self._stumble(bug)

    def _stumble(self, bug: Exception) -> None:
        """Says what broke, and goes on after it: the same event would break again."""
        traceback.print_exception(bug, file=sys.stderr)
        with contextlib.suppress(Refusal):
            self._position = self._ledger.position()
        threading.Event().wait(AGAIN_S)

    def _goes_on(self) -> bool:
        with self._lock:
            if not self._opening and not self._subscribers.is_watched():
                self._thread = None
                return False
            return True

    def _tell(self) -> None:
        events = self._feed(self._position)
        for uri in dict.fromkeys(uri for event in events for uri in self._touched(event)):
            self._subscribers.resource_updated(uri)
        if events:
            self._position = events[-1].position
