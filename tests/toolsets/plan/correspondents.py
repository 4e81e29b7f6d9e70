"""Agents and a person who write to each other, over a `Desk`: each call in somebody's own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.protocol.wire import encode
from handrail.surfaces.invocation import CallingClient, invoke
from tests.toolsets.plan.planned import Desk

PERSON = Actor("ann", "cli")
AGENT = Actor("client", "mcp")


class PostOffice(Desk):
    """A desk where several clients call, each with what its connection knows; and a person at a terminal."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.clients: dict[str, CallingClient] = {}

    def register(self, *names: str, **more: Any) -> list[str]:
        """Agents, each on a connection of its own; their ids."""
        found = []
        for name in names:
            client = CallingClient()
            arguments = {"name": name, "runtime": "codex", **more}
            agent_id = self._ask("agent_register", arguments, AGENT, client)["id"]
            self.clients[agent_id] = client
            found.append(agent_id)
        return found

    def as_agent(self, agent_id: str | None, tool: str, /, **arguments: Any) -> Any:
        """A call on the connection of an agent; on one of nobody's where there is none."""
        return self._ask(tool, arguments, AGENT, self.clients[agent_id] if agent_id is not None else CallingClient())

    def as_person(self, tool: str, **arguments: Any) -> Any:
        return self._ask(tool, arguments, PERSON, CallingClient())

    def refused(self, agent_id: str | None, tool: str, /, **arguments: Any) -> Refusal:
        """The refusal that an agent's call must end in."""
        try:
            answer = self.as_agent(agent_id, tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was not refused: {answer}")

    def send(self, sender_id: str, recipient_id: str, body: Any = "hello", **more: Any) -> str:
        """A message on its way; its id."""
        arguments = {"sender_id": sender_id, "recipient_id": recipient_id, "body": body, "message_type": "query"}
        arguments |= more
        ask = self.as_person if sender_id == "human" else self.call
        return str(ask("message_send", **arguments)["id"])

    def bodies(self, agent_id: str, **arguments: Any) -> list[Any]:
        """What an agent's list shows, by body."""
        page = self.call("message_list", agent_id=agent_id, **{"limit": 500, **arguments})
        return [message["body"] for message in page["messages"]]

    def kinds(self, agent_id: str) -> list[str]:
        """What happened in an inbox."""
        return [event.kind for event in self.store.events(f"inbox:{agent_id}")]

    def _ask(self, tool: str, arguments: dict[str, Any], actor: Actor, client: CallingClient) -> Any:
        operation = self._handrail.switch.find(tool)
        assert operation is not None, tool
        return msgspec.json.decode(
            encode(invoke(operation, self._handrail.call, arguments, actor=actor, client=client))
        )
