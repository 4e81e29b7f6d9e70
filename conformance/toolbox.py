"""Tools as records, and the provider that lists and calls them. Knows no particular tool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.wire import INVALID_PARAMS, RpcError

Handler: TypeAlias = Callable[[Exchange, Mapping[str, Any]], dict[str, Any]]

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

_STEP_S = 0.05


class Tool(msgspec.Struct, frozen=True):
    """One tool: how it is listed and what it does."""

    name: str
    description: str
    handler: Handler
    schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: NO_ARGUMENTS)
    task_use: TaskUse = TaskUse.NEVER
    waits: bool = False

    def listed(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}


class Toolbox:
    """The tools of one server, in the order they were given, and one that comes and goes."""

    def __init__(self, tools: Iterable[Tool], *, changing: Tool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._changing = changing

    def change(self) -> None:
        """Takes the changing tool off the list, or puts it on."""
        if self._tools.pop(self._changing.name, None) is None:
            self._tools[self._changing.name] = self._changing

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [tool.listed() for tool in self._tools.values()]

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if (tool := self._tools.get(name)) is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}", {"name": name})
        return tool.handler(exchange, arguments)

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:  # noqa: ARG002 - the port
        return name in self._tools and self._tools[name].waits

    def task_use(self, name: str) -> TaskUse:
        return self._tools[name].task_use if name in self._tools else TaskUse.NEVER


# -- what handlers say and how they wait -----------------------------------------------------------------------------


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def answer(text: str) -> dict[str, Any]:
    """A tool's result of one line of text."""
    return {"content": [text_block(text)]}


def failure(text: str) -> dict[str, Any]:
    """The result of a tool that ran and did not succeed."""
    return {"content": [text_block(text)], "isError": True}


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def pause(exchange: Exchange, seconds: float) -> None:
    """Lets time pass, and gives up as soon as nobody wants the answer."""
    never = threading.Event()
    remaining = seconds
    while remaining > 0:
        exchange.raise_if_cancelled()
        never.wait(min(remaining, _STEP_S))
        remaining -= _STEP_S
    exchange.raise_if_cancelled()
