"""The bus of events and the logs, through the calls an agent makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import AgentNotFound, InvalidParams, RunNotFound
from handrail.operation import Bounds, HouseRules
from tests.toolsets.registry.registry_desk import Beginning, RegistryDesk


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "events", "cancellation")


def all_events(desk: RegistryDesk, **wanted: Any) -> list[dict[str, Any]]:
    """The document's loop: until a page is empty."""
    found: list[dict[str, Any]] = []
    after = 0
    while (page := desk.call("events_subscribe", from_seq=after, **wanted))["events"]:
        assert page["count"] == len(page["events"])
        found += page["events"]
        after = page["next_seq"]
    return found


def busy(desk: RegistryDesk) -> None:
    """Two agents on two workflows; one task fails, one claim is lost."""
    desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]})
    desk.plan({"name": "three"})
    anna, ben = (desk.call("agent_register", name=name, runtime="custom")["id"] for name in ("Anna", "Ben"))
    desk.call("task_claim", task_id="task_1", agent_id=anna, start=True)
    desk.clock.advance(10**6)
    desk.call("task_claim", task_id="task_1", agent_id=ben, start=True)
    desk.call("task_update_status", id="task_1", status="failed", error="broken", agent_id=ben)
    desk.move("task_3", "in_progress", "completed")


def test_every_event_is_told_once_in_order_whatever_the_page(desk: RegistryDesk) -> None:
    busy(desk)
    everything = [event.position for event in desk.store.feed()]
    assert [event["seq"] for event in all_events(desk)] == everything
    for limit in (1, 2, 500):
        assert [event["seq"] for event in all_events(desk, limit=limit)] == everything


def test_filters_narrow_by_run_task_agent_category_and_level(desk: RegistryDesk) -> None:
    busy(desk)
    assert {event["runId"] for event in all_events(desk, run_id="wf_2")} == {"wf_2"}
    assert all_events(desk, graph_id="wf_2") == all_events(desk, run_id="wf_2")
    of_task = all_events(desk, job_id="task_1")
    assert {event["jobId"] for event in of_task} == {"task_1"}
    assert "MESSAGE.SENT" in {event["kind"] for event in of_task}, "Anna was told that she lost it"
    assert all_events(desk, node_id="task_1") == of_task
    of_ben = all_events(desk, child_id="ag_2")
    assert of_ben[0]["kind"] == "AGENT.REGISTERED"
    assert {event["childId"] for event in of_ben} == {"ag_2"}
    assert {event["cat"] for event in all_events(desk, cats=["child", "graph"])} == {"child", "graph"}
    errors = all_events(desk, levels=["error"])
    assert [(event["kind"], event["jobId"]) for event in errors] == [("TASK.FAILED", "task_1")]
    lost = [event for event in all_events(desk, levels=["warn"]) if event["kind"] == "TASK.CLAIMED"]
    assert [event["data"]["taken_from"] for event in lost] == ["ag_1"]
    assert all_events(desk, run_id="wf_2", job_id="task_1") == []


def test_what_found_nothing_is_not_looked_at_again(desk: RegistryDesk) -> None:
    busy(desk)
    page = desk.call("events_subscribe", levels=["error"], run_id="wf_2")
    assert (page["events"], page["next_seq"]) == ([], desk.store.position())
    desk.move("task_2", "skipped")
    assert desk.call("events_subscribe", levels=["error"], from_seq=page["next_seq"])["next_seq"] > page["next_seq"]


def test_lines_of_json_say_the_same(desk: RegistryDesk) -> None:
    busy(desk)
    page = desk.call("events_subscribe", format="jsonlines", limit=4)
    assert [msgspec.json.decode(line) for line in page["stream"].splitlines()] == page["events"]
    assert desk.call("events_subscribe")["stream"] is None


@pytest.mark.parametrize("shape", ["json", "jsonlines"])
def test_a_page_for_which_no_limit_was_asked_stays_small(desk: RegistryDesk, shape: str) -> None:
    for _ in range(60):
        desk.plan({"name": "one"})
    page = desk.call("events_subscribe", format=shape)
    assert 0 < page["count"] < 100
    assert len(msgspec.json.encode(page)) < 8192
    assert desk.call("events_subscribe", limit=100)["count"] == 100
    assert len(msgspec.json.encode(desk.call("logs_tail", stream="server"))) < 8192


