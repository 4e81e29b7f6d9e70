"""What the rich data set is built with: a store whose clock is told the time, agents that call the real tools, git.

Nothing here knows what is built; that is `rich.py`'s, and its texts are `rich_texts.py`'s.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.domain.journal.journal import LOOKING
from handrail.domain.work.task import Task
from handrail.kernel.clock import FixedClock
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from handrail.outside.world import RandomIds
from handrail.store.store import Store
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, settings_at
from tests.own_store import own_store

MINUTE_MS = 60_000
SOMEBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Handrail"), ("EMAIL", "handrail@localhost"))
}


class Stage:
    """A project on disk and a Handrail over it, whose time is `minutes` before now and moves when it is told to."""

    def __init__(self, project: Path, home: Path, *, minutes: int) -> None:
        self.project, self.home = project, home
        self.clock = FixedClock(time.time_ns() // 1_000_000 - minutes * MINUTE_MS)
        self._minutes_left = minutes
        place = WorkPlace(project=project, home=home, environ={})
        self.handrail: Handrail = assemble(
            place, settings_at(place, {"profile": "all"}), ledger=LazyLedger(self._opened)
        )

    def _opened(self) -> Store:
        return own_store(self.project, self.home, clock=self.clock, ids=RandomIds(self.clock))

    def after(self, minutes: int) -> None:
        """Lets time pass; never beyond now."""
        self._minutes_left -= minutes
        assert self._minutes_left >= 0, "the story is longer than its time"
        self.clock.advance(minutes * MINUTE_MS)

    @property
    def minutes_left(self) -> int:
        return self._minutes_left

    def until_now(self) -> None:
        self.after(self._minutes_left)

    def tasks_of(self, workflow_id: str) -> dict[str, str]:
        """Ids by name, in the plan's order."""
        in_order = Query((("workflow_id", workflow_id),), ("sequence",))
        tasks = self.handrail.ledger.run(LOOKING, lambda unit: unit.select(Task, in_order))
        return {task.name: task.id for task in tasks}

    def close(self) -> None:
        self.handrail.ledger.open().engine.close()


class Agent:
    """One agent, on a connection of its own."""

    def __init__(self, stage: Stage, name: str, runtime: str, **more: Any) -> None:
        self.stage = stage
        self._client = CallingClient()
        self.name = name
        self.id = ""
        self.id = str(self.call("agent_register", name=name, runtime=runtime, **more)["id"])

    def call(self, tool: str, **arguments: Any) -> Any:
        """One call of a tool, as a client would make it. Raises Refusal."""
        operation = self.stage.handrail.switch.find(tool)
        assert operation is not None, tool
        return invoke(
            operation, self.stage.handrail.call, arguments, actor=Actor(self.name, "mcp"), client=self._client
        )


def write(where: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Writes files as an agent does; None takes one away."""
    for name, content in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8", newline="\n")


def git(where: Path, *words: str) -> None:
    """Runs git with nobody's settings."""
    program = shutil.which("git")
    assert program is not None
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    nobodys = {"HOME": str(where), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    env = {**kept, **SOMEBODY, **nobodys}
    subprocess.run([program, *words], cwd=where, env=env, check=True, capture_output=True, timeout=60)


def new_repository(where: Path, files: Mapping[str, str | bytes | None]) -> None:
    where.mkdir(parents=True)
    git(where, "init", "-q", "-b", "main")
    write(where, files)
    git(where, "add", "-A")
    git(where, "commit", "-qm", "As it was")
