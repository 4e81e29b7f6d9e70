"""Prompts on the wire: what a person picks in their client, for example as a slash command. Only those whose tools are
on are listed.

The texts are data (`handrail/prompts`), read when first needed; the values filled in come from `prompt_values.py`.
Nothing here changes anything: a prompt tells an agent what to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.catalog import whole_catalog
from handrail.kernel.errors import InvalidParams, NotFound, Refusal
from handrail.kernel.nearest import did_you_mean
from handrail.operation import Call
from handrail.protocol.exchange import Exchange
from handrail.protocol.wire import INVALID_PARAMS, RpcError
from handrail.selection import how_to_enable
from handrail.surfaces.mcp.tools import rpc_error_for
from handrail.surfaces.refusals import cut, error_object

if TYPE_CHECKING:
    from handrail.domain.prompts.text import PromptArgument, PromptText

LONGEST = 20_000
"""The longest argument, in characters."""
FREE_TEXT = "request"
"""The argument that is free text; all others are names or ids."""


def tools_there(call: Call) -> dict[str, str]:
    """The name of each tool on this server, by the names that prompt texts use: its own, and the one prefixed with its
    document. If two tools share a name, the one listed first gets it."""
    there: dict[str, str] = {}
    for entry in call.toolsets.published():
        there[f"{entry.operation.toolset.family}_{entry.operation.name}"] = entry.name
        there.setdefault(entry.operation.name, entry.name)
    return there


class CatalogPrompts:
    """Behind the protocol's `Prompts` port."""

    def __init__(self, call: Call, texts: Callable[[], Mapping[str, PromptText]]) -> None:
        self._call = call
        self._texts = texts
        self._told: list[dict[str, Any]] | None = None
        """The list that clients saw last; None until one has asked."""

    def published(self) -> Sequence[Mapping[str, Any]]:
        self._told = self._offer()
        return self._told

    def is_outdated(self) -> bool:
        """Whether a client was given a list that is no longer current."""
        return self._told is not None and self._told != self._offer()

    def _offer(self) -> list[dict[str, Any]]:
        there = tools_there(self._call)
        return [_listed(text, there) for text in self._texts().values() if text.misses(there) is None]

    def arguments_of(self, name: object) -> dict[str, PromptArgument]:
        """A prompt's arguments by name; empty if it is not available."""
        there = tools_there(self._call)
        text = self._texts().get(name) if isinstance(name, str) else None
        if text is None or text.misses(there) is not None:
            return {}
        return {argument.name: argument for argument in text.taken(there)}

    def get(self, exchange: Exchange, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        from handrail.domain.prompts.text import filled  # noqa: PLC0415 - every start would pay
        from handrail.surfaces.mcp.prompt_values import PromptView, values_for  # noqa: PLC0415 - as above

        there = tools_there(self._call)
        text = self._find_prompt(name, there)
        try:
            given = _checked_arguments(text, text.taken(there), arguments)
            values = values_for(text.name, PromptView(self._call, exchange), given)
        except NotFound as refusal:  # something that an argument names
            raise _invalid(refusal) from refusal
        except Refusal as refusal:
            raise rpc_error_for(exchange, refusal) from refusal
        told = filled(text.body, {**there, **values})
        return {
            "description": text.description,
            "messages": [{"role": "user", "content": {"type": "text", "text": told}}],
        }

    def _find_prompt(self, name: str, there: Mapping[str, str]) -> PromptText:
        texts = self._texts()
        text = texts.get(name)
        if text is None:
            known = [one.name for one in texts.values() if one.misses(there) is None]
            hint = f"prompts here: {', '.join(known)}" if known else "no prompt is on offer with these toolsets"
            details = f"there is no prompt {name[:100]}{did_you_mean(name[:100], known)}"
            data = {"name": cut(name), "details": details, "hint": hint}
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {cut(name)}", data)
        if (need := text.misses(there)) is not None:
            data = {"name": name, "details": f"{name} needs {need}, which is off here", "hint": _turned_on_by(need)}
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}", data)
        return text


def _listed(text: PromptText, there: Mapping[str, str]) -> dict[str, Any]:
    arguments = [
        {"name": argument.name, "description": argument.description, "required": argument.required}
        for argument in text.taken(there)
    ]
    return {"name": text.name, "title": text.title, "description": text.description, "arguments": arguments}


def _checked_arguments(
    text: PromptText, taken: Sequence[PromptArgument], arguments: Mapping[str, str]
) -> dict[str, str]:
    """The arguments that are not empty. Clients send an empty text for those left out."""
    from handrail.domain.registry.addresses import LONGEST_ID  # noqa: PLC0415 - every start would pay

    known = [argument.name for argument in taken]
    for name, value in arguments.items():
        if name not in known:
            raise InvalidParams(
                f"{text.name} takes no {name[:100]}{did_you_mean(name[:100], known)}",
                hint=f"it takes {', '.join(known)}",
                argument=name[:100],
            )
        if len(value) > LONGEST:
            raise InvalidParams(
                f"{name} has {len(value)} characters, and {LONGEST} is the most",
                hint="put it into a file and name that",
                argument=name,
            )
        if name != FREE_TEXT and not (len(value) <= LONGEST_ID and value.isprintable()):
            raise InvalidParams(f"{name} is no id", hint="completion shows those there are", argument=name)
    given = {name: value.strip() for name, value in arguments.items() if value.strip()}
    for argument in taken:
        if argument.required and argument.name not in given:
            raise InvalidParams(
                f"{argument.name} is required",
                hint=f"{argument.name}: {argument.description[0].lower()}{argument.description[1:]}",
                argument=argument.name,
            )
    return given


def _invalid(refusal: Refusal) -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid params", {**error_object(refusal), "details": refusal.message})


def _turned_on_by(need: str) -> str:
    """The switches that turn on toolsets with one of these tools."""
    from handrail.domain.prompts.text import alternatives  # noqa: PLC0415 - every start would pay

    wanted = alternatives(need)
    switches = [
        how_to_enable(operation.toolset)
        for operation in whole_catalog()
        if operation.name in wanted or f"{operation.toolset.family}_{operation.name}" in wanted
    ]
    return f"start with {' or '.join(dict.fromkeys(switches))}"
