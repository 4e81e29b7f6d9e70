"""Agents that come, work, fall silent and come back. What one claim means to everybody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import (
    AgentNotFound,
    ClaimHeld,
    IdentityUnproven,
    InvalidParams,
    NotAllowed,
    StoreUnusable,
    TaskBlocked,
)
from tests.toolsets.plan.planned import Desk

HEARTBEAT_MS = 30_000
LEASE_MS = 3 * HEARTBEAT_MS
CHAIN = ({"name": "one"}, {"name": "two", "depends_on": ["one"]})
TASK_PLAN = {"approach": "a", "steps": ["s"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def register(desk: Desk, name: str, **given: Any) -> str:
    answer = desk.call("agent_register", name=name, runtime="custom", **given)
    return str(answer["id"])


def claim(desk: Desk, task_id: str, agent_id: str, **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = desk.call("task_claim", task_id=task_id, agent_id=agent_id, **given)
    return answer


# -- claims -----------------------------------------------------------------------------------------------------------


def test_a_claim_is_refused_to_everybody_else_while_it_lasts(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    granted = claim(desk, "task_1", anna)
    assert (granted["success"], granted["fence"]) == (True, 1)
    denied = claim(desk, "task_1", ben)
    assert denied["success"] is False
    assert (denied["already_claimed_by"], denied["held_by_name"]) == (anna, "Anna")
    assert denied["held_since"] == desk.clock.now_ms()
    assert desk.task("task_1")["assigned_agent_id"] == anna


def test_claiming_again_renews_under_the_same_fence(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    first = claim(desk, "task_1", anna)
    desk.clock.advance(HEARTBEAT_MS)
    again = claim(desk, "task_1", anna)
    assert again["fence"] == first["fence"]
    assert again["expires_at"] == first["expires_at"] + HEARTBEAT_MS


def test_claim_and_start_are_one_call(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    assert claim(desk, "task_1", anna, start=True)["status"] == "in_progress"
    shown = desk.task("task_1")
    assert (shown["status"], shown["attempts"], shown["assigned_agent_id"]) == ("in_progress", 1, anna)


def test_a_blocked_task_cannot_be_claimed(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    assert isinstance(desk.refusal("task_claim", task_id="task_2", agent_id=anna), TaskBlocked)


def test_a_claim_is_lost_after_three_heartbeats_of_silence_and_not_a_moment_earlier(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna)
    desk.clock.advance(LEASE_MS - 1)
    assert claim(desk, "task_1", ben)["success"] is False
    desk.clock.advance(1)
    assert desk.task("task_1")["assigned_agent_id"] is None
    taken = claim(desk, "task_1", ben)
    assert (taken["success"], taken["fence"], taken["taken_from"]) == (True, 2, anna)


def test_any_call_of_an_agent_renews_its_claims(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna)
    for _ in range(4):
        desk.clock.advance(LEASE_MS - HEARTBEAT_MS)
        desk.call("task_get", id="task_1", agent_id=anna)
    assert claim(desk, "task_1", ben)["success"] is False


def test_who_was_taken_over_is_refused_and_told_by_whom_and_since_when(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    fence = claim(desk, "task_1", anna, start=True)["fence"]
    desk.clock.advance(LEASE_MS)
    claim(desk, "task_1", ben, start=True)
    since = desk.clock.now_ms()
    desk.clock.advance(5000)
    refusal = desk.refusal(
        "task_update_status", id="task_1", status="completed", outcome="o", agent_id=anna, fence=fence
    )
    assert isinstance(refusal, ClaimHeld)
    assert (refusal.details["held_by"], refusal.details["since"], refusal.details["fence"]) == (ben, since, 2)
    assert f"has been held by Ben ({ben}) for 5 seconds" in refusal.message


def test_an_agent_that_comes_back_is_told_what_it_lost(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "three"})
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    claim(desk, "task_2", anna)
    desk.clock.advance(LEASE_MS)
    claim(desk, "task_1", ben)
    back = desk.call("agent_heartbeat", agent_id=anna)
    assert [(loss["task_id"], loss["now_held_by"]) for loss in back["lost"]] == [("task_1", ben)]
    assert [lapse["task_id"] for lapse in back["lapsed"]] == ["task_2"]
    assert "holding" not in back
    assert back["unread_messages"] == 1


def test_a_claim_that_ran_out_and_nobody_took_is_taken_up_by_its_holders_next_write(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    fence = claim(desk, "task_1", anna, start=True)["fence"]
    desk.clock.advance(LEASE_MS * 2)
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary="s", agent_id=anna, fence=fence)
    denied = claim(desk, "task_1", ben)
    assert (denied["success"], denied["already_claimed_by"]) == (False, anna)


def test_an_old_fence_is_refused_even_when_nobody_holds_the_task_any_more(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    fence = claim(desk, "task_1", anna)["fence"]
    desk.clock.advance(LEASE_MS)
    claim(desk, "task_1", ben)
    desk.call("task_release", task_id="task_1", agent_id=ben)
    refusal = desk.refusal("checkpoint_add", task_id="task_1", type="progress", summary="s", agent_id=anna, fence=fence)
    assert isinstance(refusal, ClaimHeld)
    assert "not yours" in refusal.message


def test_a_fence_of_an_earlier_claim_of_the_same_agent_is_refused(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    claim(desk, "task_1", anna)
    desk.call("task_release", task_id="task_1", agent_id=anna)
    assert claim(desk, "task_1", anna)["fence"] == 2
    refusal = desk.refusal("checkpoint_add", task_id="task_1", type="progress", summary="s", agent_id=anna, fence=1)
    assert isinstance(refusal, ClaimHeld)


def test_a_fence_for_a_task_that_was_never_claimed_is_refused(desk: Desk) -> None:
    desk.plan(*CHAIN)
    refusal = desk.refusal("task_update_status", id="task_1", status="in_progress", fence=1)
    assert isinstance(refusal, ClaimHeld)


def test_who_says_no_name_may_write_while_nobody_holds_the_task(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    desk.move("task_1", "in_progress")
    claim(desk, "task_1", anna)
    assert isinstance(desk.refusal("task_update_status", id="task_1", status="paused"), ClaimHeld)
    desk.clock.advance(LEASE_MS)
    desk.move("task_1", "paused")


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_task_that_ends_ends_its_claim(desk: Desk, status: str) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")
    claim(desk, "task_1", anna, start=True)
    desk.call("task_update_status", id="task_1", status=status, outcome="o", error="e", agent_id=anna)
    assert "holding" not in desk.call("agent_heartbeat", agent_id=anna)
    assert desk.task("task_1")["assigned_agent_id"] == (anna if status == "completed" else None)


def test_a_failed_task_is_offered_again(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    desk.call("task_update_status", id="task_1", status="failed", error="the proxy hangs", agent_id=anna)
    (offered,) = desk.call("task_get_available", agent_id=ben)["tasks"]
    assert "the proxy hangs" in offered["reason"]
    assert claim(desk, "task_1", ben, start=True)["fence"] == 2


def test_a_replanned_task_loses_its_claim(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    desk.call("task_replan", id="task_1", reason="r", new_plan=TASK_PLAN, agent_id=anna)
    assert claim(desk, "task_1", ben)["success"] is True


def test_a_task_given_back_is_pending_and_anybodys(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    assert desk.call("task_release", task_id="task_1", agent_id=anna, reason="r") == {
        "success": True,
        "status": "pending",
    }
    assert claim(desk, "task_1", ben, start=True)["success"] is True
    assert desk.task("task_1")["attempts"] == 2


def test_a_fence_that_was_given_back_or_is_anothers_is_good_for_nothing(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    chief = register(desk, "Chief", role="coordinator")
    fence = claim(desk, "task_1", anna, start=True)["fence"]
    note: dict[str, Any] = {"task_id": "task_1", "type": "progress", "summary": "s", "fence": fence}
    assert isinstance(desk.refusal("task_release", task_id="task_1", agent_id=anna, fence=fence + 1), ClaimHeld)
    desk.clock.advance(LEASE_MS)
    assert isinstance(desk.refusal("checkpoint_add", **note, agent_id=ben), ClaimHeld)
    desk.call("task_release", task_id="task_1", agent_id=chief)
    assert isinstance(desk.refusal("checkpoint_add", **note, agent_id=anna), ClaimHeld)


def test_a_worktree_that_cannot_be_made_or_kept_leaves_the_claim_as_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.plan(*CHAIN, auto_create_workspaces=True)
    anna = register(desk, "Anna")

    def gone(*_: Any, **__: Any) -> Any:
        raise StoreUnusable("the store is gone")

    monkeypatch.setattr("handrail.toolsets.plan.claims.find_workflow", gone)
    answer = claim(desk, "task_1", anna, start=True)
    assert answer["success"] is True
    assert answer["warnings"] == ["no worktree was made: the store is gone"]
    assert "wants_room" not in answer


def test_only_a_coordinator_frees_what_another_holds(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    chief = register(desk, "Chief", role="coordinator")
    claim(desk, "task_1", anna)
    assert isinstance(desk.refusal("task_release", task_id="task_1", agent_id=ben), ClaimHeld)
    assert desk.call("task_release", task_id="task_1", agent_id=chief)["success"] is True
    assert desk.call("agent_heartbeat", agent_id=anna)["lost"][0]["task_id"] == "task_1"


def test_a_replan_of_the_workflow_leaves_claimed_tasks_alone(desk: Desk) -> None:
    workflow = desk.plan({"name": "one"}, {"name": "two"})
    anna = register(desk, "Anna")
    claim(desk, "task_1", anna)
    new = [{"name": "three", "description": "", "sequence": 1}]
    answer = desk.call("workflow_replan", id=workflow, reason="r", tasks=new)
    assert (answer["removed"], desk.task("task_1")["assigned_agent_id"]) == (["two"], anna)


def test_what_is_over_is_nobodys_claim_any_more(desk: Desk) -> None:
    first = desk.plan({"name": "one"}, {"name": "two"})
    anna = register(desk, "Anna")
    claim(desk, "task_1", anna)
    desk.call("workflow_update_status", id=first, status="abandoned")
    back = desk.call("agent_heartbeat", agent_id=anna)
    assert "holding" not in back
    desk.clock.advance(LEASE_MS)
    assert "lapsed" not in desk.call("agent_heartbeat", agent_id=anna)


# -- offers -----------------------------------------------------------------------------------------------------------


def test_an_agent_is_offered_what_it_can_do_the_best_match_first(desk: Desk) -> None:
    desk.plan(
        {"name": "plain", "priority": 9},
        {"name": "both", "requires": ["python", "sql"]},
        {"name": "snake", "requires": ["python"]},
        {"name": "rust", "requires": ["rust"]},
    )
    anna = register(desk, "Anna", capabilities=["python", "sql"])
    answer = desk.call("task_get_available", agent_id=anna)
    assert [task["name"] for task in answer["tasks"]] == ["both", "snake", "plain"]
    assert answer["tasks"][0]["reason"] == "ready: it asks for python and sql, which you have"
    assert answer["beyond_you"] == [{"id": "task_4", "name": "rust", "missing": ["rust"]}]


def test_a_task_begun_by_a_lost_agent_is_offered_with_its_name(desk: Desk) -> None:
    workflow = desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    assert desk.call("task_get_available", agent_id=ben)["tasks"] == []
    desk.clock.advance(LEASE_MS)
    (offered,) = desk.call("task_get_available", agent_id=ben)["tasks"]
    assert (offered["status"], offered["assigned_agent_id"]) == ("in_progress", None)
    assert "Anna" in offered["reason"]
    (next_task,) = desk.call("workflow_next_tasks", workflow_id=workflow)["tasks"]
    assert (next_task["id"], next_task["begun_by"]) == ("task_1", anna)


def test_what_is_claimed_is_not_next_for_others(desk: Desk) -> None:
    workflow = desk.plan({"name": "one"}, {"name": "two"})
    claim(desk, "task_1", register(desk, "Anna"))
    assert [task["name"] for task in desk.call("workflow_next_tasks", workflow_id=workflow)["tasks"]] == ["two"]


def test_the_task_that_is_meant_is_the_callers_own(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "two"})
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    claim(desk, "task_2", ben, start=True)
    assert desk.call("task_check_dependencies", agent_id=ben)["satisfied"] is True
    assert desk.call("task_load_context", agent_id=ben)["current_task"]["name"] == "two"


# -- presence ---------------------------------------------------------------------------------------------------------


def test_liveness_has_three_states_with_evidence(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna")

    def seen() -> tuple[str, str]:
        shown = desk.call("agent_get", id=anna)
        return shown["status"], shown["liveness"]["state"]

    assert seen() == ("online", "idle")
    claim(desk, "task_1", anna)
    assert seen() == ("busy", "working")
    evidence = desk.call("agent_get", id=anna)["liveness"]
    assert evidence["last_progress"] == {"at": desk.clock.now_ms(), "kind": "task.claimed", "stream": "wf_1"}
    assert evidence["lease_expires"] == desk.clock.now_ms() + LEASE_MS
    desk.clock.advance(LEASE_MS)
    assert seen() == ("offline", "lost")
    desk.call("agent_heartbeat", agent_id=anna)
    assert seen()[0] == "online"


def test_being_there_leaves_no_trace_in_the_ledger(desk: Desk) -> None:
    known = desk.call("agent_register", name="Anna", runtime="custom")
    anna, secret = known["id"], known["secret"]
    before = desk.store.position()
    for _ in range(5):
        desk.clock.advance(HEARTBEAT_MS)
        desk.call("agent_heartbeat", agent_id=anna, agent_secret=secret)
    assert desk.store.position() == before
    assert desk.call("agent_get", id=anna)["last_heartbeat"] == desk.clock.now_ms()
    assert desk.store.verify() == []


def test_an_agent_that_leaves_frees_what_it_held(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "two"})
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    claim(desk, "task_2", anna)
    assert desk.call("agent_unregister", id=anna) == {"success": True, "tasks_released": 2}
    assert desk.call("agent_get", id=anna)["status"] == "offline"
    assert claim(desk, "task_1", ben)["success"] is True


def test_agents_are_listed_by_what_is_seen_of_them(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna", workspace_path="/srv/copies/one")
    ben, cara = register(desk, "Ben", role="coordinator"), register(desk, "Cara")
    claim(desk, "task_1", anna)
    desk.call("agent_unregister", id=cara)

    def listed(**filters: Any) -> list[str]:
        return [agent["id"] for agent in desk.call("agent_list", **filters)["agents"]]

    assert listed() == [cara, ben, anna]
    assert listed(status=["busy"]) == [anna]
    assert listed(status=["online"]) == [ben]
    assert listed(status=["offline"]) == [cara]
    assert listed(role="coordinator") == [ben]
    assert listed(limit=1, offset=1) == [ben]
    shown = desk.call("agent_list", status=["busy"])["agents"][0]
    assert (shown["current_task_id"], shown["current_task"]["name"]) == ("task_1", "one")
    assert (shown["runtime"], shown["workspace_path"]) == ("custom", "/srv/copies/one")
    assert shown["liveness"]["last_progress"]["kind"] == "task.claimed"
    assert "secret_hash" not in shown


def test_what_an_agent_says_of_itself_is_kept(desk: Desk) -> None:
    desk.plan(*CHAIN)
    anna = register(desk, "Anna", metadata={"model": "m"})
    desk.call("agent_update", id=anna, status="busy", current_task_id="task_1", metadata={"pid": 7})
    shown = desk.call("agent_get", id=anna)
    assert (shown["status"], shown["current_task_id"]) == ("busy", "task_1")
    assert shown["metadata"] == {"model": "m", "pid": 7}
    desk.call("agent_update", id=anna, current_task_id=None)
    assert desk.call("agent_get", id=anna)["current_task_id"] is None


# -- identity ---------------------------------------------------------------------------------------------------------


def test_a_name_without_its_secret_is_believed_and_noted(desk: Desk) -> None:
    desk.plan(*CHAIN)
    answer = desk.call("agent_register", name="Anna", runtime="custom")
    anna, secret = answer["id"], answer["secret"]
    desk.call("task_get", id="task_1", agent_id=anna)
    assert "unproven_calls" not in desk.call("agent_get", id=anna)
    claim(desk, "task_1", anna, agent_secret=secret)
    assert "unproven_calls" not in desk.call("agent_get", id=anna)
    claim(desk, "task_1", anna, agent_secret="a guess")
    claim(desk, "task_1", anna)
    assert desk.call("agent_get", id=anna)["unproven_calls"] == 2
    assert [event.kind for event in desk.store.events(anna)].count("agent.unproven") == 2


def test_a_strict_crew_believes_only_the_secret(tmp_path: Path) -> None:
    desk = Desk(tmp_path, identity="strict")
    desk.plan(*CHAIN)
    answer = desk.call("agent_register", name="Anna", runtime="custom")
    anna, secret = answer["id"], answer["secret"]
    for wrong in ({}, {"agent_secret": "a guess"}):
        assert isinstance(desk.refusal("task_claim", task_id="task_1", agent_id=anna, **wrong), IdentityUnproven)
        assert isinstance(
            desk.refusal("agent_register", name="Eve", runtime="custom", id=anna, **wrong), IdentityUnproven
        )
    assert claim(desk, "task_1", anna, agent_secret=secret)["success"] is True
    assert "unproven_calls" not in desk.call("agent_get", id=anna)


def test_an_agent_comes_back_under_its_id_and_keeps_its_secret(desk: Desk) -> None:
    desk.plan(*CHAIN)
    answer = desk.call("agent_register", name="Anna", runtime="custom")
    claim(desk, "task_1", answer["id"])
    again = desk.call("agent_register", name="Anna", runtime="codex", id=answer["id"], agent_secret=answer["secret"])
    assert again["id"] == answer["id"]
    assert "secret" not in again
    assert [(held["task_id"], held["fence"]) for held in again["holding"]] == [("task_1", 2)]
    stale = desk.refusal(
        "checkpoint_add", task_id="task_1", type="progress", summary="s", agent_id=again["id"], fence=1
    )
    assert isinstance(stale, ClaimHeld), "what still runs under the old fence is left behind"
    assert claim(desk, "task_1", answer["id"], agent_secret=answer["secret"])["success"] is True


def test_an_agent_nobody_knows_is_refused_with_those_there_are(desk: Desk) -> None:
    anna = register(desk, "Anna")
    refusal = desk.refusal("task_claim", task_id="task_1", agent_id="ag_9")
    assert isinstance(refusal, AgentNotFound)
    assert f"{anna} (Anna)" in refusal.hint


@pytest.mark.parametrize("wrong", [{"agent_id": 7}, {"fence": "1"}, {"fence": True}, {"agent_secret": 1}])
def test_who_one_is_must_be_said_in_the_right_kind(desk: Desk, wrong: dict[str, Any]) -> None:
    desk.plan(*CHAIN)
    refusal = desk.refusal("task_update_status", id="task_1", status="in_progress", **wrong)
    assert isinstance(refusal, InvalidParams)


def test_no_more_agents_are_present_than_may_be(tmp_path: Path) -> None:
    desk = Desk(tmp_path, max_children=2, heartbeat_ms=1000)
    first, _ = (desk.call("agent_register", name=name, runtime="custom") for name in ("Anna", "Ben"))
    refusal = desk.refusal("agent_register", name="Cleo", runtime="custom")
    assert isinstance(refusal, NotAllowed)
    assert "Anna" in refusal.message
    assert desk.call("agent_register", id=first["id"], name="Anna", runtime="custom")["status"] == "online"
    desk.clock.advance(3001)  # all of them are lost: there is room again
    assert desk.call("agent_register", name="Cleo", runtime="custom")["status"] == "online"


def test_a_task_that_was_begun_by_its_claim_is_the_one_its_journal_is_of(desk: Desk) -> None:
    workflow_id = desk.plan(*CHAIN)
    anna, ben = register(desk, "Anna"), register(desk, "Ben")
    claim(desk, "task_1", anna, start=True)
    begun = {"workflow_id": workflow_id, "name": "one", "goal": "g", "areas": ["a"]}
    assert isinstance(desk.refusal("start_task", **begun, agent_id=ben), ClaimHeld)
    started = desk.call("start_task", **begun, agent_id=anna)
    assert (started["task_id"], started["warnings"]) == ("task_1", [])
    assert desk.task("task_1")["attempts"] == 1
    assert len(desk.call("workflow_get", id=workflow_id, include_tasks=True)["tasks"]) == 2
    again = desk.call("start_task", **begun, agent_id=anna)
    assert again["task_id"] == "task_3", "its journal is under way: whoever begins another means another"
