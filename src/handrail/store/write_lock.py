"""The gate that writers queue at: an exclusive lock on a small file beside the database. It is fair, and the kernel
opens it when its holder dies. It holds no data; on a system without such locks, SQLite's own waiting has to do.

A frozen holder would keep everybody waiting forever, and the kernel's queue has no time limit. So a caller that finds
the gate shut sends a thread into that queue and waits for the thread, as long as the limit allows. The thread keeps its
place for the next caller, and gives the gate back when nobody wants it any more.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.kernel.errors import StoreAway, StoreBusy, StoreFull
from handrail.store.places import open_hint

fcntl: Any
try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None

_LOCKS = Path("/proc/locks")
LONGEST_SLEEP_S = 0.1
"""The longest wait without checking the state. A signal that arrives just before a thread falls asleep does not wake
it, so a sleep must never be as long as the limit."""


class WriteLock:
    """One process's handle on the gate. Reentrant, but not for two threads at once: the engine lets one write at a
    time."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self._path = path
        self._limit_s = limit_s
        self._descriptor = -1
        self._line = _Line(self)
        self.depth = 0
        """How many times it is held."""

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the gate. Raises StoreBusy if another process does not release it within the limit."""
        depth = self.depth
        try:
            self.enter()
            yield
        finally:
            self.leave_to(depth)

    def enter(self) -> None:
        """Like `held`, for callers in a hurry that make sure to leave it themselves."""
        self.depth += 1
        if self.depth > 1 or fcntl is None:
            return
        try:
            self._take()
            while not os.fstat(self._descriptor).st_nlink:  # the file was removed: others will meet at a new one
                descriptor, self._descriptor = self._descriptor, -1
                os.close(descriptor)
                self._take()
        except BaseException as error:  # refused, or interrupted at any point
            self.depth = 0
            self._line.leave()
            if isinstance(error, OSError):
                raise self._unusable(error) from error
            raise

    def leave_to(self, depth: int) -> None:
        """Holds it only `depth` times from now on. An interrupt may come anywhere: leaving twice does no harm."""
        if depth == 0 < self.depth and fcntl is not None:
            self.unlock()
        self.depth = min(depth, self.depth)

    def close(self) -> None:
        self._line.close()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """A store that nobody closed leaves no file open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _open(self) -> None:
        try:
            no_link = getattr(os, "O_NOFOLLOW", 0)  # a link may have come with the repository, and lead anywhere
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | no_link, 0o600)
        except OSError as error:
            kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreAway
            raise kind(f"{self._path} cannot be opened: {error.strerror}", hint=open_hint(error.errno)) from None

    def _take(self) -> None:
        if self._descriptor < 0:  # only writers open it: reading leaves no traces
            self._open()
        if not (self._line.is_free and self._lock_at_once()) and not self._line.wait(self._limit_s):
            raise self._busy()

    def _lock_at_once(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self) -> None:
        """Blocks for as long as it takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def unlock(self) -> None:
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _unusable(self, error: OSError) -> StoreAway:
        hint = "check the disk it is on, or choose a file on another one with --db; nothing was written"
        return StoreAway(f"{self._path} cannot be locked: {error.strerror}", hint=hint)

    def _busy(self) -> StoreBusy:
        holder = _holder(self._descriptor)
        who = "another process" if holder is None else f"process {holder}"
        what = "that process" if holder is None else f"it (kill {holder} or kill -CONT {holder})"
        return StoreBusy(
            f"{who} has kept others from writing for {self._limit_s:g} s",
            hint=f"end or resume {what}, then call again; nothing was written",
            holder=holder,
        )


class _Line:
    """The thread in the kernel's queue. It uses the gate's own descriptor, so nobody else may lock that while the
    thread is waiting."""

    def __init__(self, gate: WriteLock) -> None:
        self._gate = gate
        self._thread: threading.Thread | None = None
        self._state = threading.Lock()
        self._sent = _shut_lock()
        self._arrived = _shut_lock()
        self._wanted = False
        self._closed = False
        self._error: OSError | None = None
        self.is_free = True
        """No thread is waiting."""

    def wait(self, limit_s: float) -> bool:
        """True once the gate is ours; False if the time was not enough."""
        with self._state:
            self._wanted = True  # also revives a wait that an earlier caller gave up
            if self._thread is None:
                self._thread = threading.Thread(target=self._wait_in_line, name="handrail-gate", daemon=True)
            if not self._thread.is_alive():
                self._thread.start()
            self.is_free = False
            if self._sent.locked():
                self._sent.release()
        while not self._arrived.acquire(timeout=min(LONGEST_SLEEP_S, limit_s)):
            limit_s -= LONGEST_SLEEP_S
            if limit_s <= 0:
                return False
        if self._error is not None:
            raise self._error
        return True

    def leave(self) -> None:
        """Gives up the gate, whatever became of the wait: it may be ours, or the thread may still be queued."""
        with self._state:
            self._wanted = False
            self._arrived.acquire(blocking=False)
            if self.is_free:
                self._gate.unlock()

    def _is_sent(self) -> bool:
        """Waits until somebody wants the gate; False once nobody will any more."""
        while True:
            self._sent.acquire()
            with self._state:
                if self._closed or not self.is_free:  # otherwise a spurious wake-up
                    return not self._closed

    def _wait_in_line(self) -> None:
        while self._is_sent():
            error: OSError | None = None
            try:
                self._gate.lock()
            except OSError as failure:
                error = failure
            with self._state:
                if self._closed:  # the descriptor is gone, and the lock with it
                    return
                if error is None and not self._wanted:
                    self._gate.unlock()
                self._error, self.is_free = error, True
                if self._wanted:
                    self._arrived.release()

    def close(self) -> None:
        with self._state:
            self._closed = True
            if self._sent.locked():
                self._sent.release()


def _shut_lock() -> threading.Lock:
    """A lock that one thread waits at until another opens it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def _holder(descriptor: int) -> int | None:
    """The process that has the lock, if the system tells."""
    try:
        inode = str(os.fstat(descriptor).st_ino)
        for line in _LOCKS.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                return int(words[4])
    except (OSError, ValueError):
        return None
    return None
