"""Tells a recorded workflow again: every call through the real handlers, into a memory store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from handrail.domain.work.task import Task
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import id_text
from handrail.kernel.ledger import Actor
from handrail.kernel.records import where
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.surfaces.invocation import invoke
from handrail.wiring import LazyLedger, WorkPlace, assemble, settings_at

BETWEEN_CALLS_MS = 47_000
NOWHERE = Path("/nowhere")
TOOLSETS = "workflow,task,checkpoint,orchestration,context"


class SteadyIds:
    """Ids as long as real ones, and the same every time."""

    def __init__(self, clock: FixedClock) -> None:
        self._clock = clock
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return id_text(prefix, self._clock.now_ms(), self._count * 0x9E3779B97F4A7C15F39CC060)


class Telling:
    """A store that calls are told to, one after the other."""

    def __init__(self) -> None:
        self.clock = FixedClock(1_767_600_000_000)
        self.store = Store(MemoryEngine(), clock=self.clock, ids=SteadyIds(self.clock))
        place = WorkPlace(project=NOWHERE, home=NOWHERE, environ={})
        settings = settings_at(place, {"toolsets": TOOLSETS})
        self.handrail = assemble(place, settings, ledger=LazyLedger(lambda: self.store))

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """One call; what it answers."""
        self.clock.advance(BETWEEN_CALLS_MS)
        operation = self.handrail.switch.find(tool)
        assert operation is not None, tool
        return invoke(operation, self.handrail.call, arguments, actor=Actor("agent", "mcp"))

    # -- what samples say often -----------------------------------------------------------------------------------

    def begin(self, plan: dict[str, Any], **workflow: Any) -> str:
        """A workflow with its plan."""
        key: str = self.call("workflow_create", **workflow)["id"]
        self.call("workflow_set_plan", id=key, plan=plan)
        return key

    def task(self, name: str) -> str:
        """The id of the task with a name."""
        (found,) = self.store.run(Actor("agent", "mcp"), lambda unit: unit.select(Task, where(name=name)))
        return found.id

    def plan(self, name: str, approach: str, *steps: str, context: dict[str, Any] | None = None, **more: Any) -> None:
        plan = {"approach": approach, "steps": list(steps), **more}
        self.call("task_set_plan", id=self.task(name), plan=plan, context=context or {})

    def start(self, name: str) -> None:
        self.call("task_update_status", id=self.task(name), status="in_progress")

    def note(self, name: str, type: str, summary: str, *files: str, **detail: Any) -> str:  # noqa: A002 - its own name
        arguments = {"type": type, "summary": summary, "files_changed": list(files), "detail": detail}
        key: str = self.call("checkpoint_add", task_id=self.task(name), **arguments)["id"]
        return key

    def done(self, name: str, outcome: str, **detail: Any) -> None:
        self.call("task_update_status", id=self.task(name), status="completed", outcome=outcome, outcome_detail=detail)

    def fail(self, name: str, error: str) -> None:
        self.call("task_update_status", id=self.task(name), status="failed", error=error)

    def bundle(self, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.call("task_load_context", **arguments)))
        return answer
