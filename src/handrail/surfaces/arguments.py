"""From raw arguments to an operation's request, or to a refusal that teaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.known_types import make_known
from handrail.operation import Operation
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
        raise InvalidParams(details, hint=takes) from None


def argument_names(operation: Operation[Any, Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(operation.request))
