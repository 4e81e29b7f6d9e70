"""Every example of every operation, through every surface; and rules that hold for the catalog as a whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.catalog import ANNOUNCED, ENABLE_FLAGS, PROFILES, TOOLSETS, whole_catalog
from handrail.kernel.errors import InvalidParams, refusal_types
from handrail.operation import Example, Operation, PublishedOperation
from handrail.surfaces import docs
from handrail.surfaces.mcp.tools import tool_of
from handrail.surfaces.schemas import response_schema
from tests.examples import shows
from tests.golden_tools import snapshot_name
from tests.world import SURFACES, World

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden" / "tools"
CASES = [
    pytest.param(op, example, id=f"{op.name}: {example.title}") for op in whole_catalog() for example in op.examples
]


PLAN_TOOLSETS = ",".join([toolset.name for toolset in TOOLSETS if toolset.family in ("plan", "journal")] + ["locks"])


def world_for(operation: Operation[Any, Any], folder: Path) -> World:
    """A world where the operation answers to its own name: guide.md and plan.md share two."""
    shares_names = operation.toolset.family in ("plan", "journal")
    return World(folder, toolsets=PLAN_TOOLSETS) if shares_names else World(folder)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("operation", "example"), CASES)
def test_an_example_holds(operation: Operation[Any, Any], example: Example, surface: str, tmp_path: Path) -> None:
    world = world_for(operation, tmp_path)
    world.before(example.given)
    world.write(example.files)
    outcome, value = SURFACES[surface](world, operation.name, example.request)
    if example.refused is None:
        assert outcome == "ok"
        assert shows(example.response, msgspec.json.decode(msgspec.json.encode(value)))
    else:
        assert (outcome, value) == ("refused", example.refused.code)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("operation", whole_catalog(), ids=lambda op: op.name)
def test_an_unknown_argument_is_refused_everywhere(
    operation: Operation[Any, Any], surface: str, tmp_path: Path
) -> None:
    request = {**next(ex for ex in operation.examples if ex.response is not None).request, "surprise": 1}
    world = world_for(operation, tmp_path)
    assert SURFACES[surface](world, operation.name, request) == ("refused", InvalidParams.code)


@pytest.mark.parametrize("operation", whole_catalog(), ids=lambda op: op.name)
def test_an_operation_is_declared_whole(operation: Operation[Any, Any]) -> None:
    assert operation.handler.__name__ == operation.name
    assert operation.toolset in TOOLSETS
    assert operation.summary
    assert not operation.summary.endswith(".")
    assert {example.refused for example in operation.examples if example.refused} == set(operation.refusals)
    assert any(example.response is not None for example in operation.examples)


@pytest.mark.parametrize("operation", whole_catalog(), ids=lambda op: op.name)
def test_a_tool_is_listed_exactly_as_its_snapshot(operation: Operation[Any, Any]) -> None:
    """A changed description or schema is a reviewed diff: `python -m tests.golden_tools` rewrites the snapshots."""
    snapshot = GOLDEN / snapshot_name(operation)
    assert msgspec.json.decode(snapshot.read_bytes()) == msgspec.json.decode(
        msgspec.json.encode(tool_of(PublishedOperation(operation.name, operation), whole=True))
    )


def test_there_is_a_snapshot_for_every_tool_and_no_other() -> None:
    assert {path.name for path in GOLDEN.glob("*.json")} == {snapshot_name(operation) for operation in whole_catalog()}


@pytest.mark.parametrize("operation", whole_catalog(), ids=lambda op: op.name)
def test_a_result_fits_its_published_schema(operation: Operation[Any, Any], tmp_path: Path) -> None:
    import jsonschema_rs

    schema = response_schema(operation)
    assert schema["type"] == "object"
    example = next(ex for ex in operation.examples if ex.response is not None)
    world = world_for(operation, tmp_path)
    world.before(example.given)
    world.write(example.files)
    _, value = SURFACES["tools/call"](world, operation.name, example.request)
    assert jsonschema_rs.is_valid(schema, msgspec.json.decode(msgspec.json.encode(value)))


def test_names_are_unique_within_a_toolset_and_fit_every_client() -> None:
    names = [(operation.toolset.name, operation.name) for operation in whole_catalog()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{2,47}", name) for _, name in names)


def test_refusal_codes_are_unique() -> None:
    codes = [refusal.code for refusal in refusal_types()]
    assert len(set(codes)) == len(codes)


def test_profiles_and_flags_name_only_toolsets_there_are_or_will_be() -> None:
    families = {toolset.family for toolset in TOOLSETS} | set(ANNOUNCED)
    known = {toolset.name for toolset in TOOLSETS} | {name for names in ANNOUNCED.values() for name in names} | families
    assert {name for names in PROFILES.values() for name in names} <= known | {"all"}
    assert set(ENABLE_FLAGS.values()) <= known
    assert len(ENABLE_FLAGS) == 13
    built = {toolset.name for toolset in TOOLSETS}
    assert not built & {name for names in ANNOUNCED.values() for name in names}


@pytest.mark.parametrize("page", docs.PAGES)
def test_the_generated_docs_are_up_to_date(page: str) -> None:
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == docs.PAGES[page]()
