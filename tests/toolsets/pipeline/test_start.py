"""How a run is begun through the tools: what was fetched, discussed and confirmed, under which name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.pipeline.budget import Budget
from handrail.kernel.errors import InvalidParams
from handrail.operation import HouseRules
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

ISSUE = "https://github.com/owner/repo/issues/42"
TEXT: dict[str, Any] = {"workspace": ".specs/20260401-fix-auth", "task_text": "Fix the auth timeout"}
FETCHED: dict[str, Any] = {"workspace": ".specs/20260401-x", "source_url": ISSUE, "source_id": "42"}
CONFIRMED = {"effort": "S"}
DISCUSSED = "## Discussion\n\n1. No more timeouts."


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, profile="", toolsets="pipeline")


def to_confirm(desk: Desk, **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = desk.call("pipeline_init_with_context", **given)["needs_user_confirmation"]
    return answer


def confirmed(desk: Desk, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = desk.call("pipeline_init_with_context", **given, user_confirmation={**CONFIRMED, **more})
    return answer


# -- what was fetched -------------------------------------------------------------------------------------------------


def test_the_fields_that_are_to_be_fetched_are_understood_by_their_names(desk: Desk) -> None:
    fields = desk.call("pipeline_init", arguments=ISSUE)["fetch_needed"]["fields"]
    fetched = dict(zip(fields, (["epic"], "Fix auth", "It hangs."), strict=True))
    found = to_confirm(desk, **FETCHED, external_context=fetched)
    assert (found["detected_effort"], found["enriched_request_body"]) == ("L", "Fix auth\n\nIt hangs.")
    ready = confirmed(desk, {**FETCHED, "external_context": fetched})
    assert "Fix auth\n\nIt hangs." in ready["request_md_content"]


def test_a_field_that_nobody_knows_is_refused_with_those_that_are_known(desk: Desk) -> None:
    refusal = desk.refusal("pipeline_init_with_context", **FETCHED, external_context={"headline": "Fix auth"})
    assert isinstance(refusal, InvalidParams)
    assert "headline" in refusal.message
    assert (refusal.hint or "").startswith("known: labels, title, body, github_labels")


def test_the_workflow_of_a_run_has_a_source_that_plans_know(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    jira = {
        "workspace": ".specs/20260401-x",
        "source_url": "https://team.atlassian.net/browse/SOA-123",
        "source_id": "SOA-123",
        "external_context": {"summary": "Skip the job", "description": "It hangs."},
    }
    ready = confirmed(desk, jira)
    assert "source_type: jira_issue" in ready["request_md_content"]
    assert desk.call("workflow_get", id=ready["workflow_id"])["source_type"] == "jira"


# -- what was discussed -----------------------------------------------------------------------------------------------


def test_answers_reach_the_request_by_the_body_that_is_sent_back(desk: Desk) -> None:
    given = {**TEXT, "flags": {"discuss": True}}
    assert "needs_discussion" in desk.call("pipeline_init_with_context", **given)
    found = to_confirm(desk, **given, discussion_answers="1. No more timeouts.")
    assert found["enriched_request_body"].endswith(DISCUSSED)
    assert "Send back enriched_request_body, which holds the answers" in found["message"]
    ready = confirmed(desk, given, enriched_request_body=found["enriched_request_body"])
    assert DISCUSSED in ready["request_md_content"]


def test_answers_reach_the_request_with_the_confirmation_too(desk: Desk, tmp_path: Path) -> None:
    ready = confirmed(desk, {**TEXT, "flags": {"discuss": True}}, discussion_answers="1. No more timeouts.")
    assert f"Fix the auth timeout\n\n{DISCUSSED}" in ready["request_md_content"]
    request = tmp_path / "project" / ready["workspace"] / "request.md"
    assert DISCUSSED in request.read_text(encoding="utf-8")


def test_a_body_that_came_of_the_answers_is_not_added_to(desk: Desk) -> None:
    ready = confirmed(desk, TEXT, enriched_request_body="All of it.", discussion_answers="1. No more timeouts.")
    assert ready["request_md_content"].endswith("\n\nAll of it.\n")


def test_answers_beside_a_confirmation_are_refused_as_the_document_has_it(desk: Desk) -> None:
    refusal = desk.refusal(
        "pipeline_init_with_context", **TEXT, discussion_answers="x", user_confirmation={"effort": "S"}
    )
    assert isinstance(refusal, InvalidParams)
    assert "discussion_answers" in (refusal.hint or "")


def test_an_issue_is_not_discussed_and_that_is_said(desk: Desk) -> None:
    fetched = {"title": "Fix auth", "body": "It hangs."}
    found = to_confirm(desk, **FETCHED, external_context=fetched, flags={"discuss": True})
    assert "--discuss asks about requests in words only" in found["message"]
    assert "--discuss" not in to_confirm(desk, **TEXT)["message"]


# -- how far ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"until": "phase-1", "begin_at": "phase-3"}, "begins at phase-3, which comes later"),
        ({"until": "phase-2"}, "leaves that phase out"),
        ({"until": "pr-creation", "skip_pr": True}, "leaves that phase out"),
        ({"until": "post-to-source"}, "leaves that phase out"),
    ],
)
def test_a_last_phase_that_the_run_does_not_come_to_is_refused(desk: Desk, flags: dict[str, Any], said: str) -> None:
    refusal = desk.refusal("pipeline_init_with_context", **TEXT, flags=flags, user_confirmation=CONFIRMED)
    assert isinstance(refusal, InvalidParams)
    assert said in refusal.message
    assert desk.store.position() == 0


# -- under which name -------------------------------------------------------------------------------------------------


def proposed(desk: Desk, arguments: str = "Fix the auth timeout") -> str:
    answer = desk.call("pipeline_init", arguments=arguments)
    assert answer["workspace"].endswith(answer["spec_name"])
    workspace: str = answer["workspace"]
    return workspace


def test_a_name_that_is_taken_is_not_proposed(desk: Desk, tmp_path: Path) -> None:
    first = proposed(desk)
    assert confirmed(desk, {**TEXT, "workspace": first})["workspace"] == first
    second = proposed(desk)
    assert second == f"{first}-2"
    assert confirmed(desk, {**TEXT, "workspace": second})["workspace"] == second
    (tmp_path / "project" / f"{first}-3").mkdir()
    position = desk.store.position()
    assert proposed(desk) == f"{first}-4"
    assert desk.store.position() == position


def test_the_longest_name_has_room_for_its_number(desk: Desk) -> None:
    text = "word " * 30
    first = proposed(desk, text)
    confirmed(desk, {**TEXT, "workspace": first})
    second = proposed(desk, text)
    assert second.endswith("-2")
    assert confirmed(desk, {**TEXT, "workspace": second})["workspace"] == second


def test_the_folder_that_a_later_beginning_needs_is_proposed_though_it_is_there(desk: Desk, tmp_path: Path) -> None:
    first = proposed(desk)
    (tmp_path / "project" / first).mkdir(parents=True)
    assert proposed(desk, "Fix the auth timeout --from=phase-3") == first
    assert proposed(desk) == f"{first}-2"


# -- what may be spent ------------------------------------------------------------------------------------------------


def test_a_budget_that_is_set_later_holds_for_a_run_under_way(tmp_path: Path) -> None:
    run, first = begun_and_then(tmp_path, {}, {"hard_tokens": 100.0})
    assert run.do(first)["stopped"]["reason"] == "budget"


def test_one_that_is_raised_later_is_raised_for_a_run_that_asked_for_nothing(tmp_path: Path) -> None:
    run, first = begun_and_then(tmp_path, {"hard_tokens": 100.0}, {"hard_tokens": 1000.0})
    assert run.do(first)["phase"] == "phase-2"


def begun_and_then(
    folder: Path, before: dict[str, float], after: dict[str, float]
) -> tuple[Orchestrator, dict[str, Any]]:
    """A run with its first action out, over one store under two budgets."""
    desk = Desk(folder, profile="", toolsets="pipeline", budget=before)
    run = Orchestrator(desk.call, folder / "project")
    first = run.next()
    call = msgspec.structs.replace(desk._handrail.call, rules=lambda: HouseRules(budget=Budget(limits=after)))
    desk._handrail = msgspec.structs.replace(desk._handrail, call=call)
    return run, first
