"""From raw arguments to an operation's request, or to a refusal that teaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.known_types import make_known
from handrail.operation import Operation
from handrail.surfaces.schemas import request_schema
from handrail.validator_words import explained


def parse_arguments(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Any:
    """The operation's request, or InvalidParams that says which argument is wrong, how, and what would be right."""
    make_known(operation.request)
    try:
        return msgspec.convert(arguments, operation.request)
    except msgspec.ValidationError as problem:
        names = argument_names(operation)
        takes = f"{operation.name} takes: {', '.join(names)}" if names else f"{operation.name} takes no arguments"
        details = explained(str(problem), kind="argument", names=names, whole="the arguments")
        raise InvalidParams(details, hint=_values_at(operation, str(problem)) or takes) from None


def _values_at(operation: Operation[Any, Any], problem: str) -> str:
    """The values that may stand where a wrong one stood; nothing where it is not one of a few."""
    if "enum value" not in problem:
        return ""
    node: Any = request_schema(operation)
    path = [part for part in re.split(r"[.\[]", problem.rpartition("`$")[2].rstrip("`")) if part]
    for part in path:
        node = node.get("items" if part.endswith("]") else "properties", {})
        node = node if part.endswith("]") else node.get(part, {})
    values = node.get("enum", ())
    return f"{path[-1] if path else operation.name} is one of: {', '.join(map(str, values))}" if values else ""


def argument_names(operation: Operation[Any, Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(operation.request))
