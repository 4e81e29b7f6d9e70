"""Real time and randomness, for the store. Tests pass in others."""

from __future__ import annotations

import os
import threading
import time

from handrail.kernel.clock import Clock
from handrail.kernel.ids import id_text


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class RandomIds:
    """Ids that no other process makes. Those of one process sort in the order they were made: within a millisecond they
    count up from a random start."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ms = -1
        self._chance = 0

    def new(self, prefix: str) -> str:
        with self._lock:
            ms = self._clock.now_ms()
            if ms > self._ms:
                # One bit less than there is room for, so that counting up never overflows.
                self._ms, self._chance = ms, int.from_bytes(os.urandom(10)) >> 1
            else:  # the same millisecond, or the clock was set back
                self._chance += 1 + int.from_bytes(os.urandom(2))
            return id_text(prefix, self._ms, self._chance)
