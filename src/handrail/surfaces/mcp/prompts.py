"""Prompts on the wire: what a person picks in their client, for example as a slash command. Only those whose tools are
on are listed.

The texts are data (`handrail/prompts`), read when first needed; the values filled in come from `prompt_values.py`, and
`prompt_words.py` tells which of the typed words are names. Nothing here changes anything: a prompt tells an agent what
to call. One that cannot be filled in says so in its text: clients show an error of the protocol to nobody, and what the
person typed would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.catalog import whole_catalog
from handrail.kernel.errors import InvalidParams, Refusal
from handrail.kernel.late import late_module
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call
from handrail.protocol.exchange import Exchange
from handrail.protocol.wire import INVALID_PARAMS, RpcError
from handrail.selection import how_to_enable
from handrail.surfaces.mcp.tools import note_failure
from handrail.surfaces.refusals import cut

if TYPE_CHECKING:
    from handrail.domain.prompts import text as prompt_texts
    from handrail.domain.prompts.text import PromptArgument, PromptText
    from handrail.surfaces.mcp import prompt_values, prompt_words
else:  # loaded when the first prompt is asked for
    prompt_texts = late_module("handrail.domain.prompts.text")
    prompt_values = late_module("handrail.surfaces.mcp.prompt_values")
    prompt_words = late_module("handrail.surfaces.mcp.prompt_words")

LONGEST = 20_000
"""The longest argument, in characters."""


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
        text = self._named(name) if isinstance(name, str) else None
        if text is None or text.misses(there) is not None:
            return {}
        return {argument.name: argument for argument in text.taken(there)}

    def get(self, exchange: Exchange, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        there = tools_there(self._call)
        text = self._find_prompt(name, there)
        taken = text.taken(there)
        given = _known_arguments(text, taken, arguments)
        look = prompt_values.PromptView(self._call, exchange)
        try:
            _check_sizes(given)
            said = prompt_words.sorted_out(look, taken, given)
            told = prompt_texts.filled(text.body, {**there, **prompt_values.values_for(text.name, look, said)})
        except Refusal as refusal:
            note_failure(exchange, refusal)
            told = prompt_values.refused_text(text.name, refusal, given)
        return {
            "description": text.description,
            "messages": [{"role": "user", "content": {"type": "text", "text": told}}],
        }

    def _named(self, name: str) -> PromptText | None:
        texts = self._texts()
        return texts.get(name) or next((text for text in texts.values() if name in text.aliases), None)

    def _find_prompt(self, name: str, there: Mapping[str, str]) -> PromptText:
        text = self._named(name)
        if text is None:
            known = [one.name for one in self._texts().values() if one.misses(there) is None]
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


def _known_arguments(text: PromptText, taken: Sequence[PromptArgument], arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments that are not empty. Clients send an empty text for those left out."""
    known = [argument.name for argument in taken]
    for name in arguments:
        if name not in known:
            details = f"{text.name} takes no {name[:100]}{did_you_mean(name[:100], known)}"
            data = {"argument": name[:100], "details": details, "hint": f"it takes {', '.join(known)}"}
            raise RpcError(INVALID_PARAMS, "Invalid params", data)
    return {name: value.strip() for name, value in arguments.items() if value.strip()}


def _check_sizes(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if len(value) > LONGEST:
            raise InvalidParams(
                f"{name} has {len(value)} characters, and {LONGEST} is the most",
                hint="put it into a file and name that",
                argument=name,
            )


def _turned_on_by(need: str) -> str:
    """The switches that turn on toolsets with one of these tools."""
    wanted = prompt_texts.alternatives(need)
    switches = [
        how_to_enable(operation.toolset)
        for operation in whole_catalog()
        if operation.name in wanted or f"{operation.toolset.family}_{operation.name}" in wanted
    ]
    return f"start with {' or '.join(dict.fromkeys(switches))}"
