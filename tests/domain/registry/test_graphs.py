"""Graphs from rows and from events: plans that were there before versions were counted, versions that were taken back,
and which events a graph is changed by."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
import pytest

from handrail.domain.graphs.history import history, version_step
from handrail.domain.graphs.plan_graph import versions_of
from handrail.domain.registry.graphs import at_version, changes_graph, latest, snapshot_of, version_of_tx
from handrail.domain.work.task import Task, dependency
from handrail.domain.work.workflow import Tally, empty_tally
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import Query, UnitOfWork
from tests.store.records import task as any_task
from tests.store.records import workflow

RecordT = TypeVar("RecordT")
WORKFLOW = workflow(name="Work", status="ready", max_parallel_tasks=2)


def task(number: int, **more: Any) -> Task:
    return any_task(f"task_{number}", **{"name": f"t{number}", "sequence": number, **more})


def event(seq: int, kind: str, *changes: Change, **data: Any) -> Event:
    return Event("wf_1", seq, 10 * seq, kind, "ada", "test", 1000 * seq, data, changes, "")


def made(table: str, record: Any, *, without: tuple[str, ...] = ()) -> Change:
    document = {name: value for name, value in msgspec.to_builtins(record).items() if name not in without}
    return Change(table, record.id, document, None)


class Ledger:
    """A unit that has just these events and records."""

    def __init__(self, events: list[Event], *records: Any) -> None:
        self._events = events
        self._records = records
        self.asked: list[int] = []

    def get(self, kind: type[RecordT], key: str) -> RecordT | None:
        return next((one for one in self._records if isinstance(one, kind) and one.id == key), None)  # type: ignore[attr-defined]

    def select(self, kind: type[RecordT], query: Query) -> list[RecordT]:
        found = [one for one in self._records if isinstance(one, kind)]
        return found[: query.limit]

    def events(self, stream: str, after: int = 0, limit: int = 1000) -> list[Event]:
        self.asked.append(limit)
        return [one for one in self._events if one.seq > after and one.stream == stream][:limit]


def unit(events: list[Event], *records: Any) -> UnitOfWork:
    return cast("UnitOfWork", Ledger(events, *records))


COUNTS = empty_tally("wf_1").counts
OLD_PLAN = [
    event(1, "workflow.created", made("workflow", WORKFLOW)),
    event(
        2,
        "workflow.planned",
        made("tally", Tally(id="wf_1", counts=COUNTS), without=("version", "laid_at")),
        made("task", task(1), without=("assigned_agent_id", "workspace_id", "started_at", "finished_at")),
    ),
]
CHANGED = event(
    3,
    "workflow.extended",
    Change("tally", "wf_1", {"version": 2, "laid_at": 2999}, {"version": 1, "laid_at": 0}),
    made("task", task(2)),
    made("dependency", dependency("wf_1", "task_2", "task_1")),
    reason="more",
)


def test_a_plan_from_before_versions_is_the_first_and_cannot_be_read_by_number() -> None:
    old = unit(OLD_PLAN, WORKFLOW, Tally(id="wf_1", counts=COUNTS, version=1), task(1))
    shown = latest(old, WORKFLOW)
    assert (shown.version, shown.committed_at, len(shown.graph.nodes)) == (1, None, 1)
    assert list(versions_of(old, "wf_1")) == []
    with pytest.raises(ResourceNotFound) as refused:
        at_version(old, WORKFLOW, 1)
    assert "sc://graphs/wf_1 is the plan as it is" in refused.value.hint


def test_a_plan_from_before_tallies_is_the_first_too() -> None:
    shown = latest(unit(OLD_PLAN[:1], WORKFLOW, task(1)), WORKFLOW)
    assert (shown.version, shown.graph.graph_version) == (1, 1)


def test_its_next_change_makes_the_second_and_begins_with_the_first() -> None:
    newer = unit([*OLD_PLAN, CHANGED], WORKFLOW, Tally(id="wf_1", counts=COUNTS, version=2, laid_at=2999))
    assert list(versions_of(newer, "wf_1")) == [2]
    second = at_version(newer, WORKFLOW, 2)
    assert (second.committed_at, [node.id for node in second.graph.nodes]) == (2999, ["task_1", "task_2"])
    snapshot = snapshot_of(newer, WORKFLOW, "v2")
    assert [node.id for node in snapshot.base_graph.nodes] == ["task_1"]
    assert (snapshot.base_version, snapshot.owner, snapshot.note) == (1, "ada", "more")
    with pytest.raises(ResourceNotFound) as refused:
        at_version(newer, WORKFLOW, 1)
    assert "sc://snapshots/wf_1/v2 begins" in refused.value.hint
    with pytest.raises(ResourceNotFound) as refused:
        at_version(newer, WORKFLOW, 3)
    assert "sc://graphs/wf_1@v2" in refused.value.hint


def test_a_version_that_was_taken_back_and_made_anew_is_the_newer_one() -> None:
    back = [Change(one.table, one.key, one.before, one.after) for one in reversed(CHANGED.changes)]
    again = event(
        5,
        "workflow.extended",
        Change("tally", "wf_1", {"version": 2, "laid_at": 5000}, {"version": 1, "laid_at": 0}),
        made("task", task(3)),
    )
    tally = Tally(id="wf_1", counts=COUNTS, version=2, laid_at=5000)
    twice = unit([*OLD_PLAN, CHANGED, event(4, "ledger.undo", *back), again], WORKFLOW, tally)
    found = at_version(twice, WORKFLOW, 2)
    assert ([node.id for node in found.graph.nodes], found.graph.edges) == (["task_1", "task_3"], [])
    assert found.committed_at == 5000


def test_attributes_are_only_what_is_set_and_never_lists() -> None:
    tasks = (
        task(1, status="completed", started_at=5, finished_at=9, estimated_complexity="high", assigned_agent_id="ag_1"),
        task(2, unmet=1, parallel_group="a", priority=3, workspace_id="ws_1"),
        task(3, parent_task_id="task_2", unmet=1),
    )
    links = (
        dependency("wf_1", "task_2", "task_1"),
        dependency("wf_1", "task_3", "task_1", inherited=True),
    )
    shown = msgspec.to_builtins(latest(unit([], WORKFLOW, *tasks, *links), WORKFLOW).graph)
    assert [node["attributes"] for node in shown["nodes"]] == [
        {
            "status": "completed",
            "sequence": 1,
            "priority": 0,
            "complexity": "high",
            "assignedAgent": "ag_1",
            "startedAt": 5,
            "finishedAt": 9,
        },
        {"status": "blocked", "sequence": 2, "priority": 3, "parallelGroup": "a", "workspace": "ws_1"},
        {"status": "blocked", "sequence": 3, "priority": 0},
    ]
    assert shown["edges"] == [
        {"from": "task_1", "to": "task_2", "attributes": {}},
        {"from": "task_1", "to": "task_3", "attributes": {"inherited": True}},
        {"from": "task_2", "to": "task_3", "label": "part_of", "attributes": {}},
    ]
    assert shown["metadata"] == {"status": "ready", "sourceType": "prompt", "maxParallelTasks": 2}


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (Change("task", "task_1", {"status": "failed"}, {"status": "pending"}), True),
        (Change("task", "task_1", {"unmet": 0}, {"unmet": 1}), True),
        (Change("task", "task_1", {"checkpoints": 2, "updated_at": 5}, {"checkpoints": 1, "updated_at": 4}), False),
        (Change("task", "task_1", None, {"id": "task_1"}), True),
        (Change("dependency", "a>b", {"id": "a>b"}, None), True),
        (Change("workflow", "wf_1", {"status": "paused"}, {"status": "in_progress"}), True),
        (Change("workflow", "wf_1", {"updated_at": 5}, {"updated_at": 4}), False),
        (Change("tally", "wf_1", {"counts": {}}, {"counts": {"pending": 1}}), False),
        (Change("tally", "wf_1", {"version": 3}, {"version": 2}), True),
        (Change("checkpoint", "cp_1", {"id": "cp_1"}, None), False),
    ],
)
def test_a_graph_is_changed_by_what_is_seen_in_it(change: Change, seen: bool) -> None:
    assert changes_graph(event(1, "x.y", change)) is seen


def test_versions_go_up_and_come_back() -> None:
    up = Change("tally", "wf_1", {"version": 3}, {"version": 2})
    assert version_step(event(1, "x.y", up)) == (2, 3)
    assert version_step(event(1, "x.y", Change("tally", "wf_1", up.before, up.after))) == (3, 2)
    first = made("tally", Tally(id="wf_1", counts=COUNTS, version=1))
    assert version_step(event(1, "x.y", first)) == (0, 1)
    assert version_step(event(1, "x.y", made("tally", Tally(id="wf_1", counts=COUNTS)))) is None


@pytest.mark.parametrize(
    ("tx", "version"),
    [("v1", 1), ("v12", 12), ("v0", None), ("v01", None), ("v", None), ("1", None), ("v²", None), ("tx_1", None)],
)
def test_a_transaction_is_named_after_the_version_it_made(tx: str, version: int | None) -> None:
    assert version_of_tx(tx) == version


def test_large_events_are_read_few_at_a_time() -> None:
    """A plan of ten thousand tasks is one event: how many of those are in memory at once is bounded."""
    rows = tuple(Change("task", f"task_{number}", {"name": "x"}, None) for number in range(10_000))
    ledger = Ledger([event(seq, "workflow.replanned", *rows) for seq in range(1, 41)])
    assert [one.seq for one in history(cast("UnitOfWork", ledger), "wf_1")] == list(range(1, 41))
    assert ledger.asked[0] == 4
    assert set(ledger.asked[1:]) == {2}
    small = Ledger([event(seq, "task.pending") for seq in range(1, 1001)])
    assert len(list(history(cast("UnitOfWork", small), "wf_1", 3))) == 997
    assert max(small.asked) == 250
