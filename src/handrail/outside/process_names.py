"""Names for connections, from which another process can tell whether the process behind one is still running. No
process is started or ended here."""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path

_NUMBERS = itertools.count(1)
_GUEST = "guest-"
_ENDED = (b"Z", b"X", b"x")
"""States of a process that has ended and whose parent has not collected it yet."""


def new_session(*, guest: bool = False) -> str:
    """A name for a connection of this process: host, process, its start, and a number. A guest is a client that this
    process serves and that may leave silently, so the running process says nothing about it."""
    pid = os.getpid()
    return f"{_host()}/{pid}/{_started(pid) or 0}/{_GUEST if guest else ''}{next(_NUMBERS)}"


def is_alive(session: str) -> bool | None:
    """Whether the process behind a session is still running; None if that is unknown, as on another machine."""
    host, pid, started, number = [*session.rsplit("/", 3), "", "", ""][:4]
    if host != _host() or not (pid.isascii() and pid.isdigit() and len(pid) < 10):
        return None
    runs = _runs(int(pid), started)
    return None if runs and number.startswith(_GUEST) else runs


@functools.cache
def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _runs(pid: int, started: str) -> bool | None:
    there = _started(pid)
    if there is not None and started != "0":
        return str(there) == started
    return _answers(pid)


def _started(pid: int) -> int | None:
    """When a process began, in the kernel's own count: another process with the same number began at another time. -1
    for one that has ended."""
    try:
        # The name in parentheses may contain anything; what follows the last one is a letter, then numbers.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19]) if fields[0] not in _ENDED else -1
    except (OSError, ValueError, IndexError):
        return None


def _answers(pid: int) -> bool | None:
    """For systems that do not show that count, or hide it."""
    if os.name != "posix":  # on Windows, signal 0 would not merely ask
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return True
