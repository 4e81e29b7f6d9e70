"""Runs the checks that a project has configured: argument lists, never a shell, each in its own session with a time
limit, keeping only part of its output. Not a test runner: what a check means is up to the project."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

OUTPUT = 8000
"""How many bytes of a check's output are kept: its end, where the verdict is."""
NOT_STARTED, TIMED_OUT = 127, 124
"""Exit codes of a check that could not be started and of one that was stopped, as a shell would give them."""
LOOK_S = 0.1
"""How often a silent check is polled for its end: processes it left running may keep its output open."""
LEFT_S = 1.0
"""How long processes that a check left running are still listened to after its end."""
CHUNK = 1 << 16


class CheckRunner:
    """The checks of one project."""

    def __init__(self, checks: Mapping[str, Sequence[str]], *, timeout_s: float) -> None:
        self._checks = checks
        self._timeout_s = timeout_s

    def run(self, directory: str) -> list[dict[str, Any]]:
        """Runs every check, one after the other."""
        return [self._run(name, list(command), directory) for name, command in self._checks.items()]

    def _run(self, name: str, command: list[str], directory: str) -> dict[str, Any]:
        began = time.monotonic()
        code, output = _outcome(command, directory, self._timeout_s)
        return {
            "name": name,
            "command": " ".join(command),
            "exit_code": code,
            "output": output[-OUTPUT:].decode(errors="replace"),
            "seconds": round(time.monotonic() - began, 1),
            "ran_by": "handrail",
        }


def _outcome(command: list[str], directory: str, timeout_s: float) -> tuple[int, bytes]:
    try:
        process = subprocess.Popen(  # noqa: S603 - the project's own command, and no shell
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:  # ValueError: an argument contains a NUL
        return NOT_STARTED, f"{command[0]} could not be started: {getattr(problem, 'strerror', problem)}".encode()
    ended = False
    try:
        output, ended = _output_until(process, time.monotonic() + timeout_s)
    finally:
        if not ended:  # out of time or interrupted: end whatever it has started, too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    return (
        (process.returncode, output) if ended else (TIMED_OUT, output + f"\nstopped after {timeout_s:.0f} s".encode())
    )


def _output_until(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """The last part of what a check prints until it ends or the time is up, and whether it has ended."""
    tail, ended = b"", False
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(min(LOOK_S, left)):
                chunk = os.read(process.stdout.fileno(), CHUNK)
                if not chunk:  # no process is left that could print anything
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(left)
                    break
                tail = (tail + chunk)[-OUTPUT:]
            elif ended:
                break
            if not ended and process.poll() is not None:
                ended, deadline = True, min(deadline, time.monotonic() + LEFT_S)
    return tail, process.poll() is not None
