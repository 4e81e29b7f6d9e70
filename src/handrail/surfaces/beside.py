"""Arguments that operations understand beside their own, each while its toolset is on: `op_id`, by which a call can be
cancelled, and `idempotency_key`, by which it is done once. Only what they are; what they do is `under_way.py`'s and
`kept_answers.py`'s."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from handrail.kernel.errors import InvalidParams
from handrail.operation import Call, Effect, Operation

OP_ID = "op_id"
KEY = "idempotency_key"
KEYS = (KEY, "idempotencyKey")
"""The published name, and the one registry.md writes."""
LONGEST = 200
RESERVED = "key:"
"""How the ids begin that are no caller's to give."""
CANCELLATION, IDEMPOTENCY = "cancellation", "idempotency"
"""The toolsets that turn them on."""
TEXT = {"type": "string"}


class Beside(NamedTuple):
    """What was given beside an operation's own arguments."""

    op_ids: tuple[str, ...] = ()
    key: str | None = None


def published_beside(operation: Operation[Any, Any], active: Collection[str]) -> dict[str, Any]:
    """What a tool's schema lists of them: an id where a call may wait, a key where it writes. Every client pays."""
    listed: dict[str, Any] = {}
    if CANCELLATION in active and operation.stored and operation.wait is not None and not _owns(operation, OP_ID):
        listed[OP_ID] = TEXT
    if IDEMPOTENCY in active and _keeps(operation):
        listed[KEY] = TEXT
    return listed


def take_beside(
    operation: Operation[Any, Any], call: Call, arguments: Mapping[str, Any], known_as: str | None = None
) -> tuple[Beside, dict[str, Any]]:
    """What is meant for every operation, and the rest. An argument of the operation's own that has one of these names
    stays its own. `known_as` is an id that the call has besides, as a task of the MCP extension has one."""
    rest = dict(arguments)
    seen = _is_on(call, CANCELLATION) and not call.toolsets.read_only
    op_ids = [_op_id(operation, call, rest), known_as if seen else None]
    return Beside(tuple(dict.fromkeys(one for one in op_ids if one)), _key(operation, call, rest)), rest


def _owns(operation: Operation[Any, Any], name: str) -> bool:
    return name in operation.request.__struct_fields__


def _keeps(operation: Operation[Any, Any]) -> bool:
    return operation.stored and operation.effect is not Effect.READ


def _op_id(operation: Operation[Any, Any], call: Call, rest: dict[str, Any]) -> str | None:
    if OP_ID not in rest or not operation.stored or _owns(operation, OP_ID):
        return None
    op_id = _text(OP_ID, rest.pop(OP_ID))
    if not _is_on(call, CANCELLATION):
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
    given = [_text(name, rest.pop(name)) for name in KEYS if name in rest and not _owns(operation, name)]
    if not given:
        return None
    if not _is_on(call, IDEMPOTENCY):
        raise InvalidParams(
            f"{KEY} is understood only where the toolset idempotency is on",
            hint="start with --enable-idempotency, or leave it out",
        )
    if not _keeps(operation):
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


def _is_on(call: Call, toolset: str) -> bool:
    return any(active.name == toolset for active in call.toolsets.active())
