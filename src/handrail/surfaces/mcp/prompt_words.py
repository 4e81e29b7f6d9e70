"""Which of the words behind a prompt are names, and which are the request: clients disagree about how to hand them on.

A form gives each argument its own value. Claude Code splits what was typed at blanks, a word for each argument.
OpenCode asks with `$1`, `$2` in place of every argument, and puts the words into the text that it gets back. So a value
that does not name what its argument is for belongs to the request, in the order in which it was typed, and the first
words of the request may be names. Only a value that came without a request is refused. Loaded with the first prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.domain.crew.agent import Agent
from handrail.domain.pipeline.request import EFFORTS
from handrail.domain.prompts.text import PromptArgument
from handrail.domain.recovery.options import LEAST_TOKENS
from handrail.domain.registry.addresses import LONGEST_ID
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.surfaces.mcp.prompt_values import MOST_TOKENS, PromptView

REQUEST = "request"
"""The argument that is free text, the first one of every prompt; all others are names or ids."""
_RECORDS: dict[str, Any] = {"task": Task, "workflow": Workflow, "to": Agent}
_IDS = ("guide", *_RECORDS)


def sorted_out(look: PromptView, taken: Sequence[PromptArgument], given: Mapping[str, str]) -> dict[str, str]:
    """The values by argument, as they were meant. Raises InvalidParams."""
    named: dict[str, str] = {}
    words = [given[REQUEST]] if REQUEST in given else []
    for argument in taken:
        value = given.get(argument.name)
        if argument.name == REQUEST or value is None:
            continue
        if words and not _is_name(look, argument.name, value):
            words.append(value)
        else:
            named[argument.name] = _checked_id(argument.name, value)
    request = " ".join(words)
    for argument in taken:
        first, _, rest = request.partition(" ")
        if argument.name in _IDS and argument.name not in named and _is_name(look, argument.name, first):
            named[argument.name], request = first, rest.strip()
    _check_required(taken, named, request)
    return {**named, REQUEST: request} if request else named


def _is_name(look: PromptView, kind: str, value: str) -> bool:
    """Whether a value names something of this kind."""
    if not _may_be_id(value):
        return False
    if kind == "budget":
        return value.isascii() and value.isdigit() and LEAST_TOKENS <= int(value[:9]) <= MOST_TOKENS
    if kind == "effort":
        return value.upper() in EFFORTS
    if kind == "guide":
        return any(loaded.guide.id == value for loaded in look.call.world.guides().guides())
    record = _RECORDS[kind]
    return bool(look.read(lambda unit: unit.get(record, value) is not None))


def _may_be_id(value: str) -> bool:
    return 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value


def _checked_id(name: str, value: str) -> str:
    if len(value) > LONGEST_ID or not value.isprintable():
        raise InvalidParams(f"{name} is no id", hint="completion shows those there are", argument=name)
    return value


def _check_required(taken: Sequence[PromptArgument], named: Mapping[str, str], request: str) -> None:
    for argument in taken:
        if argument.name == REQUEST and argument.required and not request and not any(name in _IDS for name in named):
            raise InvalidParams(
                f"{REQUEST} is required",
                hint=f"{REQUEST}: {argument.description[0].lower()}{argument.description[1:]}",
                argument=REQUEST,
            )
