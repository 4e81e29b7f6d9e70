"""A real `handrail up` on a terminal of its own: the only place where it shows how to sign in to the page."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

START_S = 60.0
LINK = re.compile(r"(http://127\.0\.0\.1:\d+/)\?token=([\w-]+)")
TOKEN = "a-token-of-the-tests"


class Served(NamedTuple):
    """Where the page is, and the code that signs in once."""

    url: str
    code: str
    process: subprocess.Popen[bytes]

    @property
    def link(self) -> str:
        return f"{self.url}?token={self.code}"


@contextmanager
def serving(project: Path, home: Path, *options: str) -> Iterator[Served]:
    """`handrail up` in a project until the block ends; then it is told to leave."""
    ours, theirs = pty.openpty()
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HANDRAIL_")}
    environ |= {"HOME": str(home), "TERM": "xterm", "COLUMNS": "200"}
    command = [sys.executable, "-m", "handrail", "up", "--http", "127.0.0.1:0", "--token", TOKEN]
    command += ["--set", "approvals=human", *options]
    process = subprocess.Popen(
        command, cwd=project, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        found = _sign_in_link(ours, process)
        threading.Thread(target=_drain, args=(ours,), daemon=True).start()  # a full terminal would stop the server
        yield Served(found[1], found[2], process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(30)


def _sign_in_link(terminal: int, process: subprocess.Popen[bytes]) -> re.Match[str]:
    said = ""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                said += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # it has left
                break
        if (found := LINK.search(said)) is not None and said.endswith(("\n", "\r")):
            return found
        if process.poll() is not None:
            break
    raise AssertionError(f"handrail up did not say how to sign in:\n{said}")


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        os.close(terminal)
