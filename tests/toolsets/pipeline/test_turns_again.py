"""What goes wrong in a run, through the tools: failures, what is asked for again and why, and what a person reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handrail.kernel.errors import InvalidParams
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

BROKEN = "fatal: no such remote"


class Deskbound(Orchestrator):
    """One that calls over a memory store."""

    def __init__(self, folder: Path, effort: str = "M", **settings: Any) -> None:
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
        super().__init__(self.desk.call, folder / "project", effort=effort)


def test_a_command_that_failed_is_handed_out_again_and_then_a_person_is_asked(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    first = run.run(lambda action: action["type"] == "exec")
    again = run.next(previous_error=BROKEN, previous_action_id=first["action_id"])
    assert again["commands"] == first["commands"]
    assert BROKEN in again["warning"]
    assert again["report_result"]["next_action_hint"] == "revision_required"
    asked = run.next(previous_error=BROKEN, previous_action_id=again["action_id"])
    assert (asked["type"], asked["name"]) == ("checkpoint", "pr-creation-failed")
    for words in (BROKEN, "- approve: goes on without it", "- reject: tries the same again", "- abandon: ends the run"):
        assert words in asked["present_to_user"]
    assert run.next(user_response="reject", gate_id=asked["gate_id"])["commands"] == first["commands"]
    assert run.run()["summary"].startswith("Pipeline completed")


def test_an_agent_that_writes_the_same_file_again_is_not_paid_for_without_end(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    asked = run.run(lambda action: action["type"] == "checkpoint")
    same = (run.project / run.workspace / "design.md").read_text(encoding="utf-8")
    action = run.next(user_response="reject Say which days", gate_id=asked["gate_id"])
    spawned = 0
    while action["type"] == "spawn_agent":
        spawned += 1
        assert (action["phase"], spawned <= 3) == ("phase-3", True)
        run.write("design.md", same)
        action = run.next(previous_action_complete=True, previous_action_id=action["action_id"])
    assert (action["type"], action["name"], action["options"]) == (
        "checkpoint",
        "phase-3-failed",
        ["reject", "abandon"],
    )
    for words in ("tried 3 times", "design.md is what it was before", "- reject: tries the same again"):
        assert words in action["present_to_user"]
    assert run.call("state_resume_info", workspace=run.workspace)["status"] == "awaiting_human"
    again = run.next(user_response="reject All of them", gate_id=action["gate_id"])
    assert "> All of them" in again["prompt"]
    run.written["design.md"] = [f"{same}\nAll days.\n"]
    assert run.run()["summary"].startswith("Pipeline completed")


def test_a_phase_is_reported_as_failed_by_its_name(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.next()
    run.produce("analysis.md")
    told = run.call("pipeline_report_result", workspace=run.workspace, phase="phase-1", tokens_used=5, error=BROKEN)
    assert (told["artifact_written"], told["next_action_hint"]) == (None, "revision_required")
    again = run.next()
    assert (again["phase"], BROKEN in again["warning"]) == ("phase-1", True)
    assert run.call("state_resume_info", workspace=run.workspace)["total_tokens"] == 5


def test_no_error_is_longer_than_a_page_and_an_empty_one_is_none(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    action = run.next()
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, previous_error="x" * 2001)
    assert isinstance(refusal, InvalidParams)
    run.produce(action["output_file"])
    assert run.next(previous_action_complete=True, previous_error=" ")["phase"] == "phase-2"


def test_the_agent_is_told_why_it_is_asked_again_also_after_a_crash(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action.get("phase") == "phase-3b")
    run.write("review-design.md", "It is fine.\n")
    first = run.next(previous_action_complete=True)
    again = run.next()
    for action in (first, again):
        assert "## Why You Are Asked Again" in action["prompt"]
        assert "> review-design.md has no readable verdict" in action["prompt"]
    assert first["warning"] == again["warning"] != ""
    assert first["prompt"] == again["prompt"]
    assert "Asked Again" not in run.run(lambda action: action.get("phase") == "phase-4")["prompt"]


def test_a_person_at_a_limit_reads_what_each_answer_does(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = [f"{n}\n## Verdict: REVISE\n" for n in range(9)]
    asked = run.run(lambda action: action["type"] == "checkpoint")
    text = asked["present_to_user"]
    assert "- approve: overrules the review" in text
    assert "- reject: sends the work back to phase-3" in text
    assert "- abandon: ends the run" in text


def test_a_person_who_cannot_read_a_review_asks_for_it_again(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = [f"{n} fine" for n in range(2)] + ["At last.\n## Verdict: APPROVE\n"]
    asked = run.run(lambda action: action["type"] == "checkpoint")
    assert asked["name"] == "phase-3b-limit"
    assert "- reject: asks for the review again" in asked["present_to_user"]
    assert run.next(user_response="reject", gate_id=asked["gate_id"])["phase"] == "phase-3b"
    assert run.phases().count("phase-3") == 1


def test_a_run_is_mirrored_as_soon_as_it_is_confirmed(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    mirrored = json.loads((run.project / run.workspace / "state.json").read_text(encoding="utf-8"))
    assert (mirrored["spec_name"], mirrored["state"]["done"]) == ("work", [])
    there = tmp_path / "there"
    other = Desk(there, profile="", toolsets="pipeline,plan")
    (there / "project" / ".specs").mkdir(parents=True, exist_ok=True)
    (run.project / run.workspace).rename(there / "project" / run.workspace)
    assert other.call("pipeline_next_action", workspace=run.workspace)["phase"] == "phase-1"


def test_one_that_is_over_sends_nobody_on(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    assert run.call("state_resume_info", workspace=run.workspace)["instruction"] == "call pipeline_next_action"
    run.answers["checkpoint-a"] = ["abandon"]
    run.run()
    told = run.call("state_resume_info", workspace=run.workspace)["instruction"]
    assert told.startswith("the run is abandoned")
    assert "pipeline_next_action" not in told


def test_a_document_that_a_person_edited_and_approved_is_accepted_elsewhere(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action["type"] == "checkpoint")
    run.write("design.md", "# Design\n\n## As a person wants it\n")
    asked = run.next()
    assert run.next(user_response="approve", gate_id=asked["gate_id"])["phase"] == "phase-4"
    there = tmp_path / "there"
    other = Desk(there, profile="", toolsets="pipeline,plan")
    (there / "project" / ".specs").mkdir(parents=True, exist_ok=True)
    (run.project / run.workspace).rename(there / "project" / run.workspace)
    assert other.call("pipeline_next_action", workspace=run.workspace)["phase"] == "phase-4"
