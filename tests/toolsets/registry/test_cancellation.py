"""Cancelling calls and runs: once, by anybody, with an outcome; what was cancelled in time has written nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.registry.cancellation import CancellingCaller, RunningCall, begin_call, find_call
from handrail.kernel.errors import Cancelled, InvalidParams, OperationNotFound, Refusal, RunNotFound
from handrail.kernel.records import Query
from handrail.surfaces.invocation import CallingClient
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import Beginning, RegistryDesk


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "events", "cancellation")


def row(desk: RegistryDesk, op_id: str) -> RunningCall | None:
    return desk.store.run(TESTER, lambda unit: find_call(unit, op_id))


def status(desk: RegistryDesk, op_id: str) -> str:
    found = row(desk, op_id)
    assert found is not None
    return found.status


def under_way(desk: RegistryDesk, op_id: str, **arguments: Any) -> None:
    """A call that has begun, in this process, and does not come to its end."""
    caller = CancellingCaller("tester", "somewhere")
    desk.store.run(TESTER, lambda unit: begin_call(unit, op_id, "logs_tail", caller, arguments, lambda _: True))


def waits(desk: RegistryDesk, op_id: str, **wanted: Any) -> Beginning:
    """A long poll; back once it is under way."""
    begun = desk.store.position()
    poll = {"from_seq": begun, "cats": ["bb"], "wait_ms": 25_000, **wanted}
    waiting = Beginning(lambda: desk.call("events_subscribe", **poll, op_id=op_id))
    while row(desk, op_id) is None:
        desk.store.wait(begun, 10)
    return waiting


# -- calls ------------------------------------------------------------------------------------------------------------


def test_a_long_poll_ends_when_it_is_cancelled(desk: RegistryDesk) -> None:
    waiting = waits(desk, "poll 1")
    outcome = desk.call("op_cancel", op_id="poll 1", reason="no longer needed")
    assert (outcome["ok"], outcome["outcome"], outcome["reason"]) == (True, "requested", "no longer needed")
    with pytest.raises(Cancelled) as refused:
        waiting.result()
    assert "no longer needed" in refused.value.message
    assert refused.value.details["op_id"] == "poll 1"
    assert status(desk, "poll 1") == "cancelled"


def test_cancelling_again_changes_nothing(desk: RegistryDesk) -> None:
    under_way(desk, "slow")
    assert desk.call("op_cancel", op_id="slow", reason="first")["outcome"] == "requested"
    before = desk.store.position()
    again = desk.call("op_cancel", op_id="slow", reason="second")
    assert (again["outcome"], again["reason"]) == ("already_cancelled", "first")
    assert desk.store.position() == before


def test_what_has_ended_is_already_done(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    desk.call("task_get", id="task_1", op_id="look")
    outcome = desk.call("op_cancel", op_id="look")
    assert (outcome["outcome"], outcome["run_id"], outcome["task_id"]) == ("already_done", "wf_1", "task_1")


def test_a_call_whose_process_died_is_done(desk: RegistryDesk) -> None:
    under_way(desk, "slow")
    desk.with_world(is_alive=lambda session: session != "somewhere")
    assert desk.call("op_cancel", op_id="slow")["outcome"] == "already_done"
    assert status(desk, "slow") == "done"
    assert desk.call("op_cancel", op_id="slow")["outcome"] == "already_done"


def test_an_unknown_id_is_refused_with_what_is_under_way(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    under_way(desk, "slow")
    refusal = desk.refusal("op_cancel", op_id="sloow")
    assert isinstance(refusal, OperationNotFound)
    assert "slow (logs_tail)" in refusal.hint
    assert "wf_1" in refusal.hint
    assert isinstance(desk.refusal("plan_cancel", run_id="wf_9"), RunNotFound)


def test_a_write_that_was_cancelled_before_it_wrote_writes_nothing(desk: RegistryDesk) -> None:
    """The cancellation comes while the call looks at the world: between its beginning and its unit of work."""
    desk.plan({"name": "one"})
    cancel = Beginning(lambda: None)

    def new_secret() -> str:
        nonlocal cancel
        cancel = Beginning(lambda: desk.call("op_cancel", op_id="register"))
        assert cancel.result()["outcome"] == "requested"
        return "s" * 24

    desk.with_world(new_secret=new_secret)
    with pytest.raises(Cancelled):
        desk.call("agent_register", name="Anna", runtime="custom", op_id="register")
    assert desk.call("agent_list")["total"] == 0
    assert status(desk, "register") == "cancelled"


def test_a_write_and_the_end_of_its_call_are_one(desk: RegistryDesk) -> None:
    desk.call("agent_register", name="Anna", runtime="custom", op_id="register")
    kinds = [event.kind for event in desk.store.feed()]
    assert sorted(kinds) == ["agent.registered", "op.done", "op.started"]
    assert desk.call("op_cancel", op_id="register")["outcome"] == "already_done"


def test_a_refused_call_has_ended_too(desk: RegistryDesk) -> None:
    with pytest.raises(Refusal):
        desk.call("task_get", id="task_9", op_id="look")
    (ended,) = [event for event in desk.store.feed() if event.kind == "op.done"]
    assert ended.data["refused"] == "TASK_NOT_FOUND"


def test_a_call_that_its_client_gives_up_counts_as_cancelled(desk: RegistryDesk) -> None:
    desk.call_as(CallingClient(), "events_subscribe", cancelled=lambda: True, cats=["bb"], wait_ms=25_000, op_id="left")
    assert status(desk, "left") == "cancelled"


def test_an_id_is_one_calls_at_a_time(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    under_way(desk, "mine")
    refusal = desk.refusal("task_get", id="task_1", op_id="mine")
    assert isinstance(refusal, InvalidParams)
    assert "still under way" in refusal.message
    desk.with_world(is_alive=lambda _: False)
    assert desk.call("task_get", id="task_1", op_id="mine")["id"] == "task_1"
    assert desk.call("task_get", id="task_1", op_id="mine")["id"] == "task_1"


@pytest.mark.parametrize("op_id", ["", "x" * 201, 7, "a\nb", "key:x"])
def test_an_id_that_cannot_be_one_is_refused(desk: RegistryDesk, op_id: Any) -> None:
    desk.plan({"name": "one"})
    assert isinstance(desk.refusal("task_get", id="task_1", op_id=op_id), InvalidParams)


def test_without_the_toolset_an_op_id_is_refused_and_the_flag_named(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path)
    desk.plan({"name": "one"})
    refusal = desk.refusal("task_get", id="task_1", op_id="look")
    assert isinstance(refusal, InvalidParams)
    assert "--enable-cancellation" in refusal.hint
    assert isinstance(desk.refusal("mcp_info", op_id="look"), InvalidParams), "what needs no store cannot be cancelled"


def test_where_identity_is_strict_nobody_leaves_a_row_in_anothers_name(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "cancellation", identity="strict")
    desk.plan({"name": "one"})
    anna = desk.call("agent_register", name="Anna", runtime="custom")
    with pytest.raises(Refusal):
        desk.call("task_get", id="task_1", agent_id=anna["id"], op_id="look")
    found = row(desk, "look")
    assert found is not None
    assert found.agent == "tester"


def test_an_agent_that_only_waits_does_not_seem_to_work(desk: RegistryDesk) -> None:
    anna = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    desk.call("events_subscribe", cats=["bb"], agent_id=anna, op_id="look")
    assert desk.call("agent_get", id=anna)["liveness"]["state"] == "idle"
    assert desk.call("op_cancel", op_id="look")["child_id"] == anna


# -- runs -------------------------------------------------------------------------------------------------------------


def test_a_cancelled_run_is_abandoned_its_claims_are_free_and_its_calls_end(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"}, {"name": "two"})
    anna = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    desk.call("task_claim", task_id="task_1", agent_id=anna, start=True)
    waiting = waits(desk, "watch", run_id="wf_1")
    under_way(desk, "other", run_id="wf_2")
    outcome = desk.call("plan_cancel", run_id="wf_1", reason="superseded")
    assert outcome == {
        "run_id": "wf_1",
        "outcome": "requested",
        "reason": "superseded",
        "operations": [{"op_id": "watch", "outcome": "requested"}],
    }
    with pytest.raises(Cancelled):
        waiting.result()
    assert desk.call("workflow_get", id="wf_1")["status"] == "abandoned"
    assert desk.task("task_1")["assigned_agent_id"] is None
    heard = desk.call("agent_heartbeat", agent_id=anna)
    assert "holding" not in heard
    assert [loss["task_id"] for loss in heard["lost"]] == ["task_1"]
    assert status(desk, "other") == "running"
    (ended,) = [event for event in desk.store.events("wf_1") if event.kind == "workflow.abandoned"]
    assert ended.data == {"reason": "superseded"}


def test_a_runs_id_is_an_op_id(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    under_way(desk, "watch", task_id="task_1")
    outcome = desk.call("op_cancel", op_id="wf_1", reason="no")
    assert (outcome["outcome"], outcome["run_id"], outcome["graph_id"]) == ("requested", "wf_1", "wf_1")
    assert outcome["operations"] == [{"op_id": "watch", "outcome": "requested"}]
    for tool, name in (("op_cancel", "op_id"), ("plan_cancel", "run_id")):
        again = desk.call(tool, **{name: "wf_1"}, reason="later")
        assert (again["outcome"], again["reason"]) == ("already_cancelled", "no"), "as whoever was first said it"


def test_an_op_id_cannot_hide_a_run(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    for taken in ("wf_1", "task_1"):
        refusal = desk.refusal("task_get", id="task_1", op_id=taken)
        assert isinstance(refusal, InvalidParams)
        assert "is the id of" in refusal.message


def test_a_call_about_an_address_of_a_run_ends_with_it(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    for number, uri in enumerate(("sc://graphs/wf_1", "sc://graphs/wf_1@v1", "sc://runs/wf_1/events")):
        under_way(desk, f"watch {number}", uri=uri)
    for number, uri in enumerate(("sc://blackboard/wf_1", "sc://children/wf_1/logs", "wf_1", "sc://graphs/wf_9")):
        under_way(desk, f"other {number}", uri=uri)
    outcome = desk.call("plan_cancel", run_id="wf_1")
    assert sorted(one["op_id"] for one in outcome["operations"]) == ["watch 0", "watch 1", "watch 2"]


def test_a_call_that_is_over_leaves_no_row(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    for number in range(3):
        desk.call("task_get", id="task_1", op_id=f"look {number}")
    assert desk.store.run(TESTER, lambda unit: unit.count(RunningCall, Query())) == 0
    assert desk.call("op_cancel", op_id="look 1")["outcome"] == "already_done"
    assert desk.store.verify() == []


def test_a_completed_run_stays_completed(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    desk.move("task_1", "in_progress", "completed")
    desk.call("workflow_update_status", id="wf_1", status="completed")
    assert desk.call("plan_cancel", run_id="wf_1") == {
        "run_id": "wf_1",
        "outcome": "already_done",
        "reason": None,
        "operations": [],
    }
    assert desk.call("workflow_get", id="wf_1")["status"] == "completed"


def test_what_cancels_a_run_is_not_cancelled_by_it(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    outcome = desk.call("plan_cancel", run_id="wf_1", op_id="the end")
    assert outcome["operations"] == []
    assert status(desk, "the end") == "done"


CONFIRMED = {
    "workspace": ".specs/20260401-fix-auth",
    "task_text": "Fix the auth timeout",
    "user_confirmation": {"effort": "M", "workspace_slug": "fix-auth"},
}


@pytest.mark.parametrize("approvals", ["agent", "human"])
def test_a_pipelines_run_is_given_up_by_its_own_steering(tmp_path: Path, approvals: str) -> None:
    """Cancelling opens no gate: an agent may, whoever decides here."""
    desk = RegistryDesk(
        tmp_path, "cancellation", profile="all", toolsets="pipeline,workflow,task,agent,message", approvals=approvals
    )
    assert desk.call("pipeline_init_with_context", **CONFIRMED)["ready"]
    workflow = desk.call("workflow_list")["workflows"][0]
    desk.call("pipeline_next_action", workspace=CONFIRMED["workspace"])
    assert desk.call("plan_cancel", run_id=workflow["id"], reason="no")["outcome"] == "requested"
    assert desk.call("workflow_get", id=workflow["id"])["status"] == "abandoned"
    info = desk.call("state_resume_info", workspace=CONFIRMED["workspace"])
    assert info["status"] == "abandoned"
    assert desk.call("op_cancel", op_id=workflow["id"])["outcome"] == "already_cancelled"
    ended = [event.data for event in desk.store.events(workflow["id"]) if event.kind == "workflow.abandoned"]
    assert ended == [{"reason": "no"}]
