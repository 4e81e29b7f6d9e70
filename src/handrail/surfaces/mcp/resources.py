"""Resources on the wire: everything that has an address, in any part of Handrail, and who may follow it.

Each part says which addresses belong to it, only while its toolset is on, and provides their contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Event
from handrail.operation import Call
from handrail.protocol.exchange import Exchange
from handrail.protocol.features import resource_not_found
from handrail.surfaces.mcp import inboxes, registry_resources
from handrail.surfaces.mcp.inboxes import inbox_uri
from handrail.surfaces.mcp.resource_updates import Follower
from handrail.surfaces.mcp.tools import rpc_error_for

__all__ = ["AllResources", "inbox_uri", "touched"]


class ToolsetResources(Protocol):
    """The resources of one toolset. While that is off, it owns none."""

    def owns(self, uri: str) -> bool: ...

    def published(self) -> Sequence[Mapping[str, Any]]: ...

    def templates(self) -> Sequence[Mapping[str, Any]]: ...

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None: ...

    def check(self, exchange: Exchange, uri: str) -> None: ...


def touched(event: Event) -> Iterator[str]:
    """The resources that an event changes."""
    yield from inboxes.touched(event)
    yield from registry_resources.touched(event)


class AllResources:
    """Behind the protocol's `Resources` and `Watching` ports."""

    def __init__(self, call: Call, follower: Follower) -> None:
        self._parts: tuple[ToolsetResources, ...] = (inboxes.Inboxes(call), registry_resources.RegistryResources(call))
        self._follower = follower

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [resource for part in self._parts for resource in part.published()]

    def templates(self) -> Sequence[Mapping[str, Any]]:
        return [template for part in self._parts for template in part.templates()]

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:
        part = self._owner(uri)
        return part.read(exchange, uri) if part is not None else None

    def check(self, exchange: Exchange, uri: str) -> None:
        part = self._owner(uri)
        if part is None:
            raise resource_not_found(exchange, uri)
        part.check(exchange, uri)

    def _owner(self, uri: str) -> ToolsetResources | None:
        return next((part for part in self._parts if part.owns(uri)), None)

    @contextmanager
    def opening(self, exchange: Exchange) -> Iterator[None]:
        try:
            with self._follower.opening():
                yield
        except Refusal as refusal:
            raise rpc_error_for(exchange, refusal) from refusal
