"""What a server is built from: its identity and the provider behind each MCP feature. Protocol types only.

If a provider is None the server does not have the feature: its capability is not declared and its methods are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import msgspec

from handrail.protocol.exchange import Exchange
from handrail.protocol.tasks import TASKS_EXTENSION


class TaskUse(Enum):
    """Whether a tool may continue as a task after its reply."""

    NEVER = "never"
    MAY = "may"
    MUST = "must"


class Tools(Protocol):
    """Behind `tools/list` and `tools/call`."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        """Every tool on offer, as listed, in a stable order."""
        ...

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The `tools/call` result; raises RpcError for protocol errors."""
        ...

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """True for a call that may wait for news, and so runs beside the ordered lane."""
        ...

    def task_use(self, name: str) -> TaskUse: ...


@runtime_checkable
class AsksPeople(Protocol):
    """Implemented by `Tools` that may ask the person at the client while they run; says which tools do. If the client
    can show the question, such a call runs beside the ordered lane."""

    def asks(self, name: str) -> bool: ...


class Methods(Protocol):
    """Request methods in addition to MCP's own."""

    def knows(self, method: str) -> bool: ...

    def waits(self, method: str, params: Mapping[str, Any]) -> bool: ...

    def call(self, exchange: Exchange, method: str, params: Mapping[str, Any]) -> Any: ...


class Resources(Protocol):
    """Behind `resources/list`, `resources/templates/list` and `resources/read`."""

    def published(self) -> Sequence[Mapping[str, Any]]: ...

    def templates(self) -> Sequence[Mapping[str, Any]]: ...

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:
        """The contents, or None if nothing has that address."""
        ...


class Watching(Protocol):
    """Behind resource updates: which client may follow which resource, and from when on somebody does."""

    def check(self, exchange: Exchange, uri: str) -> None:
        """Raises RpcError if this client may not follow the resource."""
        ...

    def opening(self, exchange: Exchange) -> AbstractContextManager[None]:
        """Held while a subscription is being made, so that no later update is missed."""
        ...


class Prompts(Protocol):
    """Behind `prompts/list` and `prompts/get`."""

    def published(self) -> Sequence[Mapping[str, Any]]: ...

    def get(self, exchange: Exchange, name: str, arguments: Mapping[str, str]) -> dict[str, Any] | None:
        """The `prompts/get` result, or None if no prompt has that name."""
        ...


class Completions(Protocol):
    """Behind `completion/complete`."""

    def complete(self, exchange: Exchange, reference: Mapping[str, Any], argument: Mapping[str, Any]) -> Sequence[str]:
        """Every value that fits; clients are shown the first hundred."""
        ...


class NoResources:
    """A server that declares the feature and has nothing to show. Clients may add tools of their own for it."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def templates(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def read(self, exchange: Exchange, uri: str) -> Sequence[Mapping[str, Any]] | None:  # noqa: ARG002 - the port
        return None


class Changing(msgspec.Struct, frozen=True, kw_only=True):
    """Which lists can change while a client is connected, and whether resources announce their updates."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    resource_updates: bool = False


def _never(_: str) -> bool:
    return False


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The server's identity and its providers."""

    name: str
    version: str
    description: str
    instructions: str | None = None
    tools: Tools
    methods: Methods | None = None
    resources: Resources | None = None
    prompts: Prompts | None = None
    completions: Completions | None = None
    changing: Changing = Changing()
    watching: Watching | None = None
    """If None, everybody may subscribe to everything, and those who make updates also announce them."""
    logs: bool = False
    """True when handlers send log lines."""
    tasks: bool = False
    """True when some tool may continue as a task."""
    is_quick: Callable[[str], bool] = _never
    """True for tools that answer at once: they ask nobody, wait for nothing and need no thread of their own."""
    extra_capabilities: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    page_size: int = 200

    def identity(self) -> dict[str, str]:
        return {"name": self.name, "version": self.version, "description": self.description}

    def capabilities(self, *, stateless: bool) -> dict[str, Any]:
        """The capabilities to declare. Tasks belong to the stateless era."""
        declared: dict[str, dict[str, Any]] = {"tools": {"listChanged": self.changing.tools}}
        if self.resources is not None:
            declared["resources"] = {"listChanged": self.changing.resources}
            if self.changing.resource_updates:
                declared["resources"]["subscribe"] = True
        if self.prompts is not None:
            declared["prompts"] = {"listChanged": self.changing.prompts}
        if self.completions is not None:
            declared["completions"] = {}
        if self.logs:
            declared["logging"] = {}
        if self.tasks and stateless:
            declared["extensions"] = {TASKS_EXTENSION: {}}
        for feature, extra in self.extra_capabilities.items():
            declared[feature] = {**declared.get(feature, {}), **extra}
        return declared
