"""From raw arguments to an operation's request. The only place that turns a validator's words into ones that teach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.kernel.nearest import did_you_mean
from handrail.operation import Operation

# Plain texts, not compiled here: only a wrong call needs them, and every start would pay.
_MISSING = r"Object missing required field `(?P<field>[^`]*)`"
_UNKNOWN = r"Object contains unknown field `(?P<field>[^`]*)`"
_TYPE = r"Expected `(?P<want>[^`]*)`, got `(?P<got>[^`]*)`"
_BOUND = r"Expected `(?P<kind>[^`]*)` of length (?P<sign>[<>]=) (?P<bound>\d+)"
_VALUE = r"Expected `(?P<kind>[^`]*)` (?P<sign>[<>]=?) (?P<bound>[-\d.]+)"
_PATTERN = r"Expected `str` matching regex '(?P<pattern>.*?)'(?: - at |$)"
_PYTHON_END = r"\\+Z$"  # as it stands in the validator's words: escaped once more
_PATH = r" - at `(?:key in )?\$(?P<path>[^`]*)`$"

_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_SIGNS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def parse_arguments(operation: Operation[Any, Any], arguments: Mapping[str, Any]) -> Any:
    """The operation's request, or InvalidParams that says which argument is wrong, how, and what would be right."""
    try:
        return msgspec.convert(arguments, operation.request)
    except msgspec.ValidationError as problem:
        details, hint = _explain(str(problem), operation)
        raise InvalidParams(details, hint=hint) from None


def argument_names(operation: Operation[Any, Any]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(operation.request))


def _explain(problem: str, operation: Operation[Any, Any]) -> tuple[str, str]:
    located = re.search(_PATH, problem)
    path = located["path"].lstrip(".") if located else ""
    names = argument_names(operation)
    takes = f"{operation.name} takes: {', '.join(names)}" if names else f"{operation.name} takes no arguments"
    if match := re.match(_MISSING, problem):
        return f"{_join(path, match['field'])} is required", takes
    if match := re.match(_UNKNOWN, problem):
        unknown = match["field"]
        return f"unknown argument {_join(path, unknown)}{did_you_mean(unknown, names)}", takes
    return _explain_value(problem, path or "the arguments"), takes


def _explain_value(problem: str, subject: str) -> str:
    if match := re.match(_BOUND, problem):
        one, many = ("character", "characters") if match["kind"] == "str" else ("entry", "entries")
        return f"{subject} must have {_SIGNS[match['sign']]} {match['bound']} {one if match['bound'] == '1' else many}"
    if match := re.match(_PATTERN, problem):
        return f"{subject} must match {re.sub(_PYTHON_END, '$', match['pattern'])}"
    if match := re.match(_VALUE, problem):
        return f"{subject} must be {_SIGNS[match['sign']]} {match['bound']}"
    if match := re.match(_TYPE, problem):
        wanted = " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in match["want"].split("|"))
        got = _KINDS.get(match["got"], match["got"])
        return f"{subject} must be {wanted}, not {got}"
    text = re.sub(_PATH, "", problem)
    return text[:1].lower() + text[1:] if subject == "the arguments" else f"{subject}: {text[:1].lower()}{text[1:]}"


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
