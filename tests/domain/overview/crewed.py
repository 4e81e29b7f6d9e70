"""A store with agents that work in it and a person who looks: every call through the tools, every look in one unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from handrail.domain.crew.agent import CrewRules
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import UnitOfWork
from tests.toolsets.plan.correspondents import PERSON, PostOffice

LookT = TypeVar("LookT")
MINUTE = 60_000
RULES = CrewRules()


class Crewed(PostOffice):
    """A post office with a plan to work on."""

    def look(self, work: Callable[[UnitOfWork], LookT]) -> LookT:
        return self.store.run(PERSON, work)

    def at(self, workflow_id: str, model: Callable[[UnitOfWork, Workflow], LookT]) -> LookT:
        """What a read model shows of a workflow."""

        def work(unit: UnitOfWork) -> LookT:
            workflow = unit.get(Workflow, workflow_id)
            assert workflow is not None
            return model(unit, workflow)

        return self.look(work)

    def wait(self, minutes: float = 1) -> int:
        """The moment, so many minutes later."""
        self.clock.advance(int(minutes * MINUTE))
        return self.clock.now_ms()

    def claim(self, agent_id: str, task_id: str, **more: Any) -> Any:
        return self.as_agent(agent_id, "task_claim", task_id=task_id, agent_id=agent_id, start=True, **more)

    def done(self, agent_id: str, task_id: str, status: str = "completed") -> None:
        self.as_agent(agent_id, "task_update_status", id=task_id, status=status, outcome="done", error="broken")
