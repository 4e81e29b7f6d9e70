"""The gate writers queue at: an exclusive lock on a small file beside the database. Fair, and opened by the kernel
when its holder dies. It holds no data; where the system has no such lock, SQLite's own waiting has to do."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None


class Gate:
    """One process's handle on the gate. Holding it again on the same thread is allowed."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600) if fcntl is not None else -1
        self._depth = 0
        self._mine = threading.RLock()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self._mine:
            if self._depth == 0 and fcntl is not None:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and fcntl is not None:
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
