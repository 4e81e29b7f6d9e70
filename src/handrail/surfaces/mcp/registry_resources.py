"""The registry's `sc://` addresses as native resources: listed, described by templates, read, and checked before
somebody subscribes. Served only while the toolset `resources` is on.

The list is short on purpose: the newest of each kind. For all of them there are templates, completion and the tool
`resources_list`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from handrail.domain.registry import reader
from handrail.domain.registry.addresses import BOARDS, CHILDREN, GRAPHS, RUNS, SCHEME, SNAPSHOTS, Address, parse
from handrail.domain.registry.index import newest
from handrail.kernel.errors import Refusal, ResourceNotFound
from handrail.kernel.ledger import Actor, Event
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, ResultT
from handrail.protocol.exchange import Exchange
from handrail.protocol.features import resource_not_found
from handrail.protocol.wire import encode
from handrail.surfaces.arguments import has_toolset
from handrail.surfaces.mcp.tools import actor_of, rpc_error_for
from handrail.surfaces.refusals import bare_error

LISTED = 200
"""How many workflows, agents and boards are listed."""
_JSON = "application/json"

TEMPLATES: dict[str, tuple[str, str]] = {
    f"{GRAPHS}{{graph_id}}": ("graph", "A graph, or a workflow's plan as one, as it is now"),
    f"{GRAPHS}{{graph_id}}@v{{version}}": ("graph version", "The graph as it was when this version was committed"),
    f"{SNAPSHOTS}{{graph_id}}/{{tx_id}}": ("snapshot", "A change of a graph: the graph before it and after it"),
    f"{RUNS}{{run_id}}/events": ("run events", "What happened to a workflow, the newest events"),
    f"{CHILDREN}{{child_id}}/logs": ("child logs", "What an agent did and what was done to it, the newest lines"),
    f"{BOARDS}{{namespace}}": ("board", "What stands on a board"),
}
"""Each template's name and description."""


def touched(event: Event) -> Iterator[str]:
    """The addresses whose content an event changes."""
    return (address.uri for address in reader.touched(event))


class RegistryResources:
    """The resources at `sc://` addresses."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def owns(self, uri: str) -> bool:
        return uri.startswith(SCHEME) and is_on(self._call)

    def published(self) -> Sequence[Mapping[str, Any]]:
        if not is_on(self._call):
            return ()
        try:
            found = self._call.ledger.run(
                Actor("handrail", "mcp"), lambda unit: list(newest(unit, self._call.here.only, LISTED))
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
        payload = self._look(exchange, uri, lambda unit: reader.read(unit, parse(uri), keep=keep))
        return ({"uri": uri, "mimeType": _JSON, "text": encode(payload).decode()},)

    def check(self, exchange: Exchange, uri: str) -> None:
        """Raises RpcError if nobody can subscribe to the address."""
        self._look(exchange, uri, lambda unit: reader.check(unit, _as_written(uri)))

    def _look(self, exchange: Exchange, uri: str, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
        """What `work` finds. If nothing is there, raises the protocol's own error, with a hint."""
        try:
            return self._call.ledger.run(actor_of(exchange), work)
        except ResourceNotFound as refusal:
            raise resource_not_found(exchange, uri, details=refusal.message, hint=refusal.hint) from refusal
        except Refusal as refusal:
            raise rpc_error_for(exchange, refusal) from refusal


def _as_written(uri: str) -> Address:
    """The address; refused unless spelled the way updates will spell it."""
    address = parse(uri)
    if address.uri != uri:
        raise ResourceNotFound(f"{uri} is written another way", hint=f"subscribe to {address.uri}")
    return address


def is_on(call: Call) -> bool:
    """Whether the toolset that these addresses belong to is on."""
    return has_toolset(call, "resources")
