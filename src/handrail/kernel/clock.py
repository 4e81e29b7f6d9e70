"""Time, passed in rather than looked up, and times as text. The real clock is in `outside`; tests pass a fixed one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple, Protocol

DAY_MS = 24 * 60 * 60 * 1000


class Clock(Protocol):
    """Milliseconds since the epoch."""

    def now_ms(self) -> int: ...


class Moment(NamedTuple):
    """One moment of a store: by the clock that times are written down in, and by the one that judges leases."""

    now_ms: int
    lease_ms: int


class FixedClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        self._now_ms += ms


def iso_time(ms: int) -> str:
    """A point in time as ISO 8601 in UTC, to the second, ending in Z."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def spoken_time(ms: int) -> str:
    """A span of time in words: `3 minutes`."""
    seconds = max(0, ms) // 1000
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= (2 * size if size == 86_400 else size):
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "a moment"
