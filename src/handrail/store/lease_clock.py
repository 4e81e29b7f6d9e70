"""The clock that leases in a file are judged by: the time since this machine started, which nobody can set.

The machine's own clock may be set at any time: by a person, by its time service, by a virtual machine that wakes up. A
live claim must not end because of that, nor an old one last longer. So a store holds an anchor for the machine's last
start: from which moment of the lease clock the time since the start is counted. All processes of a start share both.
After another start the lease clock goes on from the machine's clock, and never from before the last renewal.

Engine-free: what is kept where is up to the engine.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from handrail.kernel.clock import Moment, spoken_time

ANCHOR_KEY = "lease_clock"
"""Where an anchor is kept among a store's own values."""
OFF_MS = 10_000
"""From this difference on a clock is called wrong: well above what a time service leaves, well below a lease."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIME_NAMESPACE = Path("/proc/self/ns/time")


class MachineTime(NamedTuple):
    """One look at both clocks of a machine."""

    boot: str
    """Which start of which machine; empty if the system does not tell."""
    since_ms: int
    """The time since that start, sleep included."""
    wall_ms: int
    """What the machine's clock says, in milliseconds since the epoch."""


class Anchor(NamedTuple):
    """What is added to the time since the start: for the lease clock, and for the machine's clock as it was then."""

    boot: str
    lease_ms: int
    wall_ms: int

    @property
    def text(self) -> str:
        return f"{self.boot} {self.lease_ms} {self.wall_ms}"


def machine_time() -> MachineTime:
    wall_ms = time.time_ns() // 1_000_000
    try:
        return MachineTime(_this_start(), time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000, wall_ms)
    except (OSError, ValueError, AttributeError):  # another system, or no file can be opened just now
        return MachineTime("", 0, wall_ms)


@functools.cache
def _this_start() -> str:
    """The start of the machine, and within which namespace its time is counted."""
    boot = _BOOT_ID.read_bytes().decode().strip()
    return f"{boot}/{_TIME_NAMESPACE.stat().st_ino if _TIME_NAMESPACE.exists() else 0}"


def anchor_of(text: str | None) -> Anchor | None:
    """The anchor that a store holds, if it can be read."""
    parts = (text or "").split(" ")
    try:
        return Anchor(parts[0], int(parts[1]), int(parts[2])) if len(parts) == 3 else None
    except ValueError:
        return None


def new_anchor(at: MachineTime, last_renewed_ms: int) -> Anchor:
    """The anchor for a start of the machine that has none yet."""
    return Anchor(at.boot, max(at.wall_ms, last_renewed_ms) - at.since_ms, at.wall_ms - at.since_ms)


def how_far_set(anchor: Anchor | None, at: MachineTime) -> int:
    """By how much the machine's clock was set since the anchor was kept: ahead is positive."""
    if anchor is None or anchor.boot != at.boot:
        return 0
    return at.wall_ms - at.since_ms - anchor.wall_ms


def set_remark(by_ms: int) -> str | None:
    """What to say about a clock that was set; None if it is not worth it."""
    if abs(by_ms) < OFF_MS:
        return None
    way = "ahead" if by_ms > 0 else "back"
    return f"this machine's clock was set {spoken_time(abs(by_ms))} {way}; claims go by the time since it started"


def off_remark(ahead_ms: int) -> str | None:
    """What to say about a clock that differs from the database's."""
    if abs(ahead_ms) < OFF_MS:
        return None
    way = "ahead of" if ahead_ms > 0 else "behind"
    return f"this machine's clock is {spoken_time(abs(ahead_ms))} {way} the database's, by which claims and times go"


class LeaseClock:
    """A file's lease clock, as one engine sees it."""

    def __init__(self, read: Callable[[], MachineTime] = machine_time) -> None:
        self.read = read
        read()  # whatever it has to open, it opens together with the store
        self.remark: str | None = None
        """What the last look found wrong with the machine's clock."""
        self.is_due = False
        """Whether the store needs an anchor: the next writer keeps one."""

    def moment(self, at: MachineTime, kept: str | None, last_renewed_ms: Callable[[], int]) -> Moment:
        """The moment `at`, which was taken before the store was read, by the anchor that the store holds."""
        anchor = anchor_of(kept)
        if not at.boot:
            return Moment(at.wall_ms, at.wall_ms)
        if anchor is None or anchor.boot != at.boot:
            self.is_due = True
            anchor = new_anchor(at, last_renewed_ms())
        self.remark = set_remark(how_far_set(anchor, at))
        return Moment(at.wall_ms, anchor.lease_ms + at.since_ms)
