"""The world's own time and chance, for the store. Tests hand in others."""

from __future__ import annotations

import os
import time

from handrail.kernel.clock import Clock
from handrail.kernel.ids import id_text


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class RandomIds:
    """Ids that no other process makes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new(self, prefix: str) -> str:
        return id_text(prefix, self._clock.now_ms(), int.from_bytes(os.urandom(10)))
