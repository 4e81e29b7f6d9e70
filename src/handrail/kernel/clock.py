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


def spoken_time(ms: int) -> str:
    """A span of time in words: `3 minutes`."""
    seconds = max(0, ms) // 1000
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= (2 * size if size == 86_400 else size):
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "a moment"
