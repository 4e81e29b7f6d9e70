"""What a run does not let happen behind its back: tasks finished without its review, flows that ask people less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.errors import IllegalTransition, NotAllowed, SettingInvalid
from handrail.kernel.records import where
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER, Desk

NO_GATES = """name: hasty
description: No questions.
extends: standard
skip: [checkpoint-a, phase-3b, phase-6]
"""


def begun(folder: Path, **settings: Any) -> Orchestrator:
    return Orchestrator(Desk(folder, profile="", toolsets="pipeline,plan", **settings).call, folder / "project")


def test_a_task_of_a_run_is_finished_by_its_review_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.run(lambda action: action.get("phase") == "phase-5")
    (task, *_) = desk.call("workflow_get", id=run.workflow, include_tasks=True)["tasks"]
    refusal = desk.refusal("task_update_status", id=task["id"], status="completed", outcome="I say so.")
    assert isinstance(refusal, IllegalTransition)
    assert "pipeline_next_action" in refusal.hint
    run.run()
    assert desk.task(task["id"])["status"] == "completed"


def confirmed(desk: Desk, flow: str) -> dict[str, Any]:
    return {
        "workspace": ".specs/20260401-x",
        "task_text": "Fix it",
        "user_confirmation": {"effort": "M", "workspace_slug": "x", "flow": flow},
    }


def with_flow(folder: Path, **settings: Any) -> Desk:
    desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
    flows = folder / "project" / ".handrail" / "flows"
    flows.mkdir(parents=True)
    (flows / "hasty.yaml").write_text(NO_GATES, encoding="utf-8")
    return desk


def test_where_people_decide_no_flow_asks_them_less(tmp_path: Path) -> None:
    desk = with_flow(tmp_path, approvals="human")
    refusal = desk.refusal("pipeline_init_with_context", **confirmed(desk, "hasty"))
    assert isinstance(refusal, NotAllowed)
    assert "phase-3b" in refusal.message
    assert "own_flows" in refusal.hint


@pytest.mark.parametrize("settings", [{"approvals": "agent"}, {"approvals": "human", "own_flows": "hasty"}])
def test_a_flow_that_people_accept_is_followed(tmp_path: Path, settings: dict[str, Any]) -> None:
    desk = with_flow(tmp_path, **settings)
    assert desk.call("pipeline_init_with_context", **confirmed(desk, "hasty"))["flow_template"] == "hasty"


def test_only_the_projects_file_accepts_a_flow_where_it_asks_for_people(tmp_path: Path) -> None:
    config = tmp_path / "project" / ".handrail" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('approvals = "human"\n', encoding="utf-8")
    with pytest.raises(SettingInvalid):
        Desk(tmp_path, own_flows="hasty")


def test_an_answer_that_leads_to_another_gate_stays_answered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.written["review-design.md"] = [f"{n}\n## Verdict: REVISE\n" for n in range(9)]
    limit = run.run(lambda action: action["type"] == "checkpoint")
    after = run.next(user_response="approve", gate_id=limit["gate_id"])
    assert after["name"] == "checkpoint-a"
    gates = desk.store.run(TESTER, lambda unit: {gate.id: gate for gate in unit.select(Gate, where(kind="decision"))})
    assert (gates[limit["gate_id"]].status, gates[limit["gate_id"]].answer) == ("answered", "approve")
    assert gates[after["gate_id"]].status == "open"


def test_where_people_decide_no_agent_lets_a_paused_run_go_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan", approvals="human")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.next()
    desk.call("workflow_update_status", id=run.workflow, status="paused")
    refusal = desk.refusal("workflow_update_status", id=run.workflow, status="in_progress")
    assert isinstance(refusal, NotAllowed)
    assert "handrail pipeline resume" in refusal.hint
    assert run.next()["stopped"]["reason"] == "paused"


def test_nothing_is_pushed_but_the_runs_own_branch(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.run()
    commands = [action["commands"] for action in run.seen if action["type"] == "exec"]
    pushes = [command for command in commands if command[:2] == ["git", "push"]]
    assert [command[-1] for command in pushes] == ["HEAD:refs/heads/feature/work"] * len(pushes)
    assert pushes
