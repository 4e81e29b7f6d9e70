"""What benches start and how long it took: processes on pipes, the surroundings they get, their last words and their
end. What is said to them is each bench's own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.environments import ROOT

END_S = 20.0
"""How long a process may take to end once nobody speaks to it any more."""
_FOREIGN = ("HANDRAIL_", "WORKFLOW_", "PYTHON", "NODE_", "BACKLOG_", "TASK_MASTER_", "DBOS")


class Stuck(Exception):  # noqa: N818 - a fact about a process
    """A process ended, did not answer in time, or refused what it has to grant before anything is measured."""


def elapsed(action: Callable[..., object], *given: object) -> float:
    """Milliseconds on the wall."""
    began = time.perf_counter()
    action(*given)
    return (time.perf_counter() - began) * 1000


def surroundings() -> dict[str, str]:
    """The caller's environment without what would change how a process works."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}


def end(process: subprocess.Popen[bytes]) -> None:
    """Waits for a process that was told to end."""
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Piped:
    """A process of one's own, on its standard input and output; it finds the benches' modules."""

    def __init__(self, command: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**surroundings(), "PYTHONPATH": str(ROOT), **environ},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._in.close()
        end(self.process)
        self._out.close()
