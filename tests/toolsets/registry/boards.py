"""Boards at a `Desk`: each call in somebody's own name."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.protocol.wire import encode
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.toolsets.registry.blackboard import OPERATIONS
from tests.toolsets.plan.planned import Desk

BY_NAME = {operation.name: operation for operation in OPERATIONS}


class Boards(Desk):
    """A desk where the tools of boards are called, by anybody."""

    def ask(self, tool: str, /, who: str = "ada", **arguments: Any) -> Any:
        """What a tool answers to somebody."""
        answer = invoke(BY_NAME[tool], self._handrail.call, arguments, actor=Actor(who, "mcp"), client=CallingClient())
        return msgspec.json.decode(encode(answer))

    def refused(self, tool: str, /, who: str = "ada", **arguments: Any) -> Refusal:
        """The refusal that a call must end in."""
        try:
            answer = self.ask(tool, who, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was not refused: {answer}")

    def put(self, key: str, value: Any = 1, /, who: str = "ada", **more: Any) -> Any:
        return self.ask("bb_set", who, key=key, value=value, **more)
