"""What is told of an event: every kind has a place, and what matters is told from what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.registry.envelopes import (
    CATEGORIES,
    LEVELS,
    LINE_CHARS,
    MAY_WARN,
    OTHER,
    ROUTINE,
    VALUE_CHARS,
    category_of,
    child_of,
    envelope,
    kinds_at,
    level_of,
    line_of,
    task_of,
)
from handrail.domain.registry.event_kinds import KINDS
from handrail.kernel.ledger import Change, Event
from tests.toolsets.plan.planned import Desk


def event(kind: str, *changes: Change, stream: str = "wf_1", actor: str = "anna", **data: Any) -> Event:
    return Event(stream, 3, 7, kind, actor, "mcp", 5, data, changes, "")


def came(table: str, key: str, **row: Any) -> Change:
    return Change(table, key, {"id": key, **row}, None)


# -- every kind there is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_one_category_a_level_and_a_line(kind: str) -> None:
    one = event(kind)
    assert sum(kind.startswith(starts) for starts in CATEGORIES.values()) == 1
    assert category_of(one) in CATEGORIES
    assert level_of(one) in LEVELS
    assert kind.partition(".")[2].replace("_", " ") in line_of(one)


def test_a_kind_of_a_later_version_is_told_too() -> None:
    later = event("weather.changed", stream="sky")
    assert (category_of(later), level_of(later)) == (OTHER, "info")
    assert envelope(later)["kind"] == "WEATHER.CHANGED"


def test_what_is_routine_is_of_the_calls_alone() -> None:
    assert all(kind in KINDS and kind.startswith(CATEGORIES["op"]) for kind in ROUTINE)


# -- how much it matters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "level"),
    [
        (event("task.failed"), "error"),
        (event("workflow.failed"), "error"),
        (event("workflow.abandoned"), "warn"),
        (event("agent.unproven", stream="ag_1"), "warn"),
        (event("task.claimed", agent_id="ag_1", fence=1), "info"),
        (event("task.claimed", agent_id="ag_1", fence=2, taken_from="ag_2"), "warn"),
        (event("task.released", actor="ag_1", agent_id="ag_1"), "info"),
        (event("task.released", actor="ag_2", agent_id="ag_1"), "warn"),
        (event("paths.reserved", taken_over=["rsv_1"]), "warn"),
        (event("checkpoint.added", came("checkpoint", "cp_1", type="error", summary="s")), "warn"),
        (event("checkpoint.added", came("checkpoint", "cp_1", type="progress", summary="s")), "info"),
        (event("message.sent", came("message", "msg_1", body={"event": "claim_lost"})), "warn"),
        (event("message.sent", came("message", "msg_1", body="lost")), "info"),
        (event("pipeline.moved", Change("pipeline", "wf_1", {"state": {"ended": "abandoned"}}, {})), "warn"),
        (event("pipeline.moved", Change("pipeline", "wf_1", {"state": {"ended": None}}, {})), "info"),
    ],
)
def test_what_failed_or_was_lost_is_told_from_the_rest(told: Event, level: str) -> None:
    assert level_of(told) == level


# -- what it is about -------------------------------------------------------------------------------------------------


def test_the_task_that_moved_is_told_from_those_that_only_count_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]}, {"name": "three", "depends_on": ["one"]})
    anna = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    desk.call("task_claim", task_id="task_1", agent_id=anna, start=True)
    desk.call("checkpoint_add", task_id="task_1", type="decision", summary="This way", agent_id=anna)
    desk.call("task_release", task_id="task_1", agent_id=anna, reason="tired")
    desk.move("task_1", "in_progress", "failed", "in_progress", "completed")
    desk.move("task_2", "in_progress")
    desk.call("task_replan", id="task_2", reason="no", new_plan={"approach": "a", "steps": []})
    desk.call("workflow_remove_task", task_id="task_3", reason="no")
    about = {event.kind: task_of(event) for event in desk.store.events("wf_1")}
    assert about.pop("task.in_progress") == "task_2"
    assert about.pop("task.replanned") == "task_2"
    assert about.pop("task.removed") == "task_3"
    of_one = {kind for kind, task in about.items() if task == "task_1"}
    assert of_one == {"task.claimed", "checkpoint.added", "task.released", "task.failed", "task.completed"}
    assert {kind for kind, task in about.items() if task is None} == {"workflow.created", "workflow.planned"}


def test_a_message_about_a_task_is_about_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plan({"name": "one"})
    anna, ben = (desk.call("agent_register", name=name, runtime="custom")["id"] for name in ("Anna", "Ben"))
    sent: dict[str, Any] = {"sender_id": anna, "recipient_id": ben, "message_type": "query", "body": "?"}
    desk.call("message_send", **sent, task_id="task_1")
    desk.call("message_send", **sent)
    first, second = desk.store.events("inbox:ag_2")
    assert (task_of(first), task_of(second)) == ("task_1", None)


def test_whose_doing_it_was_comes_before_whom_it_was_done_to() -> None:
    assert child_of(event("agent.updated", stream="ag_1", actor="ag_2")) == "ag_2"
    assert child_of(event("agent.updated", stream="ag_1", actor="Rita")) == "ag_1"
    assert child_of(event("task.claimed", actor="Rita")) is None


# -- the line and the envelope ----------------------------------------------------------------------------------------


def test_a_line_can_be_read() -> None:
    claimed = event("task.claimed", came("lease", "task_4"), actor="ag_2", agent_id="ag_2", fence=3, taken_from="ag_1")
    assert line_of(claimed) == "task task_4: claimed by ag_2; fence 3, taken from ag_1"
    noted = event("checkpoint.added", came("checkpoint", "cp_1", task_id="task_4", type="decision", summary="One\nway"))
    assert line_of(noted) == "checkpoint task_4: added by anna; decision: One way"
    sent = came("message", "msg_1", message_type="query", recipient_id="ag_2", subject="Why?", body="Tell me")
    line = line_of(event("message.sent", sent, stream="inbox:ag_2"))
    assert line == "message msg_1: sent by anna; query to ag_2", "what it says is between the two"


def test_an_envelope_has_every_member_and_null_where_there_is_nothing() -> None:
    assert envelope(event("workflow.planned")) == {
        "seq": 7,
        "ts": 5,
        "cat": "graph",
        "level": "info",
        "jobId": None,
        "runId": "wf_1",
        "opId": None,
        "graphId": "wf_1",
        "nodeId": None,
        "childId": None,
        "component": "mcp",
        "stage": "planned",
        "elapsedMs": None,
        "kind": "WORKFLOW.PLANNED",
        "msg": "workflow wf_1: planned by anna",
    }
    done = envelope(event("op.done", stream="op:slow one", elapsed_ms=12))
    assert (done["opId"], done["elapsedMs"], done["data"]) == ("slow one", 12, {"elapsed_ms": 12})


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.recursive(st.none() | st.integers() | st.text(max_size=3000), lambda inner: st.lists(inner, max_size=8)),
        max_size=30,
    )
)
def test_whatever_an_event_carries_its_envelope_stays_small(data: dict[str, Any]) -> None:
    shown = envelope(Event("wf_1", 1, 1, "task.claimed", "a" * 100, "mcp", 5, data, (), ""))
    assert len(shown["msg"]) <= LINE_CHARS
    assert "\n" not in shown["msg"]
    for value in shown.get("data", {}).values():
        assert len(msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, str) else "") <= VALUE_CHARS
        assert isinstance(value, str) or len(msgspec.json.encode(value)) <= VALUE_CHARS


def test_what_lies_on_a_board_is_not_told() -> None:
    kept = {"same": {"value": {"value": "s3cret"}}, "reason": "why"}
    told = envelope(Event("bb:plan", 2, 9, "bb.set", "ag_1", "mcp", 5, kept, (), ""))
    assert told["data"] == {"reason": "why"}
    assert "data" not in envelope(Event("bb:plan", 2, 9, "bb.set", "ag_1", "mcp", 5, {"same": {}}, (), ""))
    assert envelope(Event("wf_1", 2, 9, "workflow.ready", "ag_1", "mcp", 5, {"same": 1}, (), ""))["data"] == {"same": 1}


def test_the_kinds_of_a_level_are_all_that_can_have_it() -> None:
    assert kinds_at(("info", "warn")) == ()
    assert set(kinds_at(("error",))) == {"task.failed", "workflow.failed"}
    assert set(MAY_WARN) <= set(kinds_at(("warn",))) & set(KINDS)
    for kind in set(KINDS) - set(kinds_at(("warn",))):
        loud = {"taken_from": "ag_2", "taken_over": [], "agent_id": "ag_2"}
        assert level_of(Event("wf_1", 1, 1, kind, "ag_1", "mcp", 5, loud, (), "")) != "warn"
