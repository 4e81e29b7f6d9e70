"""Input schemas against the subsets that model APIs take: Gemini's `Schema`, OpenAI's function parameters, Anthropic's.

One schema that is refused takes the whole request with it, and a client with that model cannot be used at all. What is
known here of each API is what it documents and what its refusals say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.catalog import PROFILES
from handrail.surfaces.schemas import portable
from tests.surfaces.mcp.test_resources import Agent
from tests.world import World

Found = Iterator[tuple[str, str]]
"""Where something is wrong, and what."""

GEMINI = {
    *("type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties"),
    *("required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf"),
    *("default", "propertyOrdering", "example"),
}
GEMINI_TYPES = {"string", "number", "integer", "boolean", "array", "object"}
GEMINI_FORMATS = {"enum", "date-time", "int32", "int64", "float", "double"}
ONLY_FOR = {
    "object": {"properties", "required", "minProperties", "maxProperties", "propertyOrdering"},
    "array": {"items", "minItems", "maxItems"},
}
NOT_AT_THE_TOP = {"oneOf", "anyOf", "allOf", "enum", "not", "const"}
NESTING_OF_OPENAI = 10
DOCUMENTED = {"additionalProperties", "uniqueItems"}
"""What guide.md writes and a server of its four tools alone therefore lists."""


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, member in schema.get("properties", {}).items():
        yield from nodes(member, f"{path}.{name}")
    if isinstance(items := schema.get("items"), Mapping):
        yield from nodes(items, f"{path}[]")
    for number, alternative in enumerate(schema.get("anyOf", ())):
        yield from nodes(alternative, f"{path}|{number}")


def refused_by_gemini(schema: Mapping[str, Any]) -> Found:
    for path, node in nodes(schema):
        kind = node.get("type")
        yield from ((path, f"unknown name {key}") for key in node.keys() - GEMINI)
        if kind is None and "anyOf" not in node:
            yield path, "no type"
        if kind is not None and (not isinstance(kind, str) or kind not in GEMINI_TYPES):
            yield path, f"type {kind}"
        if "enum" in node and (kind != "string" or not all(isinstance(one, str) and one for one in node["enum"])):
            yield path, "enum: only allowed for STRING type"
        for owner, keys in ONLY_FOR.items():
            if kind != owner:
                yield from ((path, f"{key}: only allowed for {owner}") for key in keys & node.keys())
        if kind == "array" and "items" not in node:
            yield path, "items: missing field"
        yield from ((path, f"required: {name} is not defined") for name in undefined(node))
        if node.get("format", "enum") not in GEMINI_FORMATS:
            yield path, f"format {node['format']}"


def undefined(node: Mapping[str, Any]) -> list[str]:
    return [name for name in node.get("required", ()) if name not in node.get("properties", {})]


def refused_by_openai(schema: Mapping[str, Any]) -> Found:
    yield from refused_at_the_top(schema)
    if "properties" not in schema:
        yield "", "object schema missing properties"
    for path, node in nodes(schema):
        if node.get("type") == "array" and "items" not in node:
            yield path, "array schema missing items"
        if "allOf" in node:
            yield path, "allOf is not permitted"
        if path.count(".") + path.count("[]") > NESTING_OF_OPENAI:
            yield path, "nested too deep"


def refused_at_the_top(schema: Mapping[str, Any]) -> Found:
    """What OpenAI and Anthropic have in common."""
    if schema.get("type") != "object":
        yield "", "no object"
    yield from (("", f"{key} at the top level") for key in schema.keys() & NOT_AT_THE_TOP)


APIS: dict[str, Callable[[Mapping[str, Any]], Found]] = {
    "gemini": refused_by_gemini,
    "openai": refused_by_openai,
    "anthropic": refused_at_the_top,
}


def listed(folder: Path, **chosen: Any) -> list[dict[str, Any]]:
    agent = Agent(World(folder, **chosen).server())
    tools: list[dict[str, Any]] = agent.ask("tools/list", {})["tools"]
    return tools


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "workflowlookup"])
def test_every_tool_of_every_profile_is_taken(tmp_path: Path, profile: str, api: str) -> None:
    tools = listed(tmp_path, profile=profile, dynamic=True, output_schemas=True)
    wrong = {tool["name"]: found for tool in tools if (found := list(APIS[api](tool["inputSchema"])))}
    assert tools
    assert wrong == {}


def test_four_guides_tools_alone_are_listed_as_their_document_writes_them(tmp_path: Path) -> None:
    """Everything is taken but two keywords of the document, which clients that were tried leave out themselves."""
    tools = listed(tmp_path, profile="workflowlookup")
    wrong = {found for tool in tools for found in APIS["gemini"](tool["inputSchema"])}
    assert {said for _, said in wrong} == {f"unknown name {keyword}" for keyword in DOCUMENTED}
    for tool in tools:
        assert not list(refused_by_openai(tool["inputSchema"]))


@pytest.mark.parametrize(
    ("schema", "api", "said"),
    [
        ({"type": "object", "properties": {"a": {"enum": ["x"]}}}, "gemini", "no type"),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, "gemini", "type ['string', 'null']"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "gemini", "items: missing field"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "openai", "array schema missing items"),
        (
            {"type": "object", "properties": {}, "additionalProperties": False},
            "gemini",
            "unknown name additionalProperties",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}},
            "gemini",
            "enum: only allowed for STRING type",
        ),
        ({"type": "object", "properties": {}, "required": ["a"]}, "gemini", "required: a is not defined"),
        ({"anyOf": [{"type": "object"}]}, "openai", "anyOf at the top level"),
        ({"anyOf": [{"type": "object"}]}, "anthropic", "no object"),
    ],
)
def test_what_an_api_refuses_is_seen(schema: dict[str, Any], api: str, said: str) -> None:
    assert said in {what for _, what in APIS[api](schema)}


def test_any_json_and_maps_become_what_everybody_takes() -> None:
    schema = {
        "type": "object",
        "properties": {
            "any": {"description": "Any JSON"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": [],
        "additionalProperties": False,
    }
    taken = portable(schema)
    assert taken["properties"]["map"] == {"type": "object"}
    assert taken["properties"]["any"]["description"] == "Any JSON"
    assert {one["type"] for one in taken["properties"]["any"]["anyOf"]} == {
        "string",
        "number",
        "boolean",
        "object",
        "array",
    }
    assert taken.keys() == {"type", "properties"}
    assert not [found for api in APIS.values() for found in api(taken)]
