"""`handrail call TOOL …`: any operation of the catalog from the command line, with the arguments its tool takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.catalog import operation_named
from handrail.kernel.errors import InvalidParams, NotFound
from handrail.kernel.ledger import Actor
from handrail.kernel.wording import did_you_mean
from handrail.operation import Operation
from handrail.protocol.wire import encode
from handrail.surfaces.arguments import IN_WORDS, accepted_common
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.columns import columns, pad, widest, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of, toolset_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.invocation import invoke
from handrail.surfaces.mcp.tools import why_not_here
from handrail.surfaces.schemas import kind_of, request_schema
from handrail.wiring import Handrail, assemble

CHANNEL = "call"
"""Not `cli`: scripts and agents call tools this way, and the channel marks what only a person does."""


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("tool", shell_complete=completions.tools)
@click.argument("arguments", nargs=-1, shell_complete=completions.arguments)
@click.option("--arguments", "show_arguments", is_flag=True, help="Show the arguments of TOOL instead of calling it.")
@toolset_options
@common_options
def call(
    tool: str, arguments: tuple[str, ...], show_arguments: bool, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Call TOOL and print its result.

    ARGUMENTS is one JSON object, or key=value pairs; a value is read as JSON unless the tool takes a text there.

    \b
      handrail call workflow_next '{"workflowId": "bug-hunt", "completedSteps": []}'
      handrail call workflow_next workflowId=bug-hunt completedSteps=[]
    """
    place = place_of(root)
    if options.get("profile") is None and options.get("toolsets") is None:
        options["profile"] = "all"
    handrail = assemble(place, settings_of(place, options))
    operation = _operation(handrail, tool)
    if show_arguments:
        _show(operation, {toolset.name for toolset in handrail.call.toolsets.active()}, as_json=as_json)
        return
    try:
        actor = Actor(person().name, CHANNEL)
        result = invoke(operation, handrail.call, parse_pairs(operation, arguments), actor=actor)
    except InvalidParams as refusal:
        explains = f"`handrail call {tool} --arguments` explains them"
        raise InvalidParams(refusal.message, hint="; ".join(filter(None, (refusal.hint, explains)))) from None
    echo_json(result, pretty=not as_json)


def _operation(handrail: Handrail, name: str) -> Operation[Any, Any]:
    operation = handrail.switch.find(name)
    if operation is not None:
        return operation
    if (elsewhere := operation_named(name)) is not None:
        reason = why_not_here(elsewhere, handrail.switch, handrail.call)
        raise NotFound(f"{name} cannot be called: {reason}", hint="without --profile and --toolsets every tool is on")
    known = [entry.name for entry in handrail.switch.published()]
    raise NotFound(
        f"there is no tool {name}{did_you_mean(name, known)}", hint="`handrail tools --profile all` lists them"
    )


def parse_pairs(operation: Operation[Any, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """One JSON object, or key=value pairs. A pair's value is a text if the tool takes a text there, otherwise JSON."""
    if len(arguments) == 1 and arguments[0].lstrip().startswith("{"):
        try:
            parsed = msgspec.json.decode(arguments[0])
        except msgspec.DecodeError as problem:
            raise InvalidParams(
                f"the arguments are not valid JSON: {problem}", hint=f"or give pairs, such as {_example(operation)}"
            ) from None
        assert isinstance(parsed, dict)
        return parsed
    properties = {**IN_WORDS, **request_schema(operation)["properties"]}
    values: dict[str, Any] = {}
    for pair in arguments:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InvalidParams(
                f"{pair} is neither key=value nor a JSON object", hint=f"for example {_example(operation)}"
            )
        values[key] = text if properties.get(key, {}).get("type") == "string" else _json_or_text(text)
    return values


def _example(operation: Operation[Any, Any]) -> str:
    """Arguments that work, as pairs for a shell."""
    shown = next(example for example in operation.examples if example.response is not None).request
    pairs = (f"{key}={value if isinstance(value, str) else encode(value).decode()}" for key, value in shown.items())
    return " ".join(map(shlex.quote, pairs)) or "no arguments at all"


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _show(operation: Operation[Any, Any], active: set[str], *, as_json: bool) -> None:
    schema = request_schema(operation)
    own, beside = schema["properties"], accepted_common(operation, active)
    if as_json:
        echo_json({**schema, "properties": {**own, **beside}})
        return
    room = columns()
    names = widest((*own, *beside), room // 2)
    echo_lines(wrapped(f"{operation.name}: {operation.summary}", room))
    click.echo()
    if not own:
        click.echo("It takes no arguments of its own." if beside else "It takes no arguments.")
    echo_lines(_argument_lines(own, schema.get("required", ()), names, room))
    if beside:
        click.echo()
        echo_lines(wrapped("Beside its own, like every tool that uses the store:", room))
        echo_lines(_argument_lines(beside, (), names, room))


def _argument_lines(
    arguments: Mapping[str, Mapping[str, Any]], required: Sequence[str], names: int, room: int
) -> Iterator[str]:
    for name, member in arguments.items():
        said = f"{'needed; ' if name in required else ''}{kind_of(member, tick='')}"
        about = f". {member['description']}" if member.get("description") else ""
        lines = wrapped(said + about, room, " " * (names + 2))
        yield from (f"{pad(name, names)}  {line.lstrip()}" if at == 0 else line for at, line in enumerate(lines))
