"""The registry's `sc://` addresses as native resources: listed, described by templates, read, and checked before
somebody hears of them. Served only while the toolset `resources` is on.

The list is short on purpose, the newest of each kind: whoever wants all of them has templates, completion and the tool
`resources_list`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from handrail.domain.registry import looking
from handrail.domain.registry.addresses import BOARDS, CHILDREN, GRAPHS, RUNS, SCHEME, SNAPSHOTS, Address, parse
from handrail.domain.registry.listing import newest
from handrail.kernel.errors import Refusal, ResourceNotFound
from handrail.kernel.ledger import Actor, Event
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, ResultT
from handrail.protocol.exchange import Exchange
from handrail.protocol.features import RESOURCE_NOT_FOUND
from handrail.protocol.wire import INVALID_PARAMS, RpcError, encode
from handrail.surfaces.mcp.tools import actor_of, note_failure
from handrail.surfaces.refusals import bare_error

LISTED = 200
"""Workflows, agents and boards in the list."""
_JSON = "application/json"

TEMPLATES: dict[str, tuple[str, str]] = {
    f"{GRAPHS}{{graph_id}}": ("graph", "A graph, or a workflow's plan as one, as it is now"),
    f"{GRAPHS}{{graph_id}}@v{{version}}": ("graph version", "The graph as it was when this version was committed"),
    f"{SNAPSHOTS}{{graph_id}}/{{tx_id}}": ("snapshot", "A change of a graph: the graph before it and after it"),
    f"{RUNS}{{run_id}}/events": ("run events", "What happened to a workflow, the newest events"),
    f"{CHILDREN}{{child_id}}/logs": ("child logs", "What an agent did and what was done to it, the newest lines"),
    f"{BOARDS}{{namespace}}": ("board", "What stands on a board"),
}
"""Each template's name and what lies there."""


def touched(event: Event) -> Iterator[str]:
    """The addresses at which something is different after an event."""
    return (address.uri for address in looking.touched(event))


class Registered:
    """What lies at `sc://` addresses."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def owns(self, uri: str) -> bool:
        return uri.startswith(SCHEME) and is_on(self._call)

    def published(self) -> Sequence[Mapping[str, Any]]:
        if not is_on(self._call):
            return ()
        try:
            found = self._call.ledger.run(
                Actor("handrail", "mcp"), lambda unit: list(newest(unit, repository_of(self._call), LISTED))
            )
        except Refusal as refusal:
            raise bare_error(refusal, stateless=False) from refusal
        return [{"uri": address.uri, "name": name, "mimeType": _JSON} for address, name in found]

    def templates(self) -> Sequence[Mapping[str, Any]]:
        if not is_on(self._call):
            return ()
        return [
            {"uriTemplate": template, "name": name, "description": description, "mimeType": _JSON}
            for template, (name, description) in TEMPLATES.items()
        ]

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]]:
        keep = self._call.bounds.events
        payload = self._look(exchange, uri, lambda unit: looking.read(unit, parse(uri), keep=keep))
        return ({"uri": uri, "mimeType": _JSON, "text": encode(payload).decode()},)

    def check(self, exchange: Exchange, uri: str) -> None:
        """Raises RpcError where nobody can hear of the address."""
        self._look(exchange, uri, lambda unit: looking.check(unit, _as_written(uri)))

    def _look(self, exchange: Exchange, uri: str, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
        """What `work` finds. Where nothing is, the protocol's own error, with what to do instead."""
        try:
            return self._call.ledger.run(actor_of(exchange), work)
        except ResourceNotFound as refusal:
            code = INVALID_PARAMS if exchange.stateless else RESOURCE_NOT_FOUND
            why = {"uri": uri, "details": refusal.message, "hint": refusal.hint}
            raise RpcError(code, "Resource not found", why) from refusal
        except Refusal as refusal:
            note_failure(exchange, refusal)
            raise bare_error(refusal, stateless=exchange.stateless) from refusal


def _as_written(uri: str) -> Address:
    """The address; refused where it is written otherwise than by who tells of changes."""
    address = parse(uri)
    if address.uri != uri:
        raise ResourceNotFound(f"{uri} is written another way", hint=f"subscribe to {address.uri}")
    return address


def is_on(call: Call) -> bool:
    """Whether the toolset that these addresses belong to is on."""
    return any(toolset.name == "resources" for toolset in call.toolsets.active())


def repository_of(call: Call) -> str | None:
    """Whose workflows are shown; None where all in the store belong here."""
    return call.here.repository if call.here.shared else None
