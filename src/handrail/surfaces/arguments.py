"""From raw arguments to an operation's request, or to a refusal that explains what would be right.

Arguments that operations accept beside their own. Three identify the acting agent; two more are accepted while their
toolsets are on: `op_id`, by which a call can be cancelled, and `idempotency_key`, by which it is done only once. This
module only reads them; `invocation.py`, `cancellable_call.py` and `idempotency.py` act on them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.kernel.errors import ClaimHeld, InvalidParams
from handrail.known_types import make_known
from handrail.operation import Call, Effect, Operation
from handrail.surfaces.schemas import request_schema
from handrail.validator_words import explained, path_of


def parse_arguments(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Any:
    """The operation's request, or InvalidParams that says which argument is wrong, how, and what would be right."""
    make_known(operation.request)
    try:
        return msgspec.convert(arguments, operation.request)
    except msgspec.ValidationError as problem:
        words = str(problem)
        inner = _schema_at(operation, path_of(words)).get("properties") if path_of(words) else None
        names, thing = (tuple(inner), path_of(words)) if inner else (argument_names(operation), operation.name)
        takes = f"{thing} takes: {', '.join(names)}" if names else f"{thing} takes no arguments"
        details = explained(words, kind="argument", names=names, whole="the arguments")
        raise InvalidParams(details, hint=_values_at(operation, words) or takes) from None


def _values_at(operation: Operation[Any, Any], problem: str) -> str:
    """The allowed values for a wrong one; empty unless it is one of a fixed set."""
    if "enum value" not in problem:
        return ""
    where = path_of(problem)
    values = _schema_at(operation, where).get("enum", ())
    named = where.rpartition(".")[2] or operation.name
    return f"{named} is one of: {', '.join(map(str, values))}" if values else ""


def _schema_at(operation: Operation[Any, Any], where: str) -> dict[str, Any]:
    """The schema at a path such as `plan.tasks[0]`; empty if the schema does not go that far."""
    node: dict[str, Any] = request_schema(operation)
    for part in filter(None, re.split(r"[.\[]", where)):
        node = node.get("items", {}) if part.endswith("]") else node.get("properties", {}).get(part, {})
    return node


def argument_names(operation: Operation[Any, Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(operation.request))


AGENT_ID, FENCE, AGENT_SECRET = "agent_id", "fence", "agent_secret"
OP_ID = "op_id"
KEY = "idempotency_key"
KEYS = (KEY, "idempotencyKey")
"""The published name, and the one in registry.md."""
LONGEST = 200
RESERVED = "key:"
"""The prefix of ids that callers may not use."""
AGENT, CANCELLATION, IDEMPOTENCY = "agent", "cancellation", "idempotency"
"""The toolsets that make a tool list these arguments; the last two also make it accept them."""
TEXT = {"type": "string"}
IDENTITY = {AGENT_ID: TEXT, FENCE: {"type": "integer"}}
"""How the arguments that name the caller are listed."""
IN_WORDS = {
    AGENT_ID: {**TEXT, "description": "The agent in whose name the call is made; agent_register gives it"},
    FENCE: {"type": "integer", "description": "Of the agent's claim on the task; task_claim gives it"},
    AGENT_SECRET: {**TEXT, "description": "Proves that it is the agent; agent_register gives it"},
    OP_ID: {**TEXT, "description": "An id of your choice by which the call can be cancelled"},
    KEY: {**TEXT, "description": "A text of your choice; called again with it, nothing is done twice"},
}
"""All of them, as they are explained to people."""


class CommonArguments(NamedTuple):
    """What was given beside an operation's own arguments."""

    op_ids: tuple[str, ...] = ()
    key: str | None = None


def published_common(operation: Operation[Any, Any], active: Collection[str]) -> dict[str, Any]:
    """Which of them a tool's schema lists: the caller if a claim can refuse it, an id if it may wait, a key if it
    writes. Only these, because every client pays for them."""
    listed: dict[str, Any] = {**IDENTITY} if AGENT in active and ClaimHeld in operation.refusals else {}
    if CANCELLATION in active and operation.stored and operation.wait is not None and not _has_field(operation, OP_ID):
        listed[OP_ID] = TEXT
    if IDEMPOTENCY in active and _is_stored_write(operation):
        listed[KEY] = TEXT
    return listed


def accepted_common(operation: Operation[Any, Any], active: Collection[str]) -> dict[str, Any]:
    """All that a call of an operation may carry beside its own arguments while these toolsets are on, for people: they
    pay for no tokens."""
    accepted = [AGENT_ID, FENCE, AGENT_SECRET] if AGENT in active and operation.stored else []
    accepted += [OP_ID] if CANCELLATION in active and operation.stored else []
    accepted += [KEY] if IDEMPOTENCY in active and _is_stored_write(operation) else []
    return {name: IN_WORDS[name] for name in accepted if not _has_field(operation, name)}


def take_common(
    operation: Operation[Any, Any], call: Call, arguments: Mapping[str, Any], known_as: str | None = None
) -> tuple[CommonArguments, dict[str, Any]]:
    """Separates the arguments that every operation accepts from the rest. If the operation itself has an argument of
    one of these names, it stays the operation's. `known_as` is another id of the call, such as an MCP task's."""
    rest = dict(arguments)
    seen = has_toolset(call, CANCELLATION) and not call.toolsets.read_only
    op_ids = [_op_id(operation, call, rest), known_as if seen else None]
    return CommonArguments(tuple(dict.fromkeys(one for one in op_ids if one)), _key(operation, call, rest)), rest


def _has_field(operation: Operation[Any, Any], name: str) -> bool:
    return name in operation.request.__struct_fields__


def _is_stored_write(operation: Operation[Any, Any]) -> bool:
    return operation.stored and operation.effect is not Effect.READ


def _op_id(operation: Operation[Any, Any], call: Call, rest: dict[str, Any]) -> str | None:
    if OP_ID not in rest or not operation.stored or _has_field(operation, OP_ID):
        return None
    op_id = _text(OP_ID, rest.pop(OP_ID))
    if not has_toolset(call, CANCELLATION):
        raise InvalidParams(
            "op_id is understood only where the toolset cancellation is on",
            hint="start with --enable-cancellation, or leave it out",
        )
    if call.toolsets.read_only:
        raise InvalidParams("op_id is written down, and this connection only reads", hint="leave it out")
    if op_id.startswith(RESERVED):
        raise InvalidParams(f"op_id may not begin with {RESERVED}", hint="any other text will do")
    return op_id


def _key(operation: Operation[Any, Any], call: Call, rest: dict[str, Any]) -> str | None:
    given = [_text(name, rest.pop(name)) for name in KEYS if name in rest and not _has_field(operation, name)]
    if not given:
        return None
    if not has_toolset(call, IDEMPOTENCY):
        raise InvalidParams(
            f"{KEY} is understood only where the toolset idempotency is on",
            hint="start with --enable-idempotency, or leave it out",
        )
    if not _is_stored_write(operation):
        raise InvalidParams(
            f"{operation.name} changes nothing in the store, so there is nothing to do only once",
            hint=f"leave {KEY} out; calling it again is safe",
        )
    if len(set(given)) > 1:
        raise InvalidParams(f"{' and '.join(KEYS)} are one argument and differ", hint=f"give {KEY} alone")
    return given[0]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise InvalidParams(f"{name} is a printable text of at most {LONGEST} characters", hint="a UUID will do")
    return value


def has_toolset(call: Call, toolset: str) -> bool:
    """Whether this toolset is on."""
    return any(active.name == toolset for active in call.toolsets.active())
