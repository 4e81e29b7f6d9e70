"""A Handrail over a memory store, with every toolset of a plan on, and short ways to call it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import Refusal
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.protocol.wire import encode
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import LazyLedger
from tests.world import World

TESTER = Actor("tester", "test")


class Desk:
    """Where a test calls tools. Time stands still until it is moved."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        world = World(folder, **{"profile": "team", **settings})
        self.clock = FixedClock()
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())
        world._ledger = LazyLedger(lambda: self.store)
        self._handrail = world.handrail()

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.call_as(CallingClient(), tool, **arguments)

    def call_as(
        self, client: CallingClient, tool: str, *, cancelled: Callable[[], bool] = lambda: False, **arguments: Any
    ) -> Any:
        """A call on a connection that is remembered."""
        operation = self._handrail.switch.find(tool)
        assert operation is not None, tool
        answer = invoke(operation, self._handrail.call, arguments, actor=TESTER, client=client, cancelled=cancelled)
        return msgspec.json.decode(encode(answer))

    def refusal(self, tool: str, **arguments: Any) -> Refusal:
        """The refusal that a call must end in."""
        try:
            answer = self.call(tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was not refused: {answer}")

    def plan(self, *tasks: dict[str, Any], **workflow: Any) -> str:
        """A workflow with these tasks; what they leave out is filled in. Tasks are task_1, task_2 … in this order."""
        created = self.call(
            "workflow_create",
            **{"name": "Work", "source_type": "prompt", "source_content": "Do it.", **workflow},
        )
        whole = [{"description": "", "sequence": number, **task} for number, task in enumerate(tasks, 1)]
        plan = {"summary": "s", "approach": "a", "tasks": whole}
        self.call("workflow_set_plan", id=created["id"], plan=plan)
        return str(created["id"])

    def move(self, task_id: str, *states: str) -> None:
        for status in states:
            self.call("task_update_status", id=task_id, status=status, outcome="done", error="broken")

    def task(self, task_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("task_get", id=task_id)
        return answer
