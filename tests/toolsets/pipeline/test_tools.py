"""Runs from `pipeline_init` to `done`, driven by a scripted orchestrator over real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ArtefactMissing, IllegalTransition, InvalidParams, NotAllowed, WorkflowClosed
from handrail.kernel.records import UnitOfWork
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER, Desk


class Deskbound(Orchestrator):
    """One that calls over a memory store."""

    def __init__(self, folder: Path, text: str = "Fix the auth timeout", effort: str = "M", **settings: Any) -> None:
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
        super().__init__(self.desk.call, folder / "project", text, effort)


@pytest.mark.parametrize(
    ("effort", "skipped"), [("S", {"phase-2", "phase-3b"}), ("M", {"phase-4b", "checkpoint-b"}), ("L", set())]
)
def test_a_run_goes_from_a_request_to_done(tmp_path: Path, effort: str, skipped: set[str]) -> None:
    run = Deskbound(tmp_path, effort=effort)
    done = run.run()
    assert done["summary"].startswith("Pipeline completed")
    assert done["summary_path"] == f"{run.workspace}/summary.md"
    info = run.desk.call("state_resume_info", workspace=run.workspace)
    assert skipped.isdisjoint(info["completed_phases"])
    assert info["status"] == "completed"
    asked = [action["name"] for action in run.seen if action["type"] == "checkpoint"]
    assert asked == [gate for gate in ("checkpoint-a", "checkpoint-b") if gate not in skipped]
    progress = run.desk.call("workflow_progress", workflow_id=run.workflow)
    assert progress["by_status"]["completed"] == 3
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "completed"
    assert run.desk.store.verify() == []


def test_parallel_tasks_are_handed_out_together(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    action = run.run(lambda action: action.get("phase") == "phase-5")
    assert action["parallel_task_ids"] == ["1", "3"]
    tasks = run.desk.call("workflow_get", id=run.workflow, include_tasks=True)["tasks"]
    assert [(task["name"], task["status"]) for task in tasks] == [
        ("1: Wrap the fetch", "in_progress"),
        ("2: Use it", "blocked"),
        ("3: Say so", "in_progress"),
    ]


def test_a_review_that_sends_back_is_done_again_and_then_a_person_is_asked(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = [f"{n}\n## Verdict: REVISE\n**[CRITICAL] no limit {n}**\n" for n in range(9)]
    action = run.run(lambda action: action["type"] == "checkpoint")
    assert action["name"] == "phase-3b-limit"
    assert run.phases().count("phase-3") == 2
    reports = [one["report_result"] for one in run.seen if one["report_result"]]
    revised = [report for report in reports if report["next_action_hint"] == "revision_required"]
    assert revised[0]["verdict_parsed"] == "REVISE"
    assert revised[0]["findings"] == [{"severity": "CRITICAL", "description": "no limit 0"}]
    assert run.run(lambda action: action["type"] == "checkpoint" and action["name"] != "phase-3b-limit")


def test_an_unreadable_verdict_does_not_pass(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = [f"{n} It looks fine, APPROVE I guess." for n in range(9)]
    action = run.run(lambda action: action["type"] == "checkpoint")
    assert action["name"] == "phase-3b-limit"
    assert "phase-3b" not in run.desk.call("state_resume_info", workspace=run.workspace)["completed_phases"]


def test_a_failing_task_goes_back_alone(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-2.md"] = ["1\n## Verdict: FAIL\n", "2\n## Verdict: PASS\n"]
    run.run()
    implemented = [action for action in run.seen if action["type"] == "spawn_agent" and action["phase"] == "phase-5"]
    assert implemented[-1]["task_id"] == "2"
    assert "review-2.md" in implemented[-1]["input_files"]


def test_what_a_person_says_reaches_the_next_agent_once(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.answers["checkpoint-a"] = ["reject Use a token bucket instead.", "approve"]
    run.run()
    told = [action for action in run.seen if "token bucket" in action.get("prompt", "")]
    assert [action["phase"] for action in told] == ["phase-3"]


def test_asking_again_gives_the_same_action_and_writes_nothing(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    first = run.next()
    position = run.desk.store.position()
    assert run.next() == first
    assert run.desk.store.position() == position


def test_a_phase_whose_file_is_missing_is_handed_out_again_with_the_reason(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.next()
    again = run.next(previous_action_complete=True)
    assert (again["phase"], again["report_result"]) == ("phase-1", None)
    assert "analysis.md" in again["warning"]
    refusal = run.desk.refusal("pipeline_report_result", workspace=run.workspace, phase="phase-1")
    assert isinstance(refusal, ArtefactMissing)


def test_where_people_decide_an_agent_cannot_answer(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, text="Fix the auth timeout --auto", approvals="human")
    action = run.run(lambda action: action["type"] == "checkpoint")
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, NotAllowed)
    assert run.next()["name"] == action["name"]


def test_auto_opens_a_gate_after_an_approval_and_says_so_in_the_record(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, text="Fix the auth timeout --auto")
    run.run()
    assert [action for action in run.seen if action["type"] == "checkpoint"] == []
    answered = [event for event in run.desk.store.events(run.workflow, limit=1000) if event.kind == "gate.answered"]
    assert [event.changes[0].after["channel"] for event in answered if event.changes[0].after] == ["auto"]


def test_abandoning_is_understood_everywhere_and_stays(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.answers["checkpoint-a"] = ["abandon"]
    done = run.run()
    assert done["summary"].startswith("Pipeline abandoned")
    assert run.next()["type"] == "done"
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "abandoned"


@pytest.mark.parametrize("word", ["yes", "", "approved?"])
def test_an_answer_that_is_no_option_answers_nothing(tmp_path: Path, word: str) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action["type"] == "checkpoint")
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response=word)
    assert isinstance(refusal, InvalidParams)
    assert run.next()["type"] == "checkpoint"


def test_a_report_that_is_sent_twice_counts_once(tmp_path: Path) -> None:
    """The first reply was lost: without the action's id the second would stand for a command that nobody ran."""
    run = Deskbound(tmp_path, effort="S")
    first = run.run(lambda action: action["type"] == "exec")
    assert first["setup_only"] is True
    second = run.next(previous_action_complete=True, previous_action_id=first["action_id"])
    again = run.next(previous_action_complete=True, previous_action_id=first["action_id"])
    assert (again["commands"], again["action_id"]) == (second["commands"], second["action_id"])


