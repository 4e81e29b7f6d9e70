"""What a server is built from: its identity and the providers behind each MCP feature. Protocol types only.

A provider left as None is a feature the server does not have: its capability is not declared and its methods are
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from handrail.protocol.exchange import Exchange


class Tools(Protocol):
    """Behind `tools/list` and `tools/call`."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        """Every tool on offer, as it is listed, in a stable order."""
        ...

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The `tools/call` result; raises RpcError for what is a protocol error."""
        ...

    def waits(self, name: str) -> bool:
        """True for a tool that may wait for news: it runs beside the ordered lane."""
        ...


class Methods(Protocol):
    """Request methods beside MCP's own."""

    def knows(self, method: str) -> bool: ...

    def waits(self, method: str) -> bool: ...

    def call(self, exchange: Exchange, method: str, params: Mapping[str, Any]) -> Any: ...


class Resources(Protocol):
    """Behind `resources/list`, `resources/templates/list` and `resources/read`."""

    def published(self) -> Sequence[Mapping[str, Any]]: ...

    def templates(self) -> Sequence[Mapping[str, Any]]: ...

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:
        """The contents, or None where nothing has that address."""
        ...


class Prompts(Protocol):
    """Behind `prompts/list` and `prompts/get`."""

    def published(self) -> Sequence[Mapping[str, Any]]: ...

    def get(self, exchange: Exchange, name: str, arguments: Mapping[str, str]) -> dict[str, Any] | None: ...


class Completions(Protocol):
    """Behind `completion/complete`."""

    def complete(
        self, exchange: Exchange, reference: Mapping[str, Any], argument: Mapping[str, Any]
    ) -> Sequence[str]: ...


class NoResources:
    """A server that declares the feature and has nothing to show yet."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def templates(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:  # noqa: ARG002 - the port's shape
        return None


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Who the server is and what it has."""

    name: str
    version: str
    description: str
    instructions: str | None = None
    tools: Tools
    tools_change: bool = False
    """True when the tool list can change while a client is connected."""
    methods: Methods | None = None
    resources: Resources | None = None
    prompts: Prompts | None = None
    completions: Completions | None = None
    extra_capabilities: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    page_size: int = 200

    def identity(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version, "description": self.description}

    def capabilities(self) -> dict[str, Any]:
        declared: dict[str, dict[str, Any]] = {"tools": {"listChanged": self.tools_change}}
        if self.resources is not None:
            declared["resources"] = {"listChanged": False}
        if self.prompts is not None:
            declared["prompts"] = {"listChanged": False}
        if self.completions is not None:
            declared["completions"] = {}
        for feature, extra in self.extra_capabilities.items():
            declared[feature] = {**declared.get(feature, {}), **extra}
        return declared
