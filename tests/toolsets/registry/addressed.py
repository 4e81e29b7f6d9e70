"""The tools of `sc://` addresses at a `Desk`, and short ways to say what lies there."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from handrail.protocol.wire import encode
from handrail.store.tables import BY_NAME as TABLES
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.toolsets.registry import blackboard, resources
from tests.toolsets.plan.planned import Desk

BY_NAME = {operation.name: operation for operation in (*resources.OPERATIONS, *blackboard.OPERATIONS)}


class Addressed(Desk):
    """A desk where addresses are read and watched."""

    def ask(self, tool: str, /, who: str = "tester", **arguments: Any) -> Any:
        """What a tool of the registry answers."""
        answer = invoke(BY_NAME[tool], self._handrail.call, arguments, actor=Actor(who, "test"), client=CallingClient())
        return msgspec.json.decode(encode(answer))

    def refused(self, tool: str, /, **arguments: Any) -> Refusal:
        """The refusal that a call must end in."""
        try:
            answer = self.ask(tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was not refused: {answer}")

    def read(self, uri: str) -> Any:
        answer = self.ask("resources_read", uri=uri)
        assert answer["uri"] == uri
        return answer["payload"]

    def watch(self, uri: str, from_seq: int = 0, **more: Any) -> Any:
        return self.ask("resources_watch", uri=uri, from_seq=from_seq, **more)

    def uris(self, **arguments: Any) -> list[str]:
        return [item["uri"] for item in self.ask("resources_list", **arguments)["items"]]

    def rows(self, table: str, query: Query) -> list[Any]:
        """The records that fit, as the store has them."""
        with self.store.engine.reading() as reader:
            return [record for record, _ in reader.select(TABLES[table], query)]

    def replan(self, workflow_id: str, *tasks: dict[str, Any]) -> None:
        """A new plan for what has not begun."""
        whole = [{"description": "", "sequence": number, **task} for number, task in enumerate(tasks, 1)]
        self.call("workflow_replan", id=workflow_id, tasks=whole, reason="changed")
