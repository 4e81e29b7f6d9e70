"""From raw arguments to an operation's request, or to a refusal that explains what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.known_types import make_known
from handrail.operation import Operation
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
