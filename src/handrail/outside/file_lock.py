"""A lock on a file, between processes: waits no longer than allowed, and is released when its last holder dies. On a
system without such locks, everybody holds it."""

from __future__ import annotations

import os
import threading
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None


class FileLock:
    """The kernel's queue has no time limit, so a thread waits in it, and gives the lock back if it comes too late."""

    def __init__(self, path: str) -> None:
        """Creates the file if there is none; a symbolic link is not followed."""
        no_link = getattr(os, "O_NOFOLLOW", 0)  # not every system has it
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | no_link, 0o600)
        self._state = threading.Lock()
        self._waiting = self._left = False

    def taken_within(self, seconds: float) -> bool:
        if fcntl is None:
            return True
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if seconds <= 0:
                return False
        else:
            return True
        self._waiting = True
        thread = threading.Thread(target=self._wait_for_lock, name="handrail-file-lock", daemon=True)
        thread.start()
        thread.join(seconds)
        return not self._waiting

    def _wait_for_lock(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._state:
            self._waiting = False
            if self._left:
                os.close(self.descriptor)

    def leave(self) -> None:
        with self._state:
            if self._waiting:
                self._left = True
            else:
                os.close(self.descriptor)
