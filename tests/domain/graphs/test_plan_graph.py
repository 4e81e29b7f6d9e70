"""A plan's two views: the one for changing has descriptions, the one for showing has what is inherited."""

from __future__ import annotations

from handrail.domain.graphs.graph import LONGEST_TEXT, Edge, Node
from handrail.domain.graphs.plan_graph import PlanRows, graph_of, shown_graph_of
from handrail.domain.work.task import dependency
from tests.store.records import task, workflow

FIRST = task("task_1", name="first", description="Do it", parallel_group="", priority=3, sequence=2)
WHOLE = task("task_2", name="whole", description="", sequence=1, unmet=1)
PART = task("task_3", name="part", description="x" * (LONGEST_TEXT + 1), parent_task_id="task_2", sequence=3)
PLAN = PlanRows(
    workflow(name="Work", max_parallel_tasks=2),
    {one.id: one for one in (FIRST, WHOLE, PART)},
    [dependency("wf_1", "task_2", "task_1"), dependency("wf_1", "task_3", "task_1", inherited=True)],
)
OWN = {
    "task_1->task_2": Edge(source="task_1", target="task_2"),
    "task_2->task_3#part_of": Edge(source="task_2", target="task_3", label="part_of"),
}


def test_for_changing_a_node_has_what_the_plan_says_of_it() -> None:
    graph = graph_of(PLAN)
    assert list(graph.nodes) == ["task_2", "task_1", "task_3"], "in the plan's order"
    assert graph.nodes["task_1"] == Node(
        label="first", attributes={"status": "pending", "description": "Do it", "sequence": 2, "priority": 3}
    )
    assert "description" not in graph.nodes["task_2"].attributes
    assert "description" not in graph.nodes["task_3"].attributes, "it is too long for a graph"
    assert graph.edges == OWN


def test_for_showing_it_has_what_is_inherited_and_no_descriptions() -> None:
    graph, shown = graph_of(PLAN), shown_graph_of(PLAN)
    assert (shown.name, shown.metadata, list(shown.nodes)) == (graph.name, graph.metadata, list(graph.nodes))
    assert shown.nodes["task_1"] == Node(
        label="first", attributes={"status": "pending", "sequence": 2, "priority": 3, "parallelGroup": ""}
    )
    assert shown.nodes["task_2"].attributes["status"] == "blocked"
    inherited = Edge(source="task_1", target="task_3", attributes={"inherited": True})
    assert shown.edges == {**OWN, "task_1->task_3": inherited}
