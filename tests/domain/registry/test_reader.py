"""Events as they are shown at an address: short whatever they hold, and told at every address they touch."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given
from msgspec import UNSET

from handrail.domain.registry import reader
from handrail.domain.registry.reader import log_entry, run_event, touched
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor, Change, Event
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from tests.store.records import workflow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=10,
)
ROW = Change("task", "task_1", {"status": "completed"}, {"status": "in_progress"})
PLAN = Change("tally", "wf_1", {"version": 3}, {"version": 2})


def event(stream: str, kind: str, *changes: Change, actor: str = "ada", **data: Any) -> Event:
    return Event(stream, 7, 70, kind, actor, "mcp", 1000, data, changes, "")


def test_an_event_of_a_run() -> None:
    shown = run_event(event("wf_1", "task.completed", ROW, actor="ag_1", reason="done"))
    assert shown == {
        "seq": 7,
        "ts": 1000,
        "kind": "task.completed",
        "level": "info",
        "jobId": "task_1",
        "childId": "ag_1",
        "payload": {"actor": "ag_1", "channel": "mcp", "data": {"reason": "done"}, "changed": ["task task_1"]},
    }
    assert run_event(event("wf_1", "task.failed", ROW))["childId"] is None


@given(st.dictionaries(st.text(max_size=30), JSON, max_size=8), st.integers(0, 60))
def test_an_event_is_short_whatever_it_holds(data: dict[str, Any], rows: int) -> None:
    changes = tuple(Change("task", f"task_{number:026}", {"context": "x" * 5000}, None) for number in range(rows))
    shown = run_event(Event("wf_1", 7, 70, "task.pending", "ada", "mcp", 1000, data, changes, ""))
    assert len(msgspec.json.encode(shown)) < 2600
    assert shown["payload"].get("changedTotal", len(shown["payload"].get("changed", ()))) == rows


def test_a_line_of_a_log_has_its_place_in_the_ledger() -> None:
    line = log_entry(event("wf_1", "task.completed", ROW, actor="ag_1"))
    assert {**line, "message": ""} == {"seq": 70, "ts": 1000, "stream": "meta", "message": ""}
    assert "task_1" in line["message"]


@pytest.mark.parametrize(
    ("happened", "addresses"),
    [
        (event("wf_1", "task.completed", ROW), {"sc://runs/wf_1/events", "sc://graphs/wf_1"}),
        (
            event("wf_1", "task.completed", ROW, actor="ag_1"),
            {"sc://runs/wf_1/events", "sc://graphs/wf_1", "sc://children/ag_1/logs"},
        ),
        (event("wf_1", "checkpoint.added"), {"sc://runs/wf_1/events"}),
        (
            event("wf_1", "workflow.replanned", PLAN),
            {"sc://runs/wf_1/events", "sc://graphs/wf_1", "sc://graphs/wf_1@v3", "sc://snapshots/wf_1/v3"},
        ),
        (
            event("wf_1", "ledger.undo", Change("tally", "wf_1", PLAN.before, PLAN.after)),
            {"sc://runs/wf_1/events", "sc://graphs/wf_1", "sc://graphs/wf_1@v3", "sc://snapshots/wf_1/v3"},
        ),
        (event("bb:plan", "bb.set"), {"sc://blackboard/plan"}),
        (event("bb:plan", "bb.set", actor="ag_1"), {"sc://blackboard/plan", "sc://children/ag_1/logs"}),
        (event("ag_1", "agent.updated"), {"sc://children/ag_1/logs"}),
        (event("ag_1", "agent.updated", actor="ag_1"), {"sc://children/ag_1/logs"}),
        (event("ag_1", "agent.left", actor="ag_2"), {"sc://children/ag_1/logs", "sc://children/ag_2/logs"}),
        (event("inbox:ag_2", "message.sent", actor="ag_1"), {"sc://children/ag_1/logs"}),
        (event("op:x", "op.started", actor="ag_1"), set()),
        (event("repo_1", "repository.registered"), set()),
    ],
)
def test_an_event_touches_every_address_it_is_seen_at(happened: Event, addresses: set[str]) -> None:
    found = [address.uri for address in touched(happened)]
    assert set(found) == addresses
    assert len(found) == len(addresses)


def test_a_long_log_is_counted_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "COUNTED", 4)
    monkeypatch.setattr(reader, "_PAGE", 2)
    store = Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds())
    by_agent = Actor("ag_1", "mcp")
    for number in range(4):
        store.run(by_agent, lambda unit: unit.record("workflow.created", workflow(f"wf_{number}")))  # noqa: B023
    assert store.run(by_agent, lambda unit: reader.child_logs(unit, "ag_1", 0)).total == 4
    for number in range(4, 9):
        store.run(by_agent, lambda unit: unit.record("workflow.created", workflow(f"wf_{number}")))  # noqa: B023
    read = store.run(by_agent, lambda unit: reader.child_logs(unit, "ag_1", 0))
    assert (read.total, read.total_at_least, len(read.logs)) == (UNSET, 4, 9)
