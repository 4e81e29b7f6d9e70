"""Plans changed as graphs while work goes on: what is done or under way stays, the rest follows, and every counter is
what a look at everything says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import ClaimHeld, GraphInvalid, TxConflict, WorkflowClosed
from tests.toolsets.registry.graphs import Graphs, attribute, edge, gone, no_edge, node, relabel

FOUR = (
    {"name": "a"},
    {"name": "b", "depends_on": ["a"]},
    {"name": "c", "depends_on": ["b"], "description": "Do c", "priority": 3},
    {"name": "d", "depends_on": ["b"]},
)


@pytest.fixture
def desk(tmp_path: Path) -> Graphs:
    return Graphs(tmp_path)


@pytest.fixture
def work(desk: Graphs) -> str:
    """a → b → c, d: task_1 to task_4."""
    return desk.plan(*FOUR, max_parallel_tasks=4)


def test_a_plan_is_a_graph_that_says_what_was_planned(desk: Graphs, work: str) -> None:
    begun = desk.call("tx_begin", graph_id=work)
    assert begun["base_version"] == 1
    nodes = {item["id"]: item for item in begun["graph"]["nodes"]}
    assert nodes["task_3"] == {
        "id": "task_3",
        "label": "c",
        "attributes": {"status": "blocked", "description": "Do c", "sequence": 3, "priority": 3},
    }
    assert {(one["from"], one["to"]) for one in begun["graph"]["edges"]} == {
        ("task_1", "task_2"),
        ("task_2", "task_3"),
        ("task_2", "task_4"),
    }


def test_new_nodes_become_tasks_and_the_ready_set_follows(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress", "completed")
    answer = desk.change(
        work,
        node("x", "check", description="Look first", complexity="low", parallelGroup="p"),
        no_edge("task_1", "task_2"),
        edge("task_1", "x"),
        edge("x", "task_2"),
        note="look before",
    )
    new = answer["created"]["x"]
    assert answer["version"] == 2
    task = desk.task(new)
    assert (task["name"], task["depends_on"], task["estimated_complexity"]) == ("check", ["a"], "low")
    assert (task["parallel_group"], task["description"], task["sequence"]) == ("p", "Look first", 5)
    assert desk.ready(work) == ["check"]
    assert desk.tasks(work)["b"].depends_on == ["check"]
    event = desk.last(work)
    assert (event.kind, event.data["reason"], event.data["added"]) == ("workflow.replanned", "look before", ["check"])
    assert {item["id"] for item in answer["graph"]["nodes"]} == {"task_1", "task_2", "task_3", "task_4", new}
    desk.audit(work)


def test_the_answer_shows_the_graph_as_it_is_then(desk: Graphs, work: str) -> None:
    answer = desk.change(work, node("x"), edge("x", "task_1"), relabel("task_4", "deploy"), gone("task_3"))
    again = desk.call("tx_begin", graph_id=work)
    assert answer["graph"] == again["graph"]


def test_only_what_differs_is_edited(desk: Graphs) -> None:
    work = desk.plan(*({"name": f"t{n}", "depends_on": [f"t{n - 1}"] if n else []} for n in range(400)))
    desk.change(work, relabel("task_200", "renamed"))
    changed = {change.key for change in desk.last(work).changes if change.table == "task"}
    assert changed == {"task_200", "task_201"}
    assert len(desk.last(work).changes) == 4
    desk.audit(work)


def test_a_rename_keeps_the_task_and_what_waits_for_it(desk: Graphs, work: str) -> None:
    desk.call("checkpoint_add", task_id="task_2", type="progress", summary="half")
    desk.change(work, relabel("task_2", "better b"))
    tasks = desk.tasks(work)
    assert tasks["better b"].id == "task_2"
    assert tasks["better b"].checkpoints == 1
    assert tasks["c"].depends_on == tasks["d"].depends_on == ["better b"]
    desk.audit(work)


def test_a_name_of_a_finished_dependent_follows_a_rename(desk: Graphs, work: str) -> None:
    desk.move("task_3", "skipped")
    desk.change(work, relabel("task_2", "z"))
    assert desk.tasks(work)["c"].depends_on == ["z"]
    desk.audit(work)


@pytest.mark.parametrize(
    "states", [("in_progress",), ("planning",), ("in_progress", "paused"), ("in_progress", "completed"), ("skipped",)]
)
@pytest.mark.parametrize(
    "operations",
    [
        [gone("task_1")],
        [relabel("task_1", "other")],
        [attribute("task_1", "priority", 9)],
        [attribute("task_1", "description", "other")],
        [node("x"), edge("x", "task_1")],
        [node("x"), edge("x", "task_1", "part_of")],
    ],
    ids=["gone", "renamed", "priority", "description", "waits", "part"],
)
def test_what_is_done_or_under_way_stays(
    desk: Graphs, work: str, states: tuple[str, ...], operations: list[dict[str, Any]]
) -> None:
    desk.move("task_1", *states)
    refusal = desk.refuse(work, *operations)
    assert isinstance(refusal, GraphInvalid)
    assert refusal.details["rule"] == "protected"
    assert refusal.details["node"] == "task_1"
    assert "task_1" in refusal.message
    assert refusal.hint
    desk.audit(work)


def test_what_comes_after_work_under_way_can_change(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress")
    desk.change(work, gone("task_2"), edge("task_1", "task_3"), node("x"), edge("task_1", "x"))
    tasks = desk.tasks(work)
    assert "b" not in tasks
    assert tasks["c"].depends_on == ["a"]
    desk.move("task_1", "completed")
    assert sorted(desk.ready(work)) == ["c", "d", "x"]
    desk.audit(work)


def test_work_goes_on_while_a_transaction_is_open(desk: Graphs, work: str) -> None:
    tx = desk.begin(work, node("x"), edge("task_4", "x"), relabel("task_3", "cc"))
    desk.move("task_1", "in_progress", "completed")
    desk.move("task_2", "in_progress")
    assert desk.call("tx_commit", tx_id=tx)["version"] == 2
    assert desk.tasks(work)["b"].status == "in_progress"
    desk.audit(work)


def test_a_task_that_began_meanwhile_stays(desk: Graphs, work: str) -> None:
    tx = desk.begin(work, gone("task_1"))
    assert desk.call("tx_begin", graph_id=work)["base_version"] == 1
    desk.move("task_1", "in_progress")
    refusal = desk.refusal("tx_commit", tx_id=tx)
    assert isinstance(refusal, GraphInvalid)
    assert "task_1" in refusal.message
    tried = desk.call("tx_apply", tx_id=tx, operations=[node("y")])
    assert tried["invariants"]["broken"][0]["rule"] == "protected"
    desk.audit(work)


def test_any_other_change_of_the_plan_comes_first(desk: Graphs, work: str) -> None:
    tx = desk.begin(work, node("x"))
    desk.call("workflow_add_tasks", id=work, tasks=[{"name": "e", "description": "", "sequence": 9}])
    refusal = desk.refusal("tx_commit", tx_id=tx)
    assert isinstance(refusal, TxConflict)
    assert refusal.details["diff_summary"]["nodesAdded"] == 1
    assert refusal.details["diff_summary"]["nodesUpdated"] == 0


def test_a_task_with_traces_is_kept_as_skipped(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress", "failed")
    answer = desk.change(work, gone("task_1"), gone("task_4"), note="not needed")
    assert answer["skipped"] == ["a"]
    tasks = desk.tasks(work)
    assert tasks["a"].status == "skipped"
    assert tasks["a"].outcome == "taken out of the plan: not needed"
    assert "d" not in tasks
    assert tasks["b"].depends_on == []
    assert desk.ready(work) == ["b"]
    desk.audit(work)
    assert desk.refuse(work, gone("task_1")).details["rule"] == "protected"
    taken = desk.refuse(work, node("x", "a"))
    assert "two nodes" in taken.message


def test_a_failed_task_that_is_planned_anew_is_offered_again(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress", "failed")
    desk.change(work, relabel("task_3", "x"))
    assert desk.tasks(work)["a"].status == "failed"
    desk.change(work, attribute("task_1", "description", "another way"))
    task = desk.tasks(work)["a"]
    assert (task.status, task.error) == ("pending", None)
    desk.audit(work)


def test_a_failed_task_of_which_only_a_need_is_renamed_stays_failed(desk: Graphs) -> None:
    work = desk.plan({"name": "a"}, {"name": "b"}, max_parallel_tasks=2)
    desk.move("task_2", "in_progress", "failed")
    desk.change(work, edge("task_1", "task_2"))
    assert desk.tasks(work)["b"].status == "pending"
    desk.move("task_1", "in_progress", "failed")
    third = desk.change(work, node("c"), edge("task_1", "c"))["created"]["c"]
    desk.change(work, relabel("task_2", "bb"))
    assert desk.tasks(work)["a"].status == "failed"
    desk.call("task_update_status", id="task_1", status="skipped")
    desk.move(third, "in_progress", "failed")
    desk.change(work, node("d"), edge("task_2", "d"))
    assert desk.tasks(work)["c"].status == "failed"
    desk.audit(work)


def test_claims_of_others_are_respected(desk: Graphs, work: str) -> None:
    anna, ben = desk.agent("Anna"), desk.agent("Ben")
    desk.call("task_claim", task_id="task_1", agent_id=anna)
    for operations in ([gone("task_1")], [relabel("task_1", "x")], [node("x"), edge("x", "task_1")]):
        refusal = desk.refuse(work, *operations, agent_id=ben)
        assert isinstance(refusal, ClaimHeld)
        assert refusal.details["held_by"] == anna
    assert desk.change(work, relabel("task_3", "cc"), agent_id=ben)["changed"] is True
    assert desk.change(work, relabel("task_1", "x"), agent_id=anna)["changed"] is True
    desk.clock.advance(10_000_000)
    assert desk.change(work, relabel("task_1", "y"), agent_id=ben)["changed"] is True
    desk.audit(work)


@pytest.mark.parametrize(
    "operations",
    [
        [edge("task_3", "task_1")],
        [edge("task_1", "task_3", "part_of"), edge("task_3", "task_4"), edge("task_4", "task_1")],
        [node("p"), edge("task_2", "p", "part_of"), edge("p", "task_1")],
        [edge("task_1", "task_1")],
        [edge("task_1", "task_2", "part_of"), edge("task_2", "task_1", "part_of")],
        [edge("task_3", "task_1", "part_of"), edge("task_4", "task_1", "part_of")],
        [edge("task_1", "task_3", "kind_of")],
        [node("x", "a")],
        [relabel("task_1", "b")],
        [relabel("task_1", "b"), relabel("task_2", "a")],
        [gone("task_3"), node("x", "c")],
        [relabel("task_1", " a")],
        [relabel("task_1", "")],
        [node("x", "y" * 201)],
        [attribute("task_1", "status", "completed")],
        [attribute("task_1", "color", "red")],
        [attribute("task_1", "priority", 5000)],
        [attribute("task_1", "priority", True)],
        [attribute("task_1", "sequence", None)],
        [attribute("task_1", "sequence", -1)],
        [attribute("task_1", "complexity", "huge")],
        [node("x", status="completed")],
        [{"op": "patch_metadata", "set": {"status": "completed"}}],
        [{"op": "set_edge_attribute", "from": "task_1", "to": "task_2", "key": "weight", "value": 2}],
        [{"op": "add_edge", "from": "task_1", "to": "task_4", "attributes": {"inherited": True}}],
    ],
)
def test_what_no_plan_can_be_is_refused(desk: Graphs, work: str, operations: list[dict[str, Any]]) -> None:
    refusal = desk.refuse(work, *operations)
    assert isinstance(refusal, GraphInvalid), refusal
    assert refusal.hint
    desk.audit(work)


def test_a_tasks_id_stays(desk: Graphs, work: str) -> None:
    operation = {"op": "rename_node", "id": "task_1", "new_id": "x"}
    assert desk.refuse(work, operation).code == "BULK_REFUSED"
    tx = desk.begin(work)
    assert "its id stays" in desk.refusal("tx_apply", tx_id=tx, operations=[operation]).message
    moved = [{"op": "move", "from": "/nodes/task_1", "path": "/nodes/x"}]
    assert isinstance(desk.refusal("graph_patch", graph_id=work, patch=moved), GraphInvalid)


def test_parts_wait_for_what_their_whole_waits_for(desk: Graphs, work: str) -> None:
    answer = desk.change(
        work,
        node("p1"),
        node("p2"),
        node("q"),
        edge("task_3", "p1", "part_of"),
        edge("task_3", "p2", "part_of"),
        edge("p1", "p2"),
        edge("p1", "q", "part_of"),
    )
    desk.audit(work)
    assert desk.tasks(work)["c"].open_children == 2
    p1, q = answer["created"]["p1"], answer["created"]["q"]
    assert (desk.tasks(work)["p1"].unmet, desk.tasks(work)["q"].unmet) == (1, 1)
    desk.change(work, no_edge("task_2", "task_3"), edge("task_1", "task_3"))
    desk.audit(work)
    desk.change(work, edge("task_1", p1))  # its own from now on
    desk.audit(work)
    desk.change(work, no_edge("task_1", "task_3"))
    desk.audit(work)
    desk.change(work, no_edge("task_3", p1, "part_of"), no_edge(p1, q, "part_of"), edge("task_4", q, "part_of"))
    desk.audit(work)
    assert desk.tasks(work)["q"].parent_task_id == "task_4"
    assert desk.tasks(work)["c"].open_children == 1


def test_a_whole_goes_and_its_parts_stay_by_themselves(desk: Graphs, work: str) -> None:
    answer = desk.change(work, node("p"), edge("task_3", "p", "part_of"))
    desk.change(work, gone("task_3"))
    tasks = desk.tasks(work)
    assert "c" not in tasks
    assert (tasks["p"].id, tasks["p"].parent_task_id, tasks["p"].unmet) == (answer["created"]["p"], None, 0)
    desk.audit(work)


def test_a_whole_with_parts_that_are_done_is_kept_as_skipped(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress", "completed")
    part = desk.change(work, node("p"), node("r"), edge("task_2", "p", "part_of"), edge("task_2", "r", "part_of"))
    desk.move(part["created"]["p"], "in_progress", "completed")
    desk.move(part["created"]["r"], "in_progress")
    refusal = desk.refuse(work, gone("task_2"))
    assert part["created"]["r"] in refusal.message
    desk.move(part["created"]["r"], "completed")
    assert desk.change(work, gone("task_2"))["skipped"] == ["b"]
    assert desk.tasks(work)["p"].parent_task_id == "task_2"
    desk.audit(work)
    ended = desk.refuse(work, node("x"), edge("task_2", "x", "part_of"))
    assert "skipped" in ended.message


def test_running_parts_follow_what_their_whole_waits_for(desk: Graphs, work: str) -> None:
    desk.move("task_1", "in_progress", "completed")
    part = desk.change(work, node("p"), edge("task_2", "p", "part_of"))["created"]["p"]
    desk.move(part, "in_progress")
    desk.change(work, node("x"), edge("x", "task_2"))
    desk.audit(work)
    desk.change(work, gone(desk.tasks(work)["x"].id))
    desk.audit(work)


def test_an_ended_workflow_is_not_planned(desk: Graphs, work: str) -> None:
    desk.call("workflow_update_status", id=work, status="abandoned")
    assert isinstance(desk.refuse(work, node("x")), WorkflowClosed)


def test_a_workflow_without_a_plan_gets_one(desk: Graphs) -> None:
    work = desk.call("workflow_create", name="w", source_type="prompt", source_content="")["id"]
    tx = desk.begin(work, node("x"), node("y"), edge("x", "y"))
    assert desk.call("tx_commit", tx_id=tx)["version"] == 1
    assert desk.call("workflow_get", id=work)["status"] == "ready"
    assert desk.ready(work) == ["x"]
    shown = desk.read(f"sc://snapshots/{work}/{tx}")
    assert (shown["baseGraph"]["nodes"], len(shown["finalGraph"]["nodes"])) == ([], 2)
    desk.audit(work)


def test_versions_and_snapshots_follow(desk: Graphs, work: str) -> None:
    before = desk.state(work)
    tx = desk.begin(work, node("x"), note="more")
    desk.call("tx_commit", tx_id=tx)
    after = desk.state(work)
    desk.move("task_1", "in_progress")
    assert desk.read(f"sc://graphs/{work}@v2") == after
    for name in ("v2", tx):
        shown = desk.read(f"sc://snapshots/{work}/{name}")
        assert (shown["baseGraph"], shown["finalGraph"]) == (before["graph"], after["graph"])
        assert (shown["state"], shown["note"]) == ("committed", "more")
    kinds = [event["kind"] for event in desk.call("resources_watch", uri=f"sc://snapshots/{work}/{tx}")["events"]]
    assert kinds == ["tx.begun", "tx.applied", "tx.committed"]


def test_a_description_that_no_graph_holds_stays(desk: Graphs) -> None:
    work = desk.plan({"name": "a", "description": "x" * 5000}, {"name": "b"})
    desk.change(work, edge("task_1", "task_2"), relabel("task_1", "aa"))
    assert desk.tasks(work)["aa"].description == "x" * 5000
    desk.change(work, attribute("task_1", "description", "short"))
    assert desk.tasks(work)["aa"].description == "short"


def test_rewrites_work_on_plans(desk: Graphs, work: str) -> None:
    parts = [{"id": "l", "label": "left"}, {"id": "r", "label": "right"}]
    desk.change(work, {"op": "rewrite", "rule": "split_parallel", "node": "task_2", "parts": parts})
    tasks = desk.tasks(work)
    assert tasks["left"].depends_on == tasks["right"].depends_on == ["a"]
    assert sorted(tasks["c"].depends_on) == ["left", "right"]
    desk.audit(work)


def test_what_is_done_does_not_become_part_of_another_when_its_whole_goes(desk: Graphs, work: str) -> None:
    part = desk.change(work, node("p"), edge("task_3", "p", "part_of"))["created"]["p"]
    for task in ("task_1", "task_2", part):
        desk.move(task, "in_progress", "completed")
    moved = [gone("task_3"), edge("task_4", part, "part_of")]
    with pytest.raises(GraphInvalid, match="part of another"):
        desk.change(work, *moved)
    desk.change(work, gone("task_3"))
    desk.audit(work)
