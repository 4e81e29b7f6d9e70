"""The tools of values: kept for each repository, versioned, and an explanation that names the part of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.values.records import ValueSet
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import Query
from handrail.protocol.wire import encode
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import RegistryDesk

EIGHT_KB = 8192
STATED: dict[str, Any] = {
    "values": [{"id": "privacy", "label": "Privacy", "weight": 2, "tolerance": 0.2}, {"id": "speed"}],
    "relationships": [{"from": "speed", "to": "privacy", "kind": "conflicts", "weight": 1}],
}


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "values")


def declare(desk: RegistryDesk, task_id: str, impacts: Any) -> None:
    plan = {"approach": "", "steps": []}
    desk.call("task_set_plan", id=task_id, plan=plan, context={"values": impacts})


def test_a_set_takes_the_place_of_the_one_before(desk: RegistryDesk) -> None:
    assert desk.call("values_set", **STATED)["version"] == 1
    before = desk.store.position()
    assert desk.call("values_set", **STATED)["changed"] is False
    assert desk.store.position() == before
    changed = desk.call("values_set", values=[{"id": "speed", "weight": 3}])
    assert (changed["version"], changed["values"], changed["set_by"]) == (2, 1, "tester")
    assert desk.call("values_explain")["values"] == [{"id": "speed", "weight": 3.0}]
    assert isinstance(desk.refusal("values_set", values=[{"id": "a"}, {"id": "a"}]), InvalidParams)
    assert not list(desk.store.verify())


def test_repositories_have_values_of_their_own(desk: RegistryDesk) -> None:
    here = desk._handrail.call.here
    desk.with_call(here=msgspec.structs.replace(here, shared=True, repository="one"))
    desk.call("values_set", **STATED)
    run = desk.plan({"name": "a"})
    declare(desk, "task_1", [{"value": "privacy", "effect": "risks"}])
    desk.with_call(here=msgspec.structs.replace(here, shared=True, repository="other"))
    assert desk.call("values_explain")["version"] == 0
    kept = desk.store.run(TESTER, lambda unit: unit.select(ValueSet, Query()))
    assert [one.id for one in kept] == ["one"]
    assert desk.call("values_explain", run_id=run)["version"] == 1  # a run is weighed by its own repository


def test_the_part_of_a_plan_that_breaks_a_value_is_named(desk: RegistryDesk) -> None:
    desk.call("values_set", **STATED)
    run = desk.plan({"name": "cache"}, {"name": "log it"}, {"name": "hash it"})
    fine = desk.call("values_explain", run_id=run)
    assert (fine["allowed"], fine["impacts"]) == (True, 0)
    declare(desk, "task_1", [{"value": "speed", "effect": "supports", "severity": 0.3}])
    declare(desk, "task_2", [{"value": "privacy", "effect": "risks", "severity": 0.4, "why": "logs addresses"}])
    found = desk.call("values_explain", run_id=run)
    (violation,) = found["violations"]
    assert found["allowed"] is False
    assert violation["primary_contributor"] == {
        "node": "task_2",
        "label": "log it",
        "amount": 0.8,
        "why": "logs addresses",
    }
    assert violation["nodes"][1] == {"node": "task_1", "label": "cache", "amount": 0.3, "over": "speed"}
    assert violation["severity"] == 0.55
    assert '"log it" would be enough: 0.7 of risk less' in violation["hint"]
    assert found["summary"].startswith("It breaks Privacy: score 0.6333")
    declare(desk, "task_3", [{"value": "privacy", "effect": "supports", "severity": 0.4}])
    assert desk.call("values_explain", run_id=run)["allowed"] is True
    more = [{"value": "privacy", "effect": "risks", "node": "outside"}]
    assert desk.call("values_explain", run_id=run, impacts=more)["violations"][0]["nodes"][0]["node"] == "outside"


def test_what_cannot_be_read_is_told(desk: RegistryDesk) -> None:
    desk.call("values_set", **STATED)
    run = desk.plan({"name": "a"}, {"name": "b"})
    declare(desk, "task_1", "speed")
    declare(desk, "task_2", [{"value": "speed", "effect": "helps"}])
    assert desk.call("values_explain", run_id=run)["unreadable"] == ["a", "b"]


def test_without_values_nothing_passes_as_weighed(desk: RegistryDesk) -> None:
    found = desk.call("values_score", impacts=[{"value": "speed", "effect": "supports"}])
    assert (found["allowed"], found["version"]) == (False, 0)
    assert "values_set" in found["hint"]
    assert "values_set" in desk.call("values_explain")["summary"]


def test_ways_are_ranked(desk: RegistryDesk) -> None:
    desk.call("values_set", **STATED)
    ways = {
        "bad": [{"value": "privacy", "effect": "risks"}],
        "middling": [{"value": "speed", "effect": "risks", "severity": 0.3}],
        "good": [{"value": "privacy", "effect": "supports"}],
        "misspelt": [{"value": "privacy ", "effect": "supports"}],
    }
    found = desk.call("values_filter", candidates=[{"id": key, "impacts": given} for key, given in ways.items()])
    assert found["allowed"] == ["good", "middling"]
    assert [one["id"] for one in found["candidates"]] == ["good", "middling", "misspelt", "bad"]
    strict = desk.call("values_filter", candidates=[{"id": "m", "impacts": ways["middling"]}], threshold=0.95)
    assert strict["allowed"] == []


def test_answers_stay_small(desk: RegistryDesk) -> None:
    ids = [f"{number} {'v' * 60}" for number in range(64)]
    desk.call("values_set", values=[{"id": key, "label": "l" * 120, "description": "d" * 400} for key in ids])
    impacts = [{"value": key, "effect": "risks", "task": "t" * 200, "why": "w" * 400} for key in ids * 4]
    for tool, given in (
        ("values_score", {"impacts": impacts}),
        ("values_explain", {"impacts": impacts}),
        ("values_explain", {}),
        ("values_filter", {"candidates": [{"id": f"{n} {'i' * 60}", "impacts": []} for n in range(50)]}),
        ("values_filter", {"candidates": [{"id": f"{n} {'i' * 60}", "impacts": impacts} for n in range(50)]}),
    ):
        assert len(encode(desk.call(tool, **given))) < EIGHT_KB, tool
