"""A started server and what it costs: CPU time, memory, and the time its answers take. No contestant, no table.

CPU comes from the kernel's clock of the process (nanoseconds, all threads, living or ended), not from /proc/PID/stat,
which counts in steps of 10 ms. Memory comes from smaps_rollup, which is exact where statm is an estimate.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

DEADLINE_MS = 60_000
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Memory(msgspec.Struct, frozen=True):
    """Megabytes (10^6 bytes): all pages that are resident, and the share of them that is this process's own doing."""

    rss_mb: float
    pss_mb: float


class _Head(msgspec.Struct):
    id: int | None = None


_head = msgspec.json.Decoder(_Head).decode


class Stuck(Exception):  # noqa: N818 - a fact about a server
    """The server ended or did not answer in time."""


class ServerProcess:
    """One server on a pair of pipes, spoken to in raw lines."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: dict[str, str], log: Path) -> None:
        self._log = log
        self.started_ns = time.perf_counter_ns()
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN | select.POLLHUP)
        self._pending = b""

    # -- talking ----------------------------------------------------------------------------------------------------

    def ask(self, request_id: int, line: bytes) -> bytes:
        """Sends one request and waits for its reply; what the server says in between is passed over."""
        os.write(self._in.fileno(), line)
        while _head(reply := self._line()).id != request_id:
            continue
        return reply

    def tell(self, line: bytes) -> None:
        os.write(self._in.fileno(), line)

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            if not self._poll.poll(DEADLINE_MS):
                raise Stuck(f"no answer within {DEADLINE_MS // 1000} s{self._last_words()}")
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise Stuck(f"the server ended{self._last_words()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

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

    def finish(self) -> int:
        """Ends the server by ending its input. Returns the CPU time of its whole life, from the kernel's accounts."""
        self._in.close()
        killer = select.poll()
        handle = os.pidfd_open(self._process.pid)
        killer.register(handle, select.POLLIN)
        if not killer.poll(10_000):
            self._process.kill()
        os.close(handle)
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0  # reaped above; Popen must not look for it again
        self._process.stdout.close()
        return int((usage.ru_utime + usage.ru_stime) * 1e9)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
            self._in.close()
            self._process.stdout.close()


def _cpu_ns(pid: int) -> int:
    cpu_clock = (~pid << 3) | 2  # what clock_getcpuclockid(3) makes of a process id
    reaped_children = sum(int(ticks) for ticks in _stat(pid)[13:15]) * _TICK_NS
    return time.clock_gettime_ns(cpu_clock) + reaped_children


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on; the second, the name, may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _field(rollup: str, name: str) -> int:
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith(name))
