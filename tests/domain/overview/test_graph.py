"""The graph screen: what is drawn of a plan, what is taken together, what is kept, and which chain is critical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from handrail.domain.dry_run.forecast import foresee
from handrail.domain.dry_run.steps import steps_of_workflow
from handrail.domain.layout.edges import is_acyclic
from handrail.domain.layout.layered import Box, Layout, lay_out
from handrail.domain.overview.graph import KEPT, GraphView, Layouts
from handrail.domain.work.task import dependency
from handrail.domain.work.workflow import Workflow, empty_tally
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.records import UnitOfWork
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from tests.store.records import ANNA, put, workflow
from tests.store.records import task as any_task


class Counted(Layouts):
    """Layouts that say how often they made a drawing."""

    def __init__(self) -> None:
        self.made = 0
        super().__init__(self._count)

    def _count(self, nodes: Sequence[Box], edges: Sequence[tuple[str, str]]) -> Layout:
        self.made += 1
        return lay_out(nodes, edges)


class Plan:
    """A plan in a store: tasks by short names, in the order they are named."""

    def __init__(self) -> None:
        self.store = Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds())
        self.layouts = Counted()
        self._records: list[Any] = []
        self._sequence = 0

    def task(self, name: str, *needs: str, **more: Any) -> Plan:
        """Adds a task `t_<name>` that needs others."""
        self._sequence += 1
        told = {"name": name, "sequence": self._sequence, "unmet": len(needs), **more}
        self._records.append(any_task(f"t_{name}", **told))
        self._records += [dependency("wf_1", f"t_{name}", f"t_{need}") for need in needs]
        return self

    def laid(self, version: int = 1) -> Plan:
        put(self.store, msgspec.structs.replace(empty_tally("wf_1"), version=version), *self._records)
        self._records = []
        return self

    def view(self, grouped: bool | None = None, *opened: str) -> GraphView:
        return self.store.run(ANNA, lambda unit: self.layouts.view(unit, "wf_1", grouped, opened))


def modules(count: int, size: int = 5, *, prefix: str = "{}: ") -> Plan:
    """A start, modules of parallel tasks between a first and a last one each, and an end. Each waits for the third
    before it."""
    plan = Plan().task("start")
    for number in range(count):
        before = prefix.format(f"m{number}")
        plan.task(f"{before}design", "start", *([f"{prefix.format(f'm{number - 3}')}merge"] if number > 2 else []))
        parts = [f"{before}part {part}" for part in range(size - 2)]
        for part in parts:
            plan.task(part, f"{before}design")
        plan.task(f"{before}merge", *parts)
    return plan.task("end", *(f"{prefix.format(f'm{number}')}merge" for number in range(count))).laid()


def labels(view: GraphView) -> list[str]:
    return [node.label for node in view.nodes]


def lines(view: GraphView) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in view.edges]


def is_sound(view: GraphView) -> bool:
    """Every line joins two boxes, and they form no cycle."""
    number = {node.id: place for place, node in enumerate(view.nodes)}
    assert len(number) == len(view.nodes)
    return is_acyclic(len(number), [(number[source], number[target]) for source, target in lines(view)])


# -- what is drawn ----------------------------------------------------------------------------------------------------


def test_a_workflow_without_a_plan_is_an_empty_graph() -> None:
    assert msgspec.to_builtins(Plan().view()) == {
        "version": 0,
        "grouped": False,
        "can_group": False,
        "width": 0,
        "height": 0,
        "nodes": [],
        "edges": [],
        "crossings": 0,
        "critical": [],
    }


def test_a_small_plan_to_the_pixel() -> None:
    view = Plan().task("a").task("b", "a").task("c", "b", "a").laid(version=4).view()
    shown = msgspec.to_builtins(view)
    assert (shown["version"], shown["grouped"], shown["can_group"]) == (4, False, False)
    assert (shown["width"], shown["height"], shown["crossings"]) == (669, 44, 0)
    assert shown["nodes"][1] == {
        "id": "t_b",
        "kind": "task",
        "x": 239.5,
        "y": 0,
        "w": 190,
        "h": 44,
        "label": "b",
        "tasks": [],
        "group": None,
        "on_critical": True,
    }
    assert msgspec.json.decode(msgspec.json.encode(view.edges)) == [
        {"source": "t_a", "target": "t_b", "points": [[190, 22], [239.5, 22]], "on_critical": True},
        {"source": "t_b", "target": "t_c", "points": [[429.5, 22], [479, 22]], "on_critical": True},
    ]


def test_a_part_comes_before_what_it_is_part_of_and_after_what_that_waits_for() -> None:
    plan = Plan().task("first").task("whole", "first").task("part", parent_task_id="t_whole")
    put(plan.store, dependency("wf_1", "t_part", "t_first", inherited=True))
    view = plan.laid().view(grouped=False)
    assert lines(view) == [("t_first", "t_part"), ("t_part", "t_whole")]


def test_boxes_keep_the_order_of_the_plan_whatever_their_ids_are() -> None:
    plan = Plan()
    for name in ("z", "m", "a", "q"):
        plan.task(name)
    view = plan.laid().view()
    assert labels(view) == ["z", "m", "a", "q"]
    assert sorted(view.nodes, key=lambda node: (node.y, node.x)) == view.nodes


# -- groups -----------------------------------------------------------------------------------------------------------


def test_a_plan_of_eighty_tasks_is_drawn_in_full_and_a_larger_one_in_groups() -> None:
    small, large = modules(13, 6), modules(16)
    assert [len(one.view().nodes) for one in (small, large)] == [80, 18]
    assert (small.view().grouped, small.view().can_group) == (False, True)
    assert (large.view().grouped, large.view().can_group) == (True, True)
    assert len(large.view(grouped=False).nodes) == 82
    assert small.view(grouped=True).grouped


def test_a_group_is_one_box_with_its_tasks_and_opens_in_place() -> None:
    plan = modules(16)
    view = plan.view()
    assert is_sound(view)
    (group,) = [node for node in view.nodes if node.label == "m2"]
    assert (group.id, group.kind, group.group, group.w, group.h) == ("group:name:m2", "group", "name:m2", 210, 56)
    assert group.tasks == ["t_m2: design", "t_m2: part 0", "t_m2: part 1", "t_m2: part 2", "t_m2: merge"]
    opened = plan.view(True, "name:m2", "name:unheard of")
    assert is_sound(opened)
    assert len(opened.nodes) == 18 - 1 + 5
    assert [node.id for node in opened.nodes if node.group == "name:m2"] == group.tasks
    assert {node.kind for node in opened.nodes if node.group == "name:m2"} == {"task"}


def test_tasks_are_grouped_by_what_they_are_part_of_before_anything_else() -> None:
    plan = Plan().task("api", parallel_group="x").task("web", "api", parallel_group="x").task("x: alone", "web")
    for name in ("routes", "models"):
        plan.task(f"x: {name}", parent_task_id="t_api")
    plan.task("x: tables", parent_task_id="t_x: models").task("x: pages", "api", parent_task_id="t_web")
    view = plan.laid().view(grouped=True)
    assert [(node.label, node.tasks) for node in view.nodes] == [
        ("api", ["t_api", "t_x: routes", "t_x: models", "t_x: tables"]),
        ("web", ["t_web", "t_x: pages"]),
        ("x: alone", []),
    ]
    assert lines(view) == [("group:part:t_api", "group:part:t_web"), ("group:part:t_web", "t_x: alone")]


def test_a_task_that_everything_is_part_of_is_no_group() -> None:
    plan = Plan().task("all")
    for whole in ("a", "b"):
        plan.task(whole, parent_task_id="t_all")
        plan.task(f"{whole}1", parent_task_id=f"t_{whole}").task(f"{whole}2", parent_task_id=f"t_{whole}")
    view = plan.laid().view(grouped=True)
    assert [(node.label, len(node.tasks)) for node in view.nodes] == [("all", 0), ("a", 3), ("b", 3)]


def test_tasks_are_grouped_by_their_parallel_group_then_by_name() -> None:
    plan = Plan().task("ui: a", parallel_group="one").task("ui: b", parallel_group="one")
    plan.task("ui: c").task("ui/d").task("ui. e").task("db: f", "ui: a")
    assert [(node.label, len(node.tasks)) for node in plan.laid().view(grouped=True).nodes] == [
        ("one", 2),
        ("ui", 3),
        ("db: f", 0),
    ]


def test_keys_can_be_listed_with_commas_between_them() -> None:
    plan = Plan().task("a", parallel_group="x, y").task("b", parallel_group="x, y")
    plan.task("c", parallel_group="x%2C y").task("d", parallel_group="x%2C y").task("e")
    view = plan.laid().view(grouped=True)
    assert [node.group for node in view.nodes] == ["lane:x%2C y", "lane:x%252C y", None]
    assert labels(view) == ["x, y", "x%2C y", "e"]
    assert len(plan.view(True, "lane:x%2C y").nodes) == 4


def test_names_that_are_sentences_group_nothing() -> None:
    plan = Plan()
    for number in range(6):
        plan.task(f"Write chapter {number}. Then read it")
    view = plan.laid().view(grouped=True)
    assert (view.grouped, view.can_group, len(view.nodes)) == (False, False, 6)


def test_what_would_make_a_cycle_is_left_out_but_for_what_hangs_together() -> None:
    """The frame of a plan has its first tasks and its last: as one box, lines would leave it and come back."""
    plan = Plan().task("core: specify").task("core: plan", "core: specify")
    plan.task("a: x", "core: plan").task("a: y", "a: x").task("b: x", "core: plan").task("b: y", "b: x")
    plan.task("core: join", "a: y", "b: y").task("core: ship", "core: join")
    view = plan.laid().view(grouped=True)
    assert is_sound(view)
    assert [(node.label, len(node.tasks)) for node in view.nodes] == [("core", 2), ("a", 2), ("b", 2), ("core", 2)]
    assert len({node.group for node in view.nodes}) == 4


def test_groups_that_wait_for_each_other_are_not_both_closed() -> None:
    plan = Plan().task("a: 1").task("b: 1", "a: 1").task("b: 2").task("a: 2", "b: 2").task("a: 3")
    view = plan.laid().view(grouped=True)
    assert is_sound(view)
    assert [(node.label, len(node.tasks)) for node in view.nodes] == [("a", 3), ("b: 1", 0), ("b: 2", 0)]


def test_a_plan_that_says_nothing_is_grouped_by_progress() -> None:
    view = modules(30, prefix="{} ").view()
    assert is_sound(view)
    assert view.grouped
    assert len(view.nodes) <= 80
    assert view.nodes[0].label.startswith("Step")
    assert sum(len(node.tasks) or 1 for node in view.nodes) == 152
    flat = Plan()
    for number in range(300):
        flat.task(f"{number}")
    assert len(flat.laid().view().nodes) == 24


# -- the critical path ------------------------------------------------------------------------------------------------


def test_the_critical_path_is_the_longest_by_complexity() -> None:
    plan = Plan().task("a").task("easy", "a", estimated_complexity="low").task("hard", "a", estimated_complexity="high")
    view = plan.task("end", "easy", "hard").task("aside", estimated_complexity="high").laid().view()
    assert view.critical == ["t_a", "t_hard", "t_end"]
    assert [node.id for node in view.nodes if node.on_critical] == view.critical
    assert [(edge.source, edge.target) for edge in view.edges if edge.on_critical] == [
        ("t_a", "t_hard"),
        ("t_hard", "t_end"),
    ]


def test_of_equally_long_chains_the_one_that_is_named_first_is_critical() -> None:
    plan = Plan().task("b").task("a").task("d", "a", "b").task("c", "a", "b").laid()
    assert plan.view().critical == ["t_b", "t_d"]


def done(began: int, ended: int, **more: Any) -> dict[str, Any]:
    return {"status": "completed", "started_at": began, "finished_at": ended, **more}


def test_time_that_was_worked_counts_for_more_than_what_was_thought() -> None:
    slow = done(0, 60_000, estimated_complexity="low")
    quick = done(0, 1_000, estimated_complexity="high")
    plan = Plan().task("quick", **quick).task("slow", **slow).task("end", "quick", "slow").laid()
    assert plan.view().critical == ["t_slow", "t_end"]


def test_what_is_left_is_estimated_at_the_pace_of_what_is_done() -> None:
    """A task of ordinary size took 10 s here, so each task ahead takes 10 s: two of them less than 25 s, three more."""
    plan = Plan().task("a", **done(0, 10_000, estimated_complexity="medium"))
    plan.task("b", **done(0, 25_000, estimated_complexity="high")).task("c", estimated_complexity="medium")
    assert plan.laid().view().critical == ["t_b"]
    plan.task("d", "c").laid()
    assert plan.view().critical == ["t_b"]
    plan.task("e", "d").laid()
    assert plan.view().critical == ["t_c", "t_d", "t_e"]


def dry_run(plan: Plan) -> list[str]:
    """The critical path that a dry run names."""
    put(plan.store, workflow("wf_1"))

    def work(unit: UnitOfWork) -> list[str]:
        found = unit.get(Workflow, "wf_1")
        assert found is not None
        return [step.id for step in foresee(steps_of_workflow(unit, found, retry_failed=False).steps, 2).path]

    return plan.store.run(ANNA, work)


def test_the_page_and_a_dry_run_name_the_same_chain() -> None:
    plan = Plan().task("hard", estimated_complexity="high").task("one", estimated_complexity="medium")
    plan.task("two", "one", estimated_complexity="medium").task("three", "two", estimated_complexity="low").laid()
    assert plan.view().critical == dry_run(plan) == ["t_hard"]


def test_of_equally_long_chains_both_name_the_one_with_more_tasks() -> None:
    plan = Plan().task("medium", estimated_complexity="medium").task("x", estimated_complexity="low")
    plan.task("y", "x", estimated_complexity="low").task("z", "y", estimated_complexity="low").laid()
    assert plan.view().critical == dry_run(plan) == ["t_x", "t_y", "t_z"]


def test_what_was_skipped_takes_no_time_and_a_whole_counts_without_its_parts() -> None:
    plan = Plan().task("skipped", status="skipped", estimated_complexity="high")
    plan.task("whole", **done(0, 10_000)).task("part", **done(1_000, 9_900, parent_task_id="t_whole"))
    plan.task("other", **done(0, 9_500))
    assert plan.laid().view().critical == ["t_other"]


def test_a_closed_group_is_critical_with_one_of_its_tasks() -> None:
    view = modules(16).view()
    critical = [node.label for node in view.nodes if node.on_critical]
    assert critical == ["start", "m0", "m3", "m6", "m9", "m12", "m15", "end"]
    assert len(view.critical) == 2 + 6 * 3
    assert sum(edge.on_critical for edge in view.edges) == 7


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_a_task_that_moves_moves_no_box() -> None:
    plan = Plan().task("a").task("b", "a").laid()
    before = plan.view()
    put(plan.store, any_task("t_a", name="a", sequence=1, **done(0, 5)))
    after = plan.view()
    assert plan.layouts.made == 1
    assert (after.nodes, after.edges) == (before.nodes, before.edges)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"parallel_group": "other"},
        {"parent_task_id": "t_b"},
        {"sequence": 9},
    ],
)
def test_a_plan_that_changes_is_drawn_again(change: dict[str, Any]) -> None:
    plan = Plan().task("a").task("b").laid()
    plan.view()
    put(plan.store, any_task("t_a", **{"name": "a", "sequence": 1, **change}))
    plan.view()
    assert plan.layouts.made == 2


def test_a_new_line_and_other_groups_are_drawn_again() -> None:
    plan = modules(16)
    plan.view()
    plan.view(True)
    assert plan.layouts.made == 1
    plan.view(True, "name:m1", "name:m2")
    plan.view(True, "name:m2", "name:m1", "name:m1")
    assert plan.layouts.made == 2
    put(plan.store, dependency("wf_1", "t_m1: design", "t_m0: merge"))
    plan.view(True)
    assert plan.layouts.made == 3


def test_the_latest_drawings_are_kept_and_no_more() -> None:
    plan = Plan().task("a: 1").task("a: 2").task("b").task("b: 2").laid()
    for number in range(KEPT):
        plan.view(True, f"key {number}")
    plan.view(True, "key 0")
    assert plan.layouts.made == KEPT
    plan.view(True, "one more")
    plan.view(True, "key 0")
    assert plan.layouts.made == KEPT + 1
    plan.view(True, "key 1")
    assert plan.layouts.made == KEPT + 2
