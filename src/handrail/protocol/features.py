"""The methods of each feature (tools, resources, prompts, completions): from checked params to a provider's answer.

No eras, envelopes or transports: `server.py` decides which method is served, this module what it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import Completions, Offer, Prompts, Resources, TaskUse
from handrail.protocol.tasks import TaskBoard, follows_tasks, require_tasks
from handrail.protocol.wire import INVALID_PARAMS, RpcError, invalid_params

RESOURCE_NOT_FOUND = -32002
"""Handshake revisions only; 2026-07-28 uses plain invalid params instead."""

COMPLETIONS_SHOWN = 100

Handler = Callable[[Exchange], Any]


def feature_methods(offer: Offer, board: TaskBoard) -> dict[str, Handler]:
    """The methods this offer can answer."""
    methods: dict[str, Handler] = {
        "tools/list": lambda exchange: page(exchange, "tools", offer.tools.published(), offer.page_size),
        "tools/call": lambda exchange: _call_tool(exchange, offer, board),
    }
    if (resources := offer.resources) is not None:
        methods |= _resource_methods(resources, offer.page_size)
    if (prompts := offer.prompts) is not None:
        methods |= _prompt_methods(prompts, offer.page_size)
    if (completions := offer.completions) is not None:
        methods["completion/complete"] = lambda exchange: _complete(exchange, completions)
    return methods


def required(params: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """A member that every caller must send; the error names it the way guide.md does."""
    value = params.get(key)
    if value is None:
        raise invalid_params(f"{key} is required")
    if not isinstance(value, kind):
        expected = "a string" if kind is str else "an object"
        raise invalid_params(f"{key} must be {expected}")
    return value


def resource_not_found(exchange: Exchange, uri: str, **why: str) -> RpcError:
    """The error for an address that has no resource."""
    code = INVALID_PARAMS if exchange.stateless else RESOURCE_NOT_FOUND
    return RpcError(code, "Resource not found", {"uri": uri, **why})


def page(exchange: Exchange, key: str, items: Sequence[Mapping[str, Any]], size: int) -> dict[str, Any]:
    """One page of a list. The cursor is the offset of the next item: opaque to clients, checked when it comes back."""
    cursor = exchange.params.get("cursor")
    start = 0
    if cursor is not None:
        if cursor not in (str(offset) for offset in range(size, len(items), size)):
            raise invalid_params("cursor is not one this server gave out")
        start = int(cursor)
    end = start + size
    result: dict[str, Any] = {key: list(items[start:end])}
    if end < len(items):
        result["nextCursor"] = str(end)
    return result


def _call_tool(exchange: Exchange, offer: Offer, board: TaskBoard) -> dict[str, Any]:
    name = required(exchange.params, "name", str)
    arguments = exchange.params.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise invalid_params("arguments must be an object")
    use = offer.tools.task_use(name)
    if use is TaskUse.MUST and exchange.stateless:
        require_tasks(exchange)
    if use is not TaskUse.NEVER and follows_tasks(exchange):
        return board.run(exchange, lambda: offer.tools.call(exchange, name, arguments))
    return offer.tools.call(exchange, name, arguments)


def _resource_methods(resources: Resources, page_size: int) -> dict[str, Handler]:
    def read(exchange: Exchange) -> dict[str, Any]:
        uri = required(exchange.params, "uri", str)
        contents = resources.read(exchange, uri)
        if contents is None:
            raise resource_not_found(exchange, uri)
        return {"contents": list(contents)}

    return {
        "resources/list": lambda exchange: page(exchange, "resources", resources.published(), page_size),
        "resources/templates/list": lambda exchange: page(
            exchange, "resourceTemplates", resources.templates(), page_size
        ),
        "resources/read": read,
    }


def _prompt_methods(prompts: Prompts, page_size: int) -> dict[str, Handler]:
    def get(exchange: Exchange) -> dict[str, Any]:
        name = required(exchange.params, "name", str)
        arguments = exchange.params.get("arguments") or {}
        if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
            raise invalid_params("arguments must be an object of strings")
        prompt = prompts.get(exchange, name, arguments)
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}", {"name": name})
        return prompt

    return {
        "prompts/list": lambda exchange: page(exchange, "prompts", prompts.published(), page_size),
        "prompts/get": get,
    }


def _complete(exchange: Exchange, completions: Completions) -> dict[str, Any]:
    reference = required(exchange.params, "ref", dict)
    argument = required(exchange.params, "argument", dict)
    values = list(completions.complete(exchange, reference, argument))
    shown = values[:COMPLETIONS_SHOWN]
    return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}
