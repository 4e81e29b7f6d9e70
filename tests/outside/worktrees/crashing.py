"""`python -m tests.outside.worktrees.crashing`: does what it is told, line by line, each in a process of its own that
is killed on the way: before its N-th step, or while the git of that step is at work, which dies too or goes on alone.

A step is a git that is started, or a file that is renamed, linked, replaced or deleted. The kill is SIGKILL: nothing is
caught, nothing cleaned up. Prints for each line whether it was killed, done or refused, and how many steps it made.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handrail.kernel.errors import Refusal
from handrail.outside.tracking.git_process import GitCall
from handrail.outside.worktrees import git, worktrees_at

REFUSED = 3


class Crash:
    """Counts steps and dies at one of them."""

    def __init__(self, at: int, inside_ms: float | None, *, git_survives: bool) -> None:
        self._at = at
        self._inside_ms = inside_ms
        self._git_survives = git_survives
        self.count = 0

    def install(self) -> None:
        for module, name in ((os, "rename"), (os, "replace"), (os, "link"), (os, "unlink"), (shutil, "rmtree")):
            setattr(module, name, self._counted(getattr(module, name)))
        crash = self

        class DyingCall(GitCall):
            def __init__(self, *arguments: Any, **named: Any) -> None:
                dies = crash._step(is_git=True)
                super().__init__(*arguments, **named)
                if dies:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait((crash._inside_ms or 0) / 1000)
                    if not crash._git_survives:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(self._process.pid, signal.SIGKILL)
                    os.kill(os.getpid(), signal.SIGKILL)

        setattr(git, "GitCall", DyingCall)  # noqa: B010 - a type is not assigned to

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self._step(is_git=False)
            return real(*arguments, **named)

        return counted

    def _step(self, *, is_git: bool) -> bool:
        """True when the process is to die during this step; it may die before."""
        self.count += 1
        if self.count != self._at:
            return False
        if self._inside_ms is None or not is_git:
            os.kill(os.getpid(), signal.SIGKILL)
        return True


def do(order: dict[str, Any]) -> int:
    """What the child does; its steps go to a file."""
    crash = Crash(order["step"], order["inside_ms"], git_survives=order["git_survives"])
    crash.install()
    trees = worktrees_at(Path(order["top"]))
    named = dict(order["named"])
    if order.get("checked"):
        named["checks"] = lambda folder: [{"name": "there", "passed": Path(folder).is_dir()}]
    try:
        getattr(trees, order["operation"])(*order["arguments"], **named)
    except Refusal as refused:
        sys.stderr.write(f"{refused.message}\n")
        return REFUSED
    return 0


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = do(order)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        told = {0: "done", REFUSED: "refused"}.get(os.waitstatus_to_exitcode(status), "killed")
        if os.waitstatus_to_exitcode(status) == 70:
            told = "broken"
        sys.stdout.write(told + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
