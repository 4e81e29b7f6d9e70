"""A repository in which agents keep paths for themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.domain.crew.agent import Agent
from handrail.domain.workspaces.reservations import ReservationRequest, ReservedByOther, kept_from, reserve
from handrail.kernel.ledger import Actor
from handrail.kernel.records import where
from handrail.surfaces.invocation import invoke
from handrail.toolsets.plan.agent import OPERATIONS
from handrail.wiring import WorkPlace, assemble, settings_at
from tests.outside.tracking.playground import Playground


class Shop:
    """A repository with a store, in which Anna keeps paths for herself."""

    def __init__(self, repo: Playground, db: str = "") -> None:
        self.repo = repo
        place = WorkPlace(project=repo.top, home=Path.home(), environ={})
        self._call = assemble(place, settings_at(place, {"db": db} if db else {})).call

    def keeps(self, *paths: str, name: str = "Anna", reason: str | None = None) -> str:
        """An agent that is there and keeps these paths; its id."""
        register = next(operation for operation in OPERATIONS if operation.name == "agent_register")
        told = invoke(register, self._call, {"name": name, "runtime": "custom"}, actor=Actor("t", "test"))
        wanted = ReservationRequest(str(self.repo.top), list(paths), reason=reason)

        def work(unit: Any) -> None:
            (agent,) = unit.select(Agent, where(id=told["id"]))
            assert reserve(unit, agent, wanted).reservation is not None

        self._call.ledger.run(Actor("t", "test"), work)
        return str(told["id"])

    def kept_from(self, files: list[str], agent: str | None = None) -> list[ReservedByOther]:
        """What the domain says of these files."""

        def look(unit: Any) -> list[ReservedByOther]:
            return kept_from(unit, str(self.repo.top), files, agent)

        return self._call.ledger.run(Actor("t", "test"), look)
