"""From raw arguments to an operation's request. The only place that turns a validator's words into ones that teach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.kernel.nearest import did_you_mean
from handrail.operation import Operation

_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`")
_TYPE = re.compile(r"Expected `(?P<want>[^`]*)`, got `(?P<got>[^`]*)`")
_BOUND = re.compile(r"Expected `(?P<kind>[^`]*)` of length (?P<sign>[<>]=) (?P<bound>\d+)")
_VALUE = re.compile(r"Expected `(?P<kind>[^`]*)` (?P<sign>[<>]=?) (?P<bound>[-\d.]+)")
_PATTERN = re.compile(r"Expected `str` matching regex '(?P<pattern>.*?)'(?: - at |$)")
_PYTHON_END = re.compile(r"\\+Z$")  # as it stands in the validator's words: escaped once more
_PATH = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")

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
    located = _PATH.search(problem)
    path = located["path"].lstrip(".") if located else ""
    names = argument_names(operation)
    takes = f"{operation.name} takes: {', '.join(names)}" if names else f"{operation.name} takes no arguments"
    if match := _MISSING.match(problem):
        return f"{_join(path, match['field'])} is required", takes
    if match := _UNKNOWN.match(problem):
        unknown = match["field"]
        return f"unknown argument {_join(path, unknown)}{did_you_mean(unknown, names)}", takes
    return _explain_value(problem, path or "the arguments"), takes


def _explain_value(problem: str, subject: str) -> str:
    if match := _BOUND.match(problem):
        one, many = ("character", "characters") if match["kind"] == "str" else ("entry", "entries")
        return f"{subject} must have {_SIGNS[match['sign']]} {match['bound']} {one if match['bound'] == '1' else many}"
    if match := _PATTERN.match(problem):
        return f"{subject} must match {_PYTHON_END.sub('$', match['pattern'])}"
    if match := _VALUE.match(problem):
        return f"{subject} must be {_SIGNS[match['sign']]} {match['bound']}"
    if match := _TYPE.match(problem):
        wanted = " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in match["want"].split("|"))
        got = _KINDS.get(match["got"], match["got"])
        return f"{subject} must be {wanted}, not {got}"
    text = _PATH.sub("", problem)
    return text[:1].lower() + text[1:] if subject == "the arguments" else f"{subject}: {text[:1].lower()}{text[1:]}"


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