def test_what_is_not_there_and_what_cannot_be_is_refused_with_what_would_be_right(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    assert isinstance(desk.refusal("events_subscribe", run_id="wf_9"), RunNotFound)
    assert isinstance(desk.refusal("events_subscribe", child_id="ag_9"), AgentNotFound)
    twice = desk.refusal("events_subscribe", run_id="wf_1", graph_id="wf_2")
    assert isinstance(twice, InvalidParams)
    assert "one id" in twice.hint
    unknown = desk.refusal("events_subscribe", cats=["weather"])
    assert isinstance(unknown, InvalidParams)
    assert "scheduler" in unknown.hint + unknown.message
    assert isinstance(desk.refusal("logs_tail", stream="run"), InvalidParams)
    assert isinstance(desk.refusal("logs_tail", stream="server", id="wf_1"), InvalidParams)


def test_a_subscriber_waits_for_what_it_wants_and_nothing_else_wakes_it(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"}, {"name": "two"})
    begun = desk.call("logs_tail", stream="server", limit=1)["next_seq"]
    waiting = Beginning(
        lambda: desk.call("events_subscribe", from_seq=begun, levels=["error"], wait_ms=25_000, op_id="listening")
    )
    desk.move("task_1", "in_progress", "completed")
    desk.move("task_2", "in_progress")
    assert not waiting.is_over
    desk.move("task_2", "failed")
    page = waiting.result()
    assert [event["kind"] for event in page["events"]] == ["TASK.FAILED"]


def test_the_coming_and_going_of_calls_is_told_only_to_who_asks_for_it(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    end = desk.call("events_subscribe", limit=500)["next_seq"]
    assert desk.call("events_subscribe", from_seq=end, op_id="a look")["events"] == []
    told = desk.call("events_subscribe", from_seq=end, cats=["op"])["events"]
    assert [(event["kind"], event["opId"]) for event in told] == [("OP.STARTED", "a look"), ("OP.DONE", "a look")]


# -- logs -------------------------------------------------------------------------------------------------------------


def test_a_log_begins_with_the_newest_and_goes_on_from_there(desk: RegistryDesk) -> None:
    busy(desk)
    newest = desk.call("logs_tail", stream="run", id="wf_1", limit=2)
    stream = desk.store.events("wf_1")
    assert [entry["seq"] for entry in newest["entries"]] == [stream[-2].seq, stream[-1].seq]
    assert newest["next_seq"] == stream[-1].seq
    desk.move("task_1", "in_progress")
    later = desk.call("logs_tail", stream="run", id="wf_1", from_seq=newest["next_seq"])
    assert [(entry["seq"], entry["jobId"]) for entry in later["entries"]] == [(stream[-1].seq + 1, "task_1")]


def test_a_childs_log_is_what_it_did_and_what_was_done_to_it(desk: RegistryDesk) -> None:
    busy(desk)
    entries = desk.call("logs_tail", stream="child", id="ag_1", from_seq=0, limit=500)["entries"]
    events = [event for event in desk.store.feed() if "ag_1" in (event.actor, event.stream)]
    assert [entry["seq"] for entry in entries] == [event.position for event in events]
    warnings = desk.call("logs_tail", stream="child", id="ag_2", levels=["warn", "error"])["entries"]
    told = {entry["kind"] for entry in warnings}
    assert told == {"agent.unproven", "task.claimed", "message.sent", "task.failed"}


def test_where_only_the_newest_are_shown_that_is_said(desk: RegistryDesk) -> None:
    busy(desk)
    everything = [event.position for event in desk.store.feed()]
    desk.with_call(rules=lambda: HouseRules(bounds=Bounds(events=5)))
    page = desk.call("events_subscribe", limit=500)
    assert [event["seq"] for event in page["events"]] == everything[-5:]
    assert page["truncated_before"] == everything[-5]
    assert "truncated_before" not in desk.call("events_subscribe", from_seq=everything[-4])
    run = desk.call("logs_tail", stream="run", id="wf_1", from_seq=0)
    assert [entry["seq"] for entry in run["entries"]] == [event.seq for event in desk.store.events("wf_1")][-5:]
    assert run["truncated_before"] == run["entries"][0]["seq"]
    assert desk.call("logs_tail", stream="run", id="wf_1")["entries"] == run["entries"]
    waited = desk.call("events_subscribe", cats=["store"], wait_ms=1)
    assert (waited["events"], waited["truncated_before"]) == ([], everything[-5]), "also after a second look"
    own = desk.call("events_subscribe", run_id="wf_1", cats=["graph"])
    kept = [event for event in desk.store.events("wf_1")[-5:] if event.kind.startswith("workflow.")]
    assert own["count"] == len(kept), "of a run its newest events are shown, not the newest of a category"
