"""Each agent's inbox as a native resource. Inboxes are not listed, only described by a template: `agent_list` says
which agents there are. Served only while the toolset `message` is on.

Reading an inbox marks nothing as read. With strict identity, only its agent may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.crew.agent import Writer
from handrail.domain.crew.message import inbox_stream
from handrail.domain.crew.outbox import HUMAN
from handrail.domain.crew.presence import find_agent
from handrail.kernel.errors import AgentNotFound, IdentityUnproven, Refusal
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, ResultT
from handrail.protocol.exchange import Exchange
from handrail.protocol.features import resource_not_found
from handrail.protocol.wire import encode
from handrail.surfaces.arguments import has_toolset
from handrail.surfaces.mcp.tools import actor_of, client_of, rpc_error_for
from handrail.toolsets.plan.message import message_list
from handrail.toolsets.plan.message_shapes import ListMessages, MessagePage

INBOX = "handrail://inbox/"
TEMPLATE = f"{INBOX}{{agent_id}}"
_JSON = "application/json"


def inbox_uri(agent_id: str) -> str:
    return INBOX + agent_id


def touched(event: Event) -> Iterator[str]:
    """The inboxes that an event changes."""
    if event.stream.startswith(_INBOX_STREAM):
        yield inbox_uri(event.stream.removeprefix(_INBOX_STREAM))


_INBOX_STREAM = inbox_stream("")


class Inboxes:
    """Unread messages by owner."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def owns(self, uri: str) -> bool:
        return uri.startswith(INBOX) and is_on(self._call)

    def published(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def templates(self) -> Sequence[Mapping[str, Any]]:
        if not is_on(self._call):
            return ()
        return (
            {
                "uriTemplate": TEMPLATE,
                "name": "inbox",
                "description": "An agent's unread messages, as message_list shows them; subscribe to hear of changes",
                "mimeType": _JSON,
            },
        )

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:
        owner = _owner(uri)
        if owner is None:
            return None
        page = self._look(exchange, owner, lambda unit: self._inbox(unit, owner))
        return None if page is None else ({"uri": uri, "mimeType": _JSON, "text": encode(page).decode()},)

    def check(self, exchange: Exchange, uri: str) -> None:
        owner = _owner(uri)
        if owner is None or self._look(exchange, owner, lambda _: True) is None:
            raise resource_not_found(exchange, uri)

    def _inbox(self, unit: UnitOfWork, owner: str) -> MessagePage:
        writer = Writer(owner if owner != HUMAN else None)
        return message_list(msgspec.structs.replace(self._call, unit=unit, writer=writer), ListMessages(owner))

    def _look(self, exchange: Exchange, owner: str, work: Callable[[UnitOfWork], ResultT]) -> ResultT | None:
        """What `work` finds, if the inbox exists and this client may read it; None if it does not exist."""
        own = owner in client_of(exchange).agents

        def in_unit(unit: UnitOfWork) -> ResultT:
            if owner != HUMAN:
                find_agent(unit, owner)
            if self._call.crew.strict and not own:
                raise IdentityUnproven(
                    f"the inbox of {owner} is read on a connection that has proved to be {owner}'s",
                    hint="register on this connection, or call any tool with agent_id and agent_secret first",
                    id=owner,
                )
            return work(unit)

        try:
            if own:  # reading one's own messages is a sign of life
                self._call.ledger.renew(owner, self._call.crew.lease_ms)
            return self._call.ledger.run(actor_of(exchange), in_unit)
        except AgentNotFound:
            return None
        except Refusal as refusal:
            raise rpc_error_for(exchange, refusal) from refusal


def is_on(call: Call) -> bool:
    """Whether the toolset that inboxes belong to is on."""
    return has_toolset(call, "message")


def _owner(uri: str) -> str | None:
    """The owner of the inbox at this address; None if there is none."""
    owner = uri.removeprefix(INBOX) if uri.startswith(INBOX) else ""
    return owner if 0 < len(owner) <= 200 and "\0" not in owner else None
