"""Time, as something that is handed in. The world's clock is in `outside`; tests hand in one that stands still."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch."""

    def now_ms(self) -> int: ...


class FixedClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms
