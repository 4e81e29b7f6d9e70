"""A command on a real terminal: its exit code, and every byte that it prints there."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

DEADLINE_S = 60


def printed_on_a_terminal(
    words: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None, typed: bytes = b""
) -> tuple[int, bytes]:
    """What a process prints that has a terminal for input, output and errors. `typed` waits there for it."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=cwd) as process:
        os.close(theirs)
        found = b""
        try:
            while chunk := os.read(ours, 65536):
                found += chunk
        except OSError:  # the other side is closed: that is how a terminal ends on Linux
            pass
        os.close(ours)
        return process.wait(DEADLINE_S), found
