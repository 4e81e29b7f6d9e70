"""Compact JSON Schemas of operations: no titles, no references, no empty defaults, no `or null` for optional members.

Every client pays for every token of a published schema on every turn; what a validator needs and a model can do without
is left out here and only here. So is what a model's API refuses (`portable`): one such keyword in one tool, and some
clients lose all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.known_types import make_known
from handrail.operation import Operation

_VERBATIM = ("enum", "const", "default", "required", "examples")
_NULL = {"type": "null"}
_UNKNOWN_TO_SOME = ("additionalProperties", "propertyNames", "uniqueItems")
"""Keywords of ours that Gemini's function declarations refuse. The server still refuses what they forbid."""
_SIMPLE = ({"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"})
_ANYTHING = {"anyOf": [*_SIMPLE, {"type": "array", "items": {"anyOf": [*_SIMPLE]}}]}
"""Any JSON, for APIs where every member has a type and every list says what is in it."""
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
GENEROUS = 200
"""A bound this large is nothing a caller has to plan for."""


def request_schema(operation: Operation[Any, Any]) -> dict[str, Any]:
    """The schema of an operation's arguments."""
    schema = schema_of(operation.request, nullable=False)
    schema.pop("description", None)  # the type's docstring: for readers of the code
    return {**schema, "required": schema.get("required", []), "additionalProperties": False}


def portable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the subset that every model's API takes: Gemini's `Schema` and OpenAI's function parameters. It
    promises no less than ours refuses: what it leaves out is checked by the call."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: portable(member) for name, member in value.items()}
        elif key == "items":
            kept[key] = portable(value)
        elif key == "anyOf":
            kept[key] = [portable(alternative) for alternative in value]
        elif key not in _UNKNOWN_TO_SOME and (key, value) != ("required", []):
            kept[key] = value
    if not {"type", "anyOf"} & kept.keys():
        kept |= _ANYTHING
    return kept


def response_schema(operation: Operation[Any, Any]) -> dict[str, Any]:
    """The schema of an operation's result."""
    if operation.response_schema is not None:
        return operation.response_schema()
    schema = schema_of(operation.response, nullable=True)
    schema.pop("description", None)
    return schema


def schema_of(kind: Any, *, nullable: bool) -> dict[str, Any]:
    """The trimmed schema of a type. `nullable` keeps `or null`: a result may have it, an argument is omitted."""
    make_known(kind)  # required for building its schema
    (schema,), definitions = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    trimmed = _trim(schema, definitions, nullable=nullable)
    assert isinstance(trimmed, dict)
    return trimmed


def _trim(node: Any, definitions: Mapping[str, Any], *, nullable: bool) -> Any:
    if isinstance(node, list):
        return [_trim(item, definitions, nullable=nullable) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        definition = {key: value for key, value in definitions[name].items() if key not in ("title", "description")}
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _trim({**definition, **rest}, definitions, nullable=nullable)
    trimmed: dict[str, Any] = {}
    for key, value in node.items():
        if key == "title" or (key == "default" and not value and value is not False and value != 0):
            continue
        if not nullable and _goes_without_saying(key, value):
            continue
        if key == "properties":
            trimmed[key] = {name: _trim(member, definitions, nullable=nullable) for name, member in value.items()}
        else:
            trimmed[key] = value if key in _VERBATIM else _trim(value, definitions, nullable=nullable)
    if "pattern" in trimmed:  # Python's \Z is JSON Schema's $
        trimmed["pattern"] = re.sub(r"\\Z$", "$", trimmed["pattern"])
    if "enum" in trimmed and "type" not in trimmed:
        (kind,) = {_TYPES[type(value)] for value in trimmed["enum"]}
        trimmed["type"] = kind
    if "type" in trimmed:
        trimmed = {"type": trimmed["type"], **trimmed}
    return trimmed if nullable else _without_null(trimmed)


def _goes_without_saying(key: str, value: Any) -> bool:
    """What a caller need not be told: bounds that only a mistake reaches (a refusal names them), and defaults that are
    `false` or empty."""
    if key in ("maxLength", "maxItems", "maximum"):
        return bool(value >= GENEROUS)
    if key == "default":
        return value is False or isinstance(value, dict)
    return (key, value) in (("minItems", 1), ("required", []), ("additionalProperties", False))


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """`T or null` says no more than `T` if the member is optional."""
    alternatives = node.get("anyOf")
    if isinstance(alternatives, list) and len(alternatives) == 2 and _NULL in alternatives:
        (other,) = [alternative for alternative in alternatives if alternative != _NULL]
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        return {**other, **rest}
    return node


# -- for people --------------------------------------------------------------------------------------------------------


def kind_of(member: Mapping[str, Any], tick: str = "`") -> str:
    """What an argument may be, in words: a choice's values, an object's members, bounds and default. `tick` goes around
    anything to be typed literally."""
    shown = "" if "default" not in member else msgspec.json.encode(member["default"]).decode()
    return _shape(member, tick) + (f", else {tick}{shown}{tick}" if shown else "")


def _shape(member: Mapping[str, Any], tick: str) -> str:
    if "enum" in member:
        return "one of " + ", ".join(f"{tick}{value}{tick}" for value in member["enum"])
    if "anyOf" in member:
        return " or ".join(dict.fromkeys(_shape(alternative, tick) for alternative in member["anyOf"]))
    kind = str(member.get("type", "any"))
    if kind == "array":
        return f"list of {_shape(member.get('items', {}), tick)}"
    if kind == "object" and member.get("properties"):
        return "object of " + ", ".join(f"{tick}{name}{tick}" for name in member["properties"])
    low, high = member.get("minimum"), member.get("maximum")
    if low is not None and high is not None:
        return f"{kind}, {low} to {high}"
    if low is not None or high is not None:
        return f"{kind}, {f'from {low}' if high is None else f'up to {high}'}"
    return kind
