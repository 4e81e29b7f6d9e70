"""`task_load_context` and `workflow_get_summary` as an agent calls them: flags, budgets, ids left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import InvalidParams, SeveralOpen, TaskNotFound
from handrail.kernel.tokens import estimate_tokens
from handrail.toolsets.vocabulary import CONTEXT
from tests.domain.recovery.samples.shelf import SAMPLES, Sample
from tests.domain.recovery.samples.telling import Telling
from tests.toolsets.plan.planned import Desk

FEATURE = "a feature in parallel parts"


@pytest.fixture
def feature() -> Sample:
    return SAMPLES[FEATURE]()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("max_tokens", [256, 300, 500, 1000, 1500, 4000, 8000, 200_000])
def test_a_reply_costs_what_it_says_and_no_more_than_asked(name: str, max_tokens: int) -> None:
    reply = SAMPLES[name]().load(max_tokens=max_tokens)
    assert reply["token_estimate"] == estimate_tokens(msgspec.json.encode(reply).decode()) <= max_tokens


@pytest.mark.parametrize("max_tokens", [0, 255, 200_001, -1])
def test_a_budget_beyond_its_bounds_is_refused(feature: Sample, max_tokens: int) -> None:
    with pytest.raises(InvalidParams):
        feature.load(max_tokens=max_tokens)


def test_everything_is_told_by_default(feature: Sample) -> None:
    reply = feature.load()
    assert reply["workflow"]["source_summary"].startswith("We want people to export any report")
    assert reply["workflow"]["source_summary"].endswith("on for internal users first.\n")
    assert "Risks: XLSX libraries" in reply["workflow"]["plan_summary"]
    assert [entry["sequence"] for entry in reply["current_task"]["checkpoints"]] == [4, 5, 6, 7, 8]
    assert {entry["name"] for entry in reply["sibling_tasks"]} == {"api", "write CSV and XLSX"}
    assert [entry["task_name"] for entry in reply["dependency_outcomes"]] == ["export record"]
    assert [entry["name"] for entry in reply["prior_tasks"]] == ["interface"]
    assert reply["omitted"][0]["sections"] == {"checkpoints": 3}


@pytest.mark.parametrize(
    ("flag", "member"), [("sibling_status", "sibling_tasks"), ("dependency_outcomes", "dependency_outcomes")]
)
def test_a_section_that_is_not_included_is_not_there(feature: Sample, flag: str, member: str) -> None:
    assert member in feature.load()
    assert member not in feature.load(include={flag: False})


@pytest.mark.parametrize(
    ("flag", "member"), [("workflow_plan", "plan_summary"), ("workflow_summary", "source_summary")]
)
def test_a_text_of_the_workflow_that_is_not_included_is_empty(feature: Sample, flag: str, member: str) -> None:
    assert feature.load()["workflow"][member]
    without = feature.load(include={flag: False})
    assert without["workflow"][member] == ""
    assert member not in str(without["omitted"])


def test_without_prior_outcomes_the_list_is_empty_and_nothing_is_missing(feature: Sample) -> None:
    reply = feature.load(include={"prior_task_outcomes": False})
    assert reply["prior_tasks"] == []
    assert "prior_tasks" not in str(reply["omitted"])


def test_prior_tasks_are_told_in_full_where_asked() -> None:
    telling = Telling()
    plan = {"summary": "-", "approach": "-", "tasks": [_task("first"), _task("second")]}
    telling.begin(plan, name="x", source_type="prompt", source_content="x")
    telling.start("first")
    telling.done("first", "word " * 300, commits=["5d1c0e2"])
    telling.start("second")
    (brief,) = telling.bundle()["prior_tasks"]
    (full,) = telling.bundle(include={"prior_task_full": True})["prior_tasks"]
    assert len(brief["outcome"]) < 700
    assert brief["outcome"].endswith("…")
    assert full == {
        "id": telling.task("first"),
        "name": "first",
        "outcome": "word " * 300,
        "status": "completed",
        "description": "first of them",
        "outcome_detail": {"commits": ["5d1c0e2"]},
    }


def _task(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"{name} of them", "sequence": 1}


@pytest.mark.parametrize(("count", "sequences"), [(0, []), (1, [8]), (3, [6, 7, 8]), (50, [1, 2, 3, 4, 5, 6, 7, 8])])
def test_as_many_recent_checkpoints_as_asked_are_shown(feature: Sample, count: int, sequences: list[int]) -> None:
    reply = feature.load(include={"recent_checkpoints": count})
    assert [entry["sequence"] for entry in reply["current_task"]["checkpoints"]] == sequences


def test_all_checkpoints_are_shown_where_asked(feature: Sample) -> None:
    reply = feature.load(include={"all_checkpoints": True})
    assert len(reply["current_task"]["checkpoints"]) == 8
    assert "omitted" not in reply


def test_without_checkpoints_their_decisions_and_errors_stand_in_their_own_lists(feature: Sample) -> None:
    reply = feature.load(include={"recent_checkpoints": 0})
    assert any(entry["summary"].startswith("No snapshot") for entry in reply["decisions"])
    assert any(entry["error"].startswith("Property test finds") for entry in reply["open_issues"])
    shown = feature.load()
    assert not any(entry["summary"].startswith("No snapshot") for entry in shown["decisions"])
    assert not any(entry["error"].startswith("Property test finds") for entry in shown["open_issues"])


def test_the_handle_really_brings_what_was_left_out(feature: Sample) -> None:
    (entry,) = feature.load(max_tokens=600)["omitted"]
    assert "omitted" not in feature.telling.call(entry["tool"], **entry["arguments"])


def test_a_task_that_is_not_named_is_the_one_in_progress() -> None:
    assert SAMPLES["a bug fix"]().load()["current_task"]["name"] == "fix the key"


def test_with_several_in_progress_the_refusal_names_them(feature: Sample) -> None:
    with pytest.raises(SeveralOpen) as refused:
        feature.telling.call("task_load_context")
    assert {entry["name"] for entry in refused.value.details["open"]} >= {"api", "stream rows from the database"}


def test_an_unknown_task_is_refused_and_an_empty_project_is_not(feature: Sample) -> None:
    with pytest.raises(TaskNotFound):
        feature.telling.call("task_load_context", task_id="task_9")
    empty = Telling().call("task_load_context")
    assert (empty["workflow"], empty["current_task"], empty["prior_tasks"]) == (None, None, [])
    assert empty["next"].startswith("No workflow is open here: ")
    assert Telling().call("workflow_get_summary")["summary"] == empty["next"]


@pytest.mark.parametrize("written", ["json", "markdown"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_summary_is_small_and_says_what_it_costs(name: str, written: str) -> None:
    reply = SAMPLES[name]().summary(written)
    text = msgspec.json.encode(reply)
    assert reply["token_estimate"] == estimate_tokens(text.decode()) <= 1500
    assert len(text) <= 8192
    assert isinstance(reply["summary"], str if written == "markdown" else dict)


def test_an_agent_is_told_when_to_call() -> None:
    assert "task_load_context" in CONTEXT.instructions


def test_a_summary_offers_no_task_that_somebody_has_claimed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    workflow = desk.plan({"name": "wrap"}, {"name": "test"})
    agent = desk.call("agent_register", name="Anna", runtime="codex")["id"]
    desk.call("task_claim", task_id="task_1", agent_id=agent)
    summary = desk.call("workflow_get_summary", id=workflow)["summary"]
    assert summary["next_ready"] == [{"id": "task_2", "name": "test"}]
