"""The file format as JSON Schema 2020-12, for editors and for the tool that returns a guide.

Not the check itself: `definition.parse_guide` also catches what a schema cannot express (duplicate step ids, min above
max, patterns that do not compile, nesting, the server's version).
"""

from __future__ import annotations

from typing import Any

from handrail.domain.guides import definition

SCHEMA_ID = "workflow.schema.json"

_COMPARISONS = {
    "equals": "The variable has this value: no conversion, null is a value, lists and objects compare deeply.",
    "not_equals": "The variable is missing or has another value.",
    "gt": "The variable is a number above this.",
    "gte": "The variable is a number not below this.",
    "lt": "The variable is a number below this.",
    "lte": "The variable is a number not above this.",
}


def guide_json_schema() -> dict[str, Any]:
    """A new copy of the schema; the caller may change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Guide",
        "description": "Steps an agent follows one at a time, in file order.",
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "name", "description", "version", "steps"],
        "properties": {
            "$schema": _text("Where an editor finds this schema. Says nothing about the guide."),
            "id": _id("The guide's id. A file of a later folder replaces an earlier one with the same id."),
            "name": _text("What people call it.", 1, definition.NAME_MAX),
            "description": _text("When to follow it, in a sentence or two.", 1, definition.DESCRIPTION_MAX),
            "version": _version("The guide's own version (SemVer 2)."),
            "category": {**_text("A heading to list it under.", 1, definition.CATEGORY_MAX), "default": "general"},
            "minServerVersion": _version("The oldest Handrail that can follow it (SemVer 2)."),
            "preconditions": _notes("What must be true before the first step."),
            "clarificationPrompts": _notes("Questions to settle with the user before the first step."),
            "metaGuidance": _notes("What holds for every step."),
            "steps": {
                "description": "The steps in order.",
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/step"},
            },
        },
        "$defs": {
            "step": _step(),
            "condition": _condition(),
            "rule": _rule(),
            "composition": _composition(),
        },
    }


def _step() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "title", "prompt"],
        "properties": {
            "id": _id("The step's id, used once in the guide."),
            "title": _text("What the step is, in a few words.", 1, definition.NAME_MAX),
            "prompt": _text("What the agent is told to do.", 1, definition.PROMPT_MAX),
            "guidance": {
                "description": "Lines that come before the prompt.",
                "type": "array",
                "items": {"type": "string"},
            },
            "askForFiles": _flag("Ask the user for the files the step needs."),
            "requireConfirmation": _flag("Ask the user to confirm before the next step."),
            "runCondition": {"description": "When the step applies. Left out: always.", "$ref": "#/$defs/condition"},
            "validationCriteria": {
                "description": "What the step's output must satisfy: a list of rules that all must pass, or one "
                "composition.",
                "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/rule"}}, {"$ref": "#/$defs/composition"}],
            },
        },
    }


def _condition() -> dict[str, Any]:
    any_value = ("equals", "not_equals")
    comparisons = {
        name: {"description": text} if name in any_value else {"description": text, "type": "number"}
        for name, text in _COMPARISONS.items()
    }
    inner = {"$ref": "#/$defs/condition"}
    return {
        "description": "Holds when everything it says holds. Empty: always.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "var": _text("A key of the context. With no comparison: it is set and not false, null, 0 or empty.", 1),
            **comparisons,
            "and": {"description": "All of these hold.", "type": "array", "items": inner},
            "or": {"description": "At least one of these holds.", "type": "array", "items": inner},
            "not": {"description": "This does not hold.", **inner},
        },
        "dependentRequired": {name: ["var"] for name in _COMPARISONS},
    }


def _rule() -> dict[str, Any]:
    count = {"type": "integer", "minimum": 0}
    needs = {"contains": ["value"], "regex": ["pattern"], "length": [], "schema": ["schema"]}
    variants: list[dict[str, Any]] = [
        {"properties": {"type": {"const": kind}}, "required": fields} for kind, fields in needs.items() if fields
    ]
    variants.append(
        {"properties": {"type": {"const": "length"}}, "anyOf": [{"required": ["min"]}, {"required": ["max"]}]}
    )
    return {
        "description": "One check of the output.",
        "type": "object",
        "additionalProperties": False,
        "required": ["type", "message"],
        "properties": {
            "type": {"description": "Which check it is.", "enum": list(needs)},
            "message": _text("What the agent is told when the rule fails.", 1),
            "value": _text("contains: the text that must be there, small and capital letters as written.", 1),
            "pattern": _text("regex: the pattern to find (RE2: no look-around, no back-references).", 1),
            "flags": {
                **_text(
                    "regex: i ignores case, m matches at line ends, s lets . match line breaks; g, u, y do nothing."
                ),
                "pattern": definition.FLAGS_PATTERN,
            },
            "min": {"description": "length: the fewest characters.", **count},
            "max": {"description": "length: the most characters.", **count},
            "schema": {"description": "schema: a JSON Schema for the output, read as JSON.", "type": "object"},
            "condition": {"description": "When the rule applies. Left out: always.", "$ref": "#/$defs/condition"},
        },
        "oneOf": variants,
        "dependentSchemas": {
            field: {"properties": {"type": {"const": kind}}}
            for kind, fields in definition.RULE_FIELDS.items()
            for field in fields
        },
    }


def _composition() -> dict[str, Any]:
    branch = {"anyOf": [{"$ref": "#/$defs/rule"}, {"$ref": "#/$defs/composition"}]}
    return {
        "description": "Rules combined: exactly one of and, or, not.",
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {
            "and": {"description": "All of these pass.", "type": "array", "minItems": 1, "items": branch},
            "or": {"description": "At least one of these passes.", "type": "array", "minItems": 1, "items": branch},
            "not": {"description": "This does not pass.", **branch},
        },
    }


def _text(description: str, shortest: int = 0, longest: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"description": description, "type": "string"}
    if shortest:
        found["minLength"] = shortest
    if longest is not None:
        found["maxLength"] = longest
    return found


def _id(description: str) -> dict[str, Any]:
    return {**_text(description, definition.ID_MIN, definition.ID_MAX), "pattern": definition.ID_PATTERN}


def _version(description: str) -> dict[str, Any]:
    return {**_text(description, 0, definition.VERSION_MAX), "pattern": definition.VERSION_PATTERN}


def _notes(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "string", "minLength": 1, "maxLength": definition.NOTE_MAX},
    }


def _flag(description: str) -> dict[str, Any]:
    return {"description": description, "type": "boolean", "default": False}
