"""A started server and what it costs: CPU time and memory. No transport, no contestant, no table.

CPU comes from the kernel's clock of the process (nanoseconds, all threads, living or ended), not from /proc/PID/stat,
which counts in steps of 10 ms. Memory comes from smaps_rollup, which is exact where statm is an estimate.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from bench.started import Stuck

DEADLINE_MS = 60_000
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Launch(msgspec.Struct, frozen=True):
    """All that a process is started from."""

    command: Sequence[str]
    cwd: Path
    env: dict[str, str]
    log: Path
    """Where its standard error goes."""


class Memory(msgspec.Struct, frozen=True):
    """Megabytes (10^6 bytes): all pages that are resident, and the share of them that is this process's own doing."""

    rss_mb: float
    pss_mb: float


class ProcessMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """What one server took, once: to start, for its first call, for each call of one client."""

    start_cpu_ms: float
    start_wall_ms: float
    start_rss_mb: float
    start_pss_mb: float
    first_call_cpu_ms: float
    call_cpu_us: float
    call_p50_us: float
    end_rss_mb: float


class ServerProcess(ABC):
    """One server. How it is spoken to and told to end is its transport's matter."""

    def __init__(self, launch: Launch, *, stdin: int, stdout: int) -> None:
        self._log = launch.log
        self.started_ns = time.perf_counter_ns()
        with launch.log.open("wb") as errors:
            self._process = subprocess.Popen(
                launch.command, cwd=launch.cwd, env=launch.env, stdin=stdin, stdout=stdout, stderr=errors
            )

    @property
    def pipes(self) -> list[IO[bytes]]:
        return [pipe for pipe in (self._process.stdin, self._process.stdout) if pipe is not None]

    def last_words(self) -> str:
        code = self._process.poll()
        ended = f", exit code {code}" if code is not None else ""
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{ended}: {lines[-1]}" if lines else ended

    # -- measuring --------------------------------------------------------------------------------------------------

    def cpu_ns(self) -> int:
        """CPU time so far, of the server and of every process it started."""
        return sum(_cpu_ns(pid) for pid in self._family())

    def memory(self) -> Memory:
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self._family()]
        return Memory(
            rss_mb=sum(_field(rollup, "Rss:") for rollup in rollups) * 1024 / 1e6,
            pss_mb=sum(_field(rollup, "Pss:") for rollup in rollups) * 1024 / 1e6,
        )

    def _family(self) -> list[int]:
        family = [self._process.pid]
        for pid in family:  # grows while it is walked: children of children
            for task in Path(f"/proc/{pid}/task").iterdir():
                family.extend(int(child) for child in (task / "children").read_text().split())
        return family

    # -- ending -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _tell_to_end(self) -> None:
        """Asks the server to end, the way its clients would."""

    def finish(self) -> None:
        """Ends the server and holds the clock we read against the account the kernel gives of its whole life."""
        read_ns = self.cpu_ns()
        self._tell_to_end()
        life_ns = self._reap()
        if life_ns < read_ns * 0.98:
            raise Stuck(
                f"the CPU clock said {read_ns / 1e6:.0f} ms, the account of the ended process {life_ns / 1e6:.0f} ms"
            )

    def _reap(self) -> int:
        """Waits for the end. The CPU time of the whole life, from the kernel's accounts."""
        end = select.poll()
        handle = os.pidfd_open(self._process.pid)
        end.register(handle, select.POLLIN)
        if not end.poll(10_000):
            self._process.kill()
        os.close(handle)
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0  # reaped here; Popen must not look for it again
        return int((usage.ru_utime + usage.ru_stime) * 1e9)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        for pipe in self.pipes:
            pipe.close()


def _cpu_ns(pid: int) -> int:
    cpu_clock = (~pid << 3) | 2  # what clock_getcpuclockid(3) makes of a process id
    reaped_children = sum(int(ticks) for ticks in _stat(pid)[13:15]) * _TICK_NS
    return time.clock_gettime_ns(cpu_clock) + reaped_children


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; the second, the name, may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _field(rollup: str, name: str) -> int:
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(name))
