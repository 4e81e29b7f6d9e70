"""A real repository in which an agent journals its work, and a person who asks about it on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec

from handrail.catalog import operation_named
from handrail.domain.journal.ports import Tracker
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.store.store import Store
from handrail.surfaces.cli.main import cli
from handrail.surfaces.invocation import invoke
from handrail.wiring import LazyLedger, WorkPlace, assemble, settings_at
from tests.outside.tracking.playground import Playground, write_global_config
from tests.own_store import own_store

MINUTE = 60_000
BEGAN = 1_768_471_500_000
"""2026-01-15 10:05:00 UTC."""


class Project(Playground):
    """The agent's tools run on a clock that stands still; the person's commands run as always."""

    def __init__(self, top: Path, *, is_git: bool = True, now_ms: int = BEGAN, db: str = "") -> None:
        super().__init__(top)
        top.mkdir(parents=True)
        write_global_config()
        if is_git:
            self.git("init", "-q")
            self.write("readme.md", "# Project\n")
            self.commit("first")
        self.clock = FixedClock(now_ms)
        self._ids = CountingIds()
        place = WorkPlace(project=top, home=top.parent / "home", environ={})
        settings = settings_at(place, {"profile": "all", "db": db})
        self.ledger = LazyLedger(self._open)
        self._call = assemble(place, settings, ledger=self.ledger).call
        self._db = db

    def _open(self) -> Store:
        return own_store(self.top, self.top.parent / "home", clock=self.clock, ids=self._ids, db=self._db)

    def tracker(self) -> Tracker:
        return self._call.world.tracker()

    def tool(self, tool: str, /, *, after: int = 1, **arguments: Any) -> Any:
        """Calls a tool, some minutes after the last one."""
        self.clock.advance(after * MINUTE)
        operation = operation_named(tool)
        assert operation is not None
        return invoke(operation, self._call, arguments, actor=Actor("agent", "mcp"))

    def workflow(self, name: str = "Add authentication", **more: Any) -> str:
        return str(self.tool("start_workflow", after=0, name=name, **more)["workflow_id"])

    def task(self, workflow: str, name: str = "Setup JWT", goal: str = "Verify tokens", **more: Any) -> str:
        return str(self.tool("start_task", workflow_id=workflow, name=name, goal=goal, **more)["task_id"])

    def complete(self, task: str, summary: str = "It works", status: str = "success", **more: Any) -> Any:
        metadata = more.pop("metadata", {})
        outcome = {"summary": summary, **more}
        return self.tool("complete_task", after=10, task_id=task, status=status, outcome=outcome, metadata=metadata)

    def decide(self, task: str, question: str = "Which library?", chosen: str = "jose", **more: Any) -> str:
        given = {"category": "library_choice", "reasoning": "It is maintained", **more}
        return str(self.tool("log_decision", task_id=task, question=question, chosen=chosen, **given)["id"])

    def issue(self, task: str, description: str = "The docs are old", *, review: bool = False) -> str:
        given: dict[str, Any] = {
            "type": "documentation_gap",
            "resolution": "Read the source",
            "requires_human_review": review,
        }
        return str(self.tool("log_issue", task_id=task, description=description, **given)["id"])

    # -- the person ---------------------------------------------------------------------------------------------------

    def run(
        self, *argv: str, env: dict[str, str] | None = None, color: bool = False, width: int = 80
    ) -> click.testing.Result:
        world = {"HOME": str(self.top.parent / "home"), "LOGNAME": "ann", "COLUMNS": str(width), **(env or {})}
        db = ("--db", self._db) if self._db else ()
        runner = click.testing.CliRunner(env=world)
        return runner.invoke(cli, [*argv, "--root", str(self.top), *db], prog_name="handrail", color=color)

    def shown(self, *argv: str, **more: Any) -> str:
        done = self.run(*argv, **more)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    def json(self, *argv: str) -> Any:
        return msgspec.json.decode(self.shown(*argv, "--json"))

    def refused(self, *argv: str, code: int = 1) -> str:
        done = self.run(*argv)
        assert done.exit_code == code, (done.output, done.exception)
        return done.stderr
