"""The prompts the runner asks for, one that comes and goes, and completions for their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from conformance.resources import TEMPLATE
from conformance.samples import picture
from conformance.toolbox import text_block
from handrail.protocol.exchange import Exchange

Render: TypeAlias = Callable[[Exchange, Mapping[str, str]], list[dict[str, Any]]]

CONTEXT_FORM = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}


class Prompt(msgspec.Struct, frozen=True):
    """One prompt: how it is listed and what it says."""

    name: str
    description: str
    render: Render
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What each argument is, by its name; all are required."""

    def listed(self) -> dict[str, Any]:
        arguments = [{"name": name, "description": what, "required": True} for name, what in self.arguments.items()]
        return {"name": self.name, "description": self.description, "arguments": arguments}


class FixturePrompts:
    """Behind `prompts/list` and `prompts/get`."""

    def __init__(self) -> None:
        self._prompts = {prompt.name: prompt for prompt in _prompts()}

    def change(self) -> None:
        """Takes the changing prompt off the list, or puts it on."""
        if self._prompts.pop(CHANGING.name, None) is None:
            self._prompts[CHANGING.name] = CHANGING

    def published(self) -> Sequence[Mapping[str, Any]]:
        return [prompt.listed() for prompt in self._prompts.values()]

    def get(self, exchange: Exchange, name: str, arguments: Mapping[str, str]) -> dict[str, Any] | None:
        if (prompt := self._prompts.get(name)) is None:
            return None
        messages = prompt.render(exchange, arguments)
        return {"description": prompt.description, "messages": messages}


class FixtureCompletions:
    """Behind `completion/complete`."""

    _values: Mapping[tuple[str, str], tuple[str, ...]] = {
        ("test_prompt_with_arguments", "arg1"): ("paris", "park", "party", "test", "testing"),
        (TEMPLATE, "id"): ("123", "124", "200"),
    }

    def complete(
        self,
        exchange: Exchange,  # noqa: ARG002 - the port
        reference: Mapping[str, Any],
        argument: Mapping[str, Any],
    ) -> Sequence[str]:
        whose = reference.get("name") or reference.get("uri")
        known = self._values.get((str(whose), str(argument.get("name"))), ())
        return [value for value in known if value.startswith(str(argument.get("value", "")))]


def _prompts() -> list[Prompt]:
    both = {"arg1": "First test argument", "arg2": "Second test argument"}
    uri = {"resourceUri": "Address of the resource to embed"}
    return [
        Prompt("test_simple_prompt", "One sentence", _simple),
        Prompt("test_prompt_with_arguments", "Repeats its arguments", _repeating, both),
        Prompt("test_prompt_with_embedded_resource", "Embeds a resource", _embedding, uri),
        Prompt("test_prompt_with_image", "Shows a picture", _showing),
        Prompt("test_input_required_result_prompt", "Asks before it says anything", _asking),
    ]


def _user(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _simple(_exchange: Exchange, _arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [_user(text_block("This is a simple prompt for testing."))]


def _repeating(_exchange: Exchange, arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    first, second = arguments.get("arg1"), arguments.get("arg2")
    return [_user(text_block(f"Prompt with arguments: arg1='{first}', arg2='{second}'"))]


def _embedding(_exchange: Exchange, arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    resource = {
        "uri": arguments.get("resourceUri", "test://embedded-resource"),
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    request = text_block("Please process the embedded resource above.")
    return [_user({"type": "resource", "resource": resource}), _user(request)]


def _showing(_exchange: Exchange, _arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [_user(picture()), _user(text_block("Please analyze the image above."))]


def _asking(exchange: Exchange, _arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    reply = exchange.elicit("What context should the prompt use?", CONTEXT_FORM, key="user_context")
    context = reply.get("content", {}).get("context", "none")
    return [_user(text_block(f"Use this context: {context}"))]


CHANGING = Prompt("test_changing_prompt", "Comes and goes", _simple)
