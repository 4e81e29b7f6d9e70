"""Runs the checks that a project has configured: argument lists, never a shell, each in its own session with a time
limit. Not a test runner: what a check means is the project's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

OUTPUT = 8000
"""Bytes of a check's output that are kept: its end, where the verdict stands."""
NOT_STARTED, TIMED_OUT = 127, 124
"""Exit codes of a check that could not be started and of one that was stopped, as a shell would give them."""


class CheckRunner:
    """The checks of one project."""

    def __init__(self, checks: Mapping[str, Sequence[str]], *, timeout_s: float) -> None:
        self._checks = checks
        self._timeout_s = timeout_s

    def run(self, directory: str) -> list[dict[str, Any]]:
        """Every check, one after the other."""
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
        process = subprocess.Popen(  # noqa: S603 - the project's own words, and no shell
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as problem:
        return NOT_STARTED, f"{command[0]} could not be started: {problem.strerror}".encode()
    with process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return TIMED_OUT, output + f"\nstopped after {timeout_s:.0f} s".encode()
    return process.returncode, output