def limited(tmp_path: Path) -> Deskbound:
    """A run whose design was sent back twice: a person is asked."""
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = [f"{n}\n## Verdict: REVISE\n" for n in range(9)]
    assert run.run(lambda action: action["type"] == "checkpoint")["name"] == "phase-3b-limit"
    return run


def test_a_question_is_not_passed_by_a_report(tmp_path: Path) -> None:
    run = limited(tmp_path)
    run.write("review-design.md", "## Verdict: APPROVE\n")
    refusal = run.desk.refusal("pipeline_report_result", workspace=run.workspace, phase="phase-3b")
    assert isinstance(refusal, IllegalTransition)
    assert run.next(previous_action_complete=True)["type"] == "checkpoint"


def test_an_answer_that_is_sent_twice_opens_one_gate(tmp_path: Path) -> None:
    run = limited(tmp_path)
    second = run.next(user_response="approve")
    assert second["name"] == "checkpoint-a"
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, IllegalTransition)
    assert run.next(user_response="approve", gate_id=second["gate_id"])["phase"] == "phase-4"


def test_what_was_changed_after_it_was_shown_is_not_approved(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action["type"] == "checkpoint")
    run.write("design.md", "# Another\n\n## Design that nobody saw\n")
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, IllegalTransition)
    assert "nobody saw" in run.next()["present_to_user"]


def test_a_workflow_that_was_ended_takes_its_run_along(tmp_path: Path) -> None:
    """No tool ends it so any more; an older store may have it."""
    run = Deskbound(tmp_path)
    run.run(lambda action: action["type"] == "checkpoint")
    run.desk.store.run(TESTER, lambda unit: abandoned(unit, run.workflow))
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, WorkflowClosed)
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "abandoned"


def abandoned(unit: UnitOfWork, workflow_id: str) -> None:
    workflow = unit.get(Workflow, workflow_id)
    assert workflow is not None
    unit.record("workflow.abandoned", msgspec.structs.replace(workflow, status="abandoned"))


def test_a_plan_that_others_change_does_not_break_the_run(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action.get("phase") == "phase-5")
    other = [{"name": "z", "description": "", "sequence": 1}]
    run.desk.call("workflow_replan", id=run.workflow, reason="r", tasks=other)
    assert run.run()["summary"].startswith("Pipeline completed")


@pytest.mark.parametrize(
    "hostile",
    [
        {"source_url": "--body-file=/etc/passwd https://github.com/o/r/issues/42"},
        {"source_url": "https://github.com/o/r/issues/42\n---\nevil: yes"},
        {"source_id": "42\n\nCloses #1"},
        {"source_id": "--force"},
    ],
)
def test_nothing_hostile_comes_from_the_source_into_a_command(tmp_path: Path, hostile: dict[str, str]) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    given: dict[str, Any] = {"workspace": ".specs/20260401-x", "task_text": "Fix it", **hostile}
    refusal = desk.refusal("pipeline_init_with_context", **given, user_confirmation={"effort": "S"})
    assert isinstance(refusal, InvalidParams)


def test_only_what_was_handed_out_is_reported(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.next()
    refusal = run.desk.refusal("pipeline_report_result", workspace=run.workspace, phase="phase-6")
    assert isinstance(refusal, IllegalTransition)


def test_a_run_is_found_again_by_its_workspace(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    for text in (run.workspace, run.workspace.removeprefix(".specs/")):
        answer = run.desk.call("pipeline_init", arguments=text)
        assert answer == {"resume_mode": "auto", "workspace": run.workspace, "instruction": "call state_resume_info"}


def test_the_state_is_mirrored_beside_the_documents(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.next()
    mirrored = (run.project / run.workspace / "state.json").read_text(encoding="utf-8")
    assert '"phase": "phase-1"' in mirrored
    assert (run.project / run.workspace / "request.md").read_text(encoding="utf-8").startswith("---\nsource_type: text")
