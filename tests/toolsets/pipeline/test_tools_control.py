"""How far a run goes, what it may spend, and how it comes from elsewhere: through the tools, over real files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import (
    IllegalTransition,
    InvalidParams,
    NotAllowed,
    RunNotFound,
    SettingInvalid,
)
from handrail.outside.process_names import new_session
from handrail.surfaces.invocation import CallingClient
from tests.toolsets.pipeline.orchestrator import TASKS, Orchestrator
from tests.toolsets.plan.planned import Desk


class Deskbound(Orchestrator):
    """One that calls over a memory store."""

    def __init__(self, folder: Path, text: str = "Fix the auth timeout", effort: str = "M", **settings: Any) -> None:
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
        super().__init__(self.desk.call, folder / "project", text, effort)


class Adopting(Orchestrator):
    """One that goes on with a workspace it did not begin."""

    def __init__(self, desk: Desk, project: Path, workspace: str, version: int = 1000) -> None:
        self.desk, self.call, self.project, self.workspace, self.version = desk, desk.call, project, workspace, version
        self.written, self.answers, self.seen = {}, {}, []


def is_stopped(action: dict[str, Any]) -> bool:
    return bool(action["type"] == "done")


def at_phase(phase: str) -> Callable[[dict[str, Any]], bool]:
    return lambda action: action.get("phase") == phase


# -- until ------------------------------------------------------------------------------------------------------------


def test_a_run_goes_until_a_phase_and_then_further(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, text="Fix the auth timeout --until=phase-2")
    assert run.flags["until"] == "phase-2"
    stopped = run.run(is_stopped)
    assert stopped["stopped"] == {
        "reason": "until",
        "before_phase": "phase-3",
        "go_on_with": f"pipeline_next_action with until, or: handrail pipeline resume {run.workspace}",
    }
    assert (stopped["display_message"], stopped["summary_path"]) == ("Stopped", None)
    assert "nothing is lost" in stopped["summary"]
    info = run.desk.call("state_resume_info", workspace=run.workspace)
    assert (info["status"], info["stopped"], info["limits"]) == ("paused", "until", {"until": "phase-2"})
    assert run.next()["stopped"]["reason"] == "until"
    assert run.next(until="phase-3")["phase"] == "phase-3"
    assert run.run(is_stopped)["stopped"]["before_phase"] == "phase-3b"
    assert run.next(until="end")["phase"] == "phase-3b"
    assert run.run()["summary"].startswith("Pipeline completed")


def test_a_phase_that_there_is_not_is_refused_at_once(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, until="phase-99")
    assert isinstance(refusal, InvalidParams)
    for flag in ("until", "begin_at"):
        refusal = run.desk.refusal(
            "pipeline_init_with_context",
            workspace=".specs/20260401-x",
            task_text="Fix it",
            flags={flag: "phase-99"},
            user_confirmation={"effort": "S"},
        )
        assert isinstance(refusal, InvalidParams), flag


def test_asking_how_far_changes_nothing_of_a_run_that_is_over(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run()
    assert run.next(until="phase-1")["summary"].startswith("Pipeline completed")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--until", "--until needs a phase"),
        ("--from=", "--from needs a phase"),
        ("--hard-tokens", "--hard-tokens needs an amount"),
        ("--hard-tokens=many", "--hard-tokens needs an amount"),
        ("--hard-tokens=-5", "--hard-tokens needs an amount"),
        ("--hard-money=1e9", "--hard-money needs an amount"),
        ("--hard-token=5", "there is no flag --hard-token=5"),
    ],
)
def test_a_flag_that_says_nothing_is_an_error(tmp_path: Path, words: str, said: str) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline")
    answer = desk.call("pipeline_init", arguments=f"Fix the auth timeout {words}")
    assert answer["errors"][0].startswith(said)


# -- what is spent ----------------------------------------------------------------------------------------------------


def test_a_hard_limit_of_the_settings_stops_and_a_soft_one_warns(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, budget={"soft_tokens": 100.0, "hard_tokens": 200.0})
    stopped = run.run(is_stopped)
    assert [bool(action["warning"]) for action in run.seen] == [False, True, True]
    assert stopped["stopped"]["reason"] == "budget"
    assert stopped["summary"].endswith("it has spent what it may: 200 of 200 tokens are spent; nothing is lost")
    resume = f"handrail pipeline resume {run.workspace} --limit hard_tokens=N (N above 200)"
    assert stopped["stopped"]["go_on_with"] == f"a person runs: {resume}"
    assert run.next(until="end")["stopped"]["reason"] == "budget"


def test_a_request_may_ask_for_less_than_the_settings_and_not_for_more(tmp_path: Path) -> None:
    run = Deskbound(
        tmp_path,
        text="Fix it all --hard-tokens=900 --soft-tokens=50",
        budget={"hard_tokens": 300.0, "soft_tokens": 90.0},
    )
    limits = run.desk.call("state_resume_info", workspace=run.workspace)["limits"]
    assert limits == {"hard_tokens": 300.0, "soft_tokens": 50.0}


def test_money_goes_by_the_prices_of_the_settings(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, budget={"hard_money": 1.0}, prices={"opus": 10_000.0})
    action = run.next()
    run.produce(action["output_file"])
    action = run.next(previous_action_complete=True, previous_tokens=50, previous_model="sonnet")
    assert "no price is known for sonnet" in action["warning"]
    run.produce(action["output_file"])
    action = run.next(previous_action_complete=True, previous_tokens=100, previous_model="opus")
    assert action["stopped"]["reason"] == "budget"


@pytest.mark.parametrize("settings", [{"budget": {"hard_token": 5.0}}, {"prices": {"opus": -1.0}}])
def test_settings_that_would_stop_nobody_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingInvalid):
        Deskbound(tmp_path, **settings)


def test_what_earlier_runs_cost_is_shown_before_the_next_is_confirmed(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, prices={"*": 3.0})
    given = {"workspace": ".specs/20260401-next", "task_text": "Fix the auth timeout again", "flags": {}}
    first = run.desk.call("pipeline_init_with_context", **given)
    assert "cost_estimate" not in first["needs_user_confirmation"], "nothing has ended yet"
    run.run()
    second = run.desk.call("pipeline_init_with_context", **given)["needs_user_confirmation"]
    total = run.desk.call("state_resume_info", workspace=run.workspace)["total_tokens"]
    assert second["cost_estimate"]["runs"] == 1
    assert second["cost_estimate"]["tokens"] == {"p50": total, "p90": total}
    assert set(second["cost_estimate"]) == {"runs", "tokens", "minutes", "money"}
    large = run.desk.call("pipeline_init_with_context", **{**given, "flags": {"effort_override": "L"}})
    assert "cost_estimate" not in large["needs_user_confirmation"], "no run of that effort"


# -- pausing ----------------------------------------------------------------------------------------------------------


def test_its_workflow_pauses_a_run_and_lets_it_go_on(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    action = run.run(at_phase("phase-3"))
    run.desk.call("workflow_update_status", id=run.workflow, status="paused")
    info = run.desk.call("state_resume_info", workspace=run.workspace)
    assert (info["status"], info["stopped"]) == ("paused", "paused")
    assert run.next()["stopped"]["reason"] == "paused"
    run.produce("design.md")
    stopped = run.next(previous_action_complete=True, previous_action_id=action["action_id"], previous_tokens=5)
    assert (stopped["stopped"]["before_phase"], stopped["report_result"]["artifact_written"]) == (
        "phase-3b",
        "design.md",
    )
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "paused"
    run.desk.call("workflow_update_status", id=run.workflow, status="in_progress")
    assert run.next()["phase"] == "phase-3b"
    assert run.run()["summary"].startswith("Pipeline completed")


def test_a_report_by_name_is_taken_while_it_is_paused(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(at_phase("phase-3"))
    run.desk.call("workflow_update_status", id=run.workflow, status="paused")
    run.next()
    run.produce("design.md")
    run.desk.call("pipeline_report_result", workspace=run.workspace, phase="phase-3", tokens_used=5)
    assert run.next()["stopped"] == {
        "reason": "paused",
        "before_phase": "phase-3b",
        "go_on_with": f"a person runs: handrail pipeline resume {run.workspace}",
    }


# -- beginning later --------------------------------------------------------------------------------------------------

DOCUMENTS = {
    "analysis.md": "# A\n",
    "investigation.md": "# I\n",
    "design.md": "## D\n",
    "review-design.md": "# R\n\n## Verdict: APPROVE\n",
}
LATER = {"workspace": ".specs/20260401-later", "task_text": "Fix the auth timeout"}


def lay(project: Path, documents: dict[str, str], workspace: str = LATER["workspace"]) -> None:
    (project / workspace).mkdir(parents=True, exist_ok=True)
    for name, text in documents.items():
        (project / workspace / name).write_text(text, encoding="utf-8")


def begun_at(desk: Desk, phase: str, **confirmed: Any) -> dict[str, Any]:
    given = {"effort": "L", **confirmed}
    answer: dict[str, Any] = desk.call(
        "pipeline_init_with_context", **LATER, flags={"begin_at": phase}, user_confirmation=given
    )
    return answer


def test_a_run_begins_at_a_phase_whose_documents_are_there(tmp_path: Path) -> None:
    desk, project = Desk(tmp_path, profile="", toolsets="pipeline,plan"), tmp_path / "project"
    lay(project, {**DOCUMENTS, "request.md": "What I wrote myself.\n"})
    ready = begun_at(desk, "phase-4")
    assert ready["given_phases"] == ["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"]
    run = Adopting(desk, project, ready["workspace"])
    assert run.next()["phase"] == "phase-4"
    assert run.run()["summary"].startswith("Pipeline completed")
    assert (project / run.workspace / "request.md").read_text(encoding="utf-8") == "What I wrote myself.\n"
    assert ready["request_md_content"] == "What I wrote myself.\n"


def test_what_is_missing_is_named_and_nothing_is_begun(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    lay(tmp_path / "project", {"analysis.md": "# A\n"})
    with pytest.raises(InvalidParams, match=r"investigation\.md, design\.md, review-design\.md"):
        begun_at(desk, "phase-4")
    assert desk.store.position() == 0


def test_a_workspace_with_a_run_of_its_own_is_not_begun_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    lay(tmp_path / "project", {**DOCUMENTS, "state.json": "{}"})
    with pytest.raises(InvalidParams, match="is there already"):
        begun_at(desk, "phase-4")


@pytest.mark.parametrize("phase", ["phase-4", "phase-5", "phase-7", "final-commit"])
def test_where_people_decide_no_later_beginning_passes_a_gate(tmp_path: Path, phase: str) -> None:
    desk, project = Desk(tmp_path, profile="", toolsets="pipeline,plan", approvals="human"), tmp_path / "project"
    per_task = {f"{kind}-{number}.md": "# T\n" for kind in ("impl", "review") for number in (1, 2, 3)}
    rest = ("review-tasks.md", "comprehensive-review.md", "final-verification.md", "summary.md")
    lay(project, {**DOCUMENTS, **per_task, **dict.fromkeys(rest, "# X\n"), "tasks.md": TASKS})
    run = Adopting(desk, project, begun_at(desk, phase)["workspace"])
    action = run.run(lambda action: action["type"] == "checkpoint")
    assert action["name"] == "checkpoint-a"
    assert run.phases() == ["phase-3b"], "the review that nobody read is done"
    refusal = desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, NotAllowed)


# -- coming from elsewhere --------------------------------------------------------------------------------------------


def copy_of(run: Orchestrator, folder: Path, **settings: Any) -> Adopting:
    """The workspace in another project, with another store."""
    desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
    shutil.copytree(run.project / run.workspace, folder / "project" / run.workspace)
    return Adopting(desk, folder / "project", run.workspace)


@pytest.mark.parametrize("effort", ["S", "L"])
def test_a_run_is_taken_over_at_every_point(tmp_path: Path, effort: str) -> None:
    run = Deskbound(tmp_path / "here", effort=effort)
    action = run.next()
    for step in range(60):
        other = copy_of(run, tmp_path / f"there-{step}")
        taken = other.next()
        assert taken.pop("taken_over_from") == "state.json"
        same = [key for key in action if key not in ("report_result", "warning", "gate_id", "prompt")]
        assert {key: taken[key] for key in same} == {key: action[key] for key in same}
        assert other.run()["summary"].startswith("Pipeline completed")
        assert other.desk.store.verify() == []
        if action["type"] == "done":
            break
        action = run.do(action)
    assert action["type"] == "done"


def test_one_is_told_that_it_comes_from_elsewhere_before_it_is_taken_over(tmp_path: Path) -> None:
    run = Deskbound(tmp_path / "here")
    run.run(at_phase("phase-4"))
    other = copy_of(run, tmp_path / "there")
    for text in (run.workspace, run.workspace.removeprefix(".specs/")):
        answer = other.call("pipeline_init", arguments=text)
        assert answer == {"resume_mode": "auto", "workspace": run.workspace, "instruction": "call state_resume_info"}
    info = other.call("state_resume_info", workspace=run.workspace)
    assert info["imported_from"] == "state.json"
    assert info["completed_phases"][-1] == "checkpoint-a"
    assert other.desk.store.position() == 0, "looking takes nothing over"
    assert other.next()["taken_over_from"] == "state.json"
    assert "taken_over_from" not in other.next()
    assert "imported_from" not in other.call("state_resume_info", workspace=run.workspace)


def test_a_report_does_not_take_anything_over(tmp_path: Path) -> None:
    run = Deskbound(tmp_path / "here")
    run.run(at_phase("phase-4"))
    other = copy_of(run, tmp_path / "there")
    refusal = other.desk.refusal("pipeline_report_result", workspace=run.workspace, phase="phase-4")
    assert isinstance(refusal, RunNotFound)


def test_a_document_that_was_changed_on_the_way_is_written_again(tmp_path: Path) -> None:
    run = Deskbound(tmp_path / "here")
    run.run(at_phase("phase-5"))
    other = copy_of(run, tmp_path / "there")
    other.write("design.md", "## Another design\n")
    assert other.next()["phase"] == "phase-3"
    assert other.run(lambda action: action["type"] == "checkpoint")["name"] == "checkpoint-a"


def test_where_people_decide_an_agent_takes_nothing_over(tmp_path: Path) -> None:
    run = Deskbound(tmp_path / "here")
    run.run(at_phase("phase-4"))
    other = copy_of(run, tmp_path / "there", approvals="human")
    for arguments in ({}, {"take_over": True}, {"user_response": "approve"}):
        refusal = other.desk.refusal("pipeline_next_action", workspace=run.workspace, **arguments)
        assert isinstance(refusal, NotAllowed)
        assert f"handrail pipeline import {run.workspace}" in (refusal.hint or "")
    assert other.desk.store.position() == 0


@pytest.mark.parametrize("text", ["", "{", "null", '{"version": 1}', "[" * 50_000, "\0", "\ufeff{}"])
def test_a_state_that_says_nothing_is_refused_and_leaves_nothing(tmp_path: Path, text: str) -> None:
    run = Deskbound(tmp_path / "here")
    run.next()
    other = copy_of(run, tmp_path / "there")
    other.write("state.json", text)
    for tool in ("state_resume_info", "pipeline_next_action"):
        refusal = other.desk.refusal(tool, workspace=run.workspace)
        assert isinstance(refusal, InvalidParams)
        assert "copy the workspace whole" in (refusal.hint or "")
    assert other.desk.store.position() == 0


def test_a_state_that_is_too_long_or_a_link_is_none(tmp_path: Path) -> None:
    run = Deskbound(tmp_path / "here")
    run.next()
    other = copy_of(run, tmp_path / "there")
    file = other.project / run.workspace / "state.json"
    file.write_bytes(b" " * (9 * 1024 * 1024))
    assert isinstance(other.desk.refusal("pipeline_next_action", workspace=run.workspace), RunNotFound)
    file.unlink()
    file.symlink_to(run.project / run.workspace / "state.json")
    assert isinstance(other.desk.refusal("pipeline_next_action", workspace=run.workspace), RunNotFound)


def test_a_flow_of_the_projects_own_is_known_where_the_project_has_it(tmp_path: Path) -> None:
    flow = "name: own\nphases:\n  - {id: go, label: Go, kind: exec, commands: [[make, all]]}\n"
    run = Deskbound(tmp_path / "here")
    lay(run.project, {"own.yaml": flow}, ".handrail/flows")
    ready = run.call(
        "pipeline_init_with_context", **LATER, user_confirmation={"effort": "S", "flow": "own", "workspace_slug": "own"}
    )
    run.workspace = ready["workspace"]
    assert run.next()["commands"] == ["make", "all"]
    other = copy_of(run, tmp_path / "there")
    refusal = other.desk.refusal("pipeline_next_action", workspace=run.workspace)
    assert isinstance(refusal, InvalidParams)
    assert "make all" in refusal.message
    lay(other.project, {"own.yaml": flow}, ".handrail/flows")
    assert other.next()["commands"] == ["make", "all"]


def test_the_mirror_says_nothing_of_the_machine(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    client = CallingClient(session=new_session())
    run.call = lambda tool, **arguments: run.desk.call_as(client, tool, **arguments)
    run.next()
    mirrored = (run.project / run.workspace / "state.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in mirrored
    assert str(os.getpid()) not in msgspec.json.decode(mirrored).get("holder", "")
    assert '"session"' not in mirrored


# -- requests that look like something else ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["認証のタイムアウトを直す" * 40, "x" * 5000, "a\0b", ".specs/" + "y" * 400, "../etc"])
def test_a_request_of_one_word_is_a_request(tmp_path: Path, text: str) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline")
    lay(tmp_path / "project", {})
    answer = desk.call("pipeline_init", arguments=text)
    assert answer.get("core_text") == text or "errors" in answer


def test_errors_are_told_once_and_not_without_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline")
    assert len(desk.call("pipeline_init", arguments="Fix it all" + " --bad" * 5000)["errors"]) == 1
    for text in (" ".join(f"--bad{n}" for n in range(5000)), "--" + "x" * 90_000, ".specs/" + "x" * 90_000):
        assert len(msgspec.json.encode(desk.call("pipeline_init", arguments=text))) < 8192


def test_an_answer_to_a_run_that_stands_still_without_a_question_is_refused(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, text="Fix the auth timeout --until=phase-1")
    run.run(is_stopped)
    refusal = run.desk.refusal("pipeline_next_action", workspace=run.workspace, user_response="approve")
    assert isinstance(refusal, IllegalTransition)
