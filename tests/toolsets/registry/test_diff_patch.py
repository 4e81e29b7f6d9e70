"""Differences of graphs and patches to them, over graphs of their own and over plans: keyed by ids, all or nothing, and
each the other's inverse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import GraphInvalid, GraphNotFound, InvalidParams, PatchFailed, TxConflict, TxNotFound
from handrail.protocol.wire import encode
from tests.toolsets.registry.graphs import Graphs, attribute, edge, gone, node, relabel

EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> Graphs:
    return Graphs(tmp_path)


def patch(desk: Graphs, graph_id: str, *operations: dict[str, Any], **more: Any) -> Any:
    return desk.call("graph_patch", graph_id=graph_id, patch=list(operations), **more)


def diff(desk: Graphs, graph_id: str, before: dict[str, Any], after: dict[str, Any] | None = None, **more: Any) -> Any:
    return desk.call("graph_diff", graph_id=graph_id, **{"from": before, "to": after or {"latest": True}}, **more)


def test_a_difference_patches_one_version_into_the_other(desk: Graphs) -> None:
    desk.make()
    desk.change("g", relabel("a", "first"), gone("b"), node("x", "X", size=3), edge("a", "x", "to"))
    desk.change("g", {"op": "patch_metadata", "set": {"k": "v"}}, attribute("c", "n", 1))
    back = diff(desk, "g", {"latest": True}, {"version": 1})
    assert back["total"] == len(back["operations"])
    done = patch(desk, "g", *back["operations"])
    assert (done["committed_version"], done["operations_applied"]) == (4, back["total"])
    assert desk.state("g")["graph"] == {**desk.read("sc://graphs/g@v1")["graph"], "graphVersion": 4}
    assert diff(desk, "g", {"version": 1})["changed"] is False
    assert desk.store.verify() == []


def test_one_renamed_node_is_one_operation(desk: Graphs) -> None:
    desk.call("graph_create", graph_id="big", nodes=[{"id": f"n{number}"} for number in range(2000)])
    desk.change("big", relabel("n7", "seven"))
    found = diff(desk, "big", {"version": 1})
    assert found["operations"] == [{"op": "add", "path": "/nodes/n7/label", "value": "seven"}]
    assert found["summary"]["nodesUpdated"] == 1


def test_a_long_difference_comes_in_pages(desk: Graphs) -> None:
    desk.call("graph_create", graph_id="big", nodes=[{"id": f"node {number}"} for number in range(500)])
    empty: dict[str, Any] = {"graph": {}}
    page = diff(desk, "big", empty)
    assert len(encode(page)) < EIGHT_KB
    seen = page["operations"]
    while "next_offset" in page:
        page = diff(desk, "big", empty, offset=page["next_offset"])
        seen += page["operations"]
    assert len(seen) == page["total"] == 500
    assert diff(desk, "big", empty, limit=10_000)["operations"] == seen


def test_a_graph_is_given_by_ids_or_as_addresses_show_it(desk: Graphs) -> None:
    desk.make()
    assert diff(desk, "g", {"graph": desk.state("g")["graph"]})["changed"] is False
    keyed = {
        "name": "G",
        "nodes": {key: {"label": key.upper()} for key in "abc"},
        "edges": {"a->b": {"from": "a", "to": "b"}, "b->c": {"from": "b", "to": "c"}},
    }
    assert diff(desk, "g", {"graph": keyed})["changed"] is False


def test_a_transaction_is_a_state(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g", node("x"))
    assert diff(desk, "g", {"latest": True}, {"tx_id": tx})["summary"]["nodesAdded"] == 1
    desk.call("tx_commit", tx_id=tx)
    assert diff(desk, "g", {"tx_id": tx})["changed"] is False
    desk.make("h")
    other = desk.refusal("graph_diff", graph_id="h", **{"from": {"tx_id": tx}})
    assert isinstance(other, TxNotFound)
    assert isinstance(desk.refusal("graph_diff", graph_id="g", **{"from": {"version": 0}}), GraphNotFound)
    for wrong in ({}, {"latest": True, "version": 1}, {"latest": False}):
        assert isinstance(desk.refusal("graph_diff", graph_id="g", **{"from": wrong}), InvalidParams)


def test_test_move_and_copy_are_understood(desk: Graphs) -> None:
    desk.make()
    done = patch(
        desk,
        "g",
        {"op": "test", "path": "/nodes/a/label", "value": "A"},
        {"op": "copy", "from": "/nodes/a", "path": "/nodes/z"},
        {"op": "move", "from": "/nodes/z/label", "path": "/metadata/was"},
    )
    assert done["changed"] is True
    assert desk.state("g")["graph"]["metadata"] == {"was": "A"}


@pytest.mark.parametrize(
    ("operations", "refusal"),
    [
        ([{"op": "test", "path": "/nodes/a/label", "value": "B"}], PatchFailed),
        ([{"op": "remove", "path": "/nodes/x"}], PatchFailed),
        ([{"op": "add", "path": "/nodes/x", "value": {"name": "x"}}], PatchFailed),
        ([{"op": "replace", "path": "", "value": []}], PatchFailed),
        ([{"op": "remove", "path": "/nodes/b"}], GraphInvalid),
        ([{"op": "add", "path": "/edges/x", "value": {"from": "c", "to": "a"}}], GraphInvalid),
    ],
)
def test_a_patch_that_fails_changes_nothing(
    desk: Graphs, operations: list[dict[str, Any]], refusal: type[Exception]
) -> None:
    desk.make(metadata={"dag": True})
    before = desk.state("g")
    first = {"op": "add", "path": "/nodes/y", "value": {}}
    assert isinstance(desk.refusal("graph_patch", graph_id="g", patch=[first, *operations]), refusal)
    assert desk.state("g") == before


def test_rules_can_be_left_aside_on_graphs_only(desk: Graphs) -> None:
    desk.make(metadata={"dag": True})
    cycle = {"op": "add", "path": "/edges/c->a", "value": {"from": "c", "to": "a"}}
    done = patch(desk, "g", cycle, enforce_invariants=False)
    assert done["changed"] is True
    assert done["invariants"]["broken"][0]["rule"] == "dag"
    assert isinstance(desk.refusal("graph_patch", graph_id="g", merge={"name": "x"}), GraphInvalid)
    work = desk.plan({"name": "a"})
    refusal = desk.refusal("graph_patch", graph_id=work, merge={}, enforce_invariants=False)
    assert isinstance(refusal, InvalidParams)


def test_a_merge_patch_takes_away_with_null(desk: Graphs) -> None:
    desk.make()
    merge = {"nodes": {"c": None, "a": {"attributes": {"n": 1}}}, "edges": {"b->c": None}}
    done = desk.call("graph_patch", graph_id="g", merge=merge)
    assert (done["nodes"], done["edges"], done["operations_applied"]) == (2, 1, 3)
    assert desk.call("graph_patch", graph_id="g", merge=merge)["changed"] is False
    for both in ({}, {"merge": {}, "patch": [{"op": "test", "path": "", "value": 1}]}):
        assert isinstance(desk.refusal("graph_patch", graph_id="g", **both), InvalidParams)


def test_a_patch_for_another_version_is_refused(desk: Graphs) -> None:
    desk.make()
    desk.change("g", node("x"))
    refusal = desk.refusal("graph_patch", graph_id="g", merge={"name": "H"}, base_version=1)
    assert isinstance(refusal, TxConflict)
    assert refusal.details["version"] == 2
    assert desk.call("graph_patch", graph_id="g", merge={"name": "H"}, base_version=2)["committed_version"] == 3


# -- plans ------------------------------------------------------------------------------------------------------------


def test_plans_are_compared_by_what_was_planned(desk: Graphs) -> None:
    work = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    desk.move("task_1", "in_progress", "completed")
    desk.call("workflow_add_tasks", id=work, tasks=[{"name": "c", "description": "", "sequence": 3}])
    found = diff(desk, work, {"version": 1})
    assert [one["path"] for one in found["operations"]] == ["/nodes/task_3"]
    assert found["operations"][0]["value"] == {"label": "c", "attributes": {"sequence": 3, "priority": 0}}
    assert diff(desk, work, {"version": 0})["summary"]["nodesAdded"] == 3


def test_a_plan_is_patched_by_ids(desk: Graphs) -> None:
    work = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    desk.move("task_1", "in_progress")
    done = patch(
        desk,
        work,
        {"op": "test", "path": "/nodes/task_2/label", "value": "b"},
        {"op": "add", "path": "/nodes/new", "value": {"label": "c"}},
        {"op": "add", "path": "/edges/x", "value": {"from": "task_2", "to": "new"}},
        {"op": "replace", "path": "/nodes/task_2/attributes", "value": {"sequence": 7}},
        note="patched",
    )
    assert done["created"]["new"] == "task_3"
    tasks = desk.tasks(work)
    assert tasks["c"].depends_on == ["b"]
    assert (tasks["b"].sequence, tasks["a"].status) == (7, "in_progress")
    desk.audit(work)


def test_a_plan_that_is_said_whole_is_the_plan(desk: Graphs) -> None:
    work = desk.plan({"name": "a", "description": "A", "priority": 2}, {"name": "b", "depends_on": ["a"]})
    desk.move("task_1", "in_progress", "completed")
    nodes: dict[str, Any] = {"task_1": {"label": "a"}, "task_2": {"label": "b", "attributes": {"sequence": 2}}}
    refusal = desk.refusal("graph_patch", graph_id=work, patch=[{"op": "replace", "path": "/nodes", "value": nodes}])
    assert isinstance(refusal, GraphInvalid)  # what was planned of a task that is done would be gone
    nodes["task_1"]["attributes"] = {"description": "A", "sequence": 1, "priority": 2}
    done = patch(desk, work, {"op": "replace", "path": "/nodes", "value": nodes})
    assert done["changed"] is False  # how far tasks are need not be repeated
