"""A workflow's tasks as a plan that could be laid again."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from handrail.domain.work.plan import PlanTask, check_plan, waits
from handrail.domain.work.task import Task
from handrail.domain.work.templates import plan_again


def task(
    name: str, *needs: str, parent: str | None = None, status: str = "completed", sequence: int = 1, priority: int = 0
) -> Task:
    return Task(
        id=f"id-{name}",
        workflow_id="wf",
        parent_task_id=None if parent is None else f"id-{parent}",
        name=name,
        description=f"do {name}",
        status=status,
        sequence=sequence,
        priority=priority,
        parallel_group="g",
        depends_on=list(needs),
        unmet=0,
        estimated_complexity="low",
        files_likely_affected=["f"],
        plan={"approach": "x"},
        context={"k": 1},
        outcome="done",
        outcome_detail=None,
        error=None,
        checkpoints=2,
        created_at=0,
        updated_at=0,
        requires=["python"],
        acceptance=["works"],
    )


def needs_of(tasks: list[PlanTask]) -> dict[str, list[str]]:
    return {one.name: one.depends_on for one in tasks}


def test_what_was_planned_is_taken_and_what_was_done_is_not() -> None:
    parent, part = plan_again([task("whole"), task("part", "other", parent="whole", sequence=7, priority=4)])
    assert parent.parent is None
    assert part == PlanTask(
        "part",
        "do part",
        7,
        parallel_group="g",
        depends_on=[],
        estimated_complexity="low",
        files_likely_affected=["f"],
        priority=4,
        requires=["python"],
        acceptance=["works"],
        parent="whole",
    )


def test_what_waited_for_a_skipped_task_waits_for_what_that_waited_for() -> None:
    tasks = [
        task("a"),
        task("b", "a", status="skipped"),
        task("c", "b", status="skipped"),
        task("d", "c", "a"),
        task("e", "d"),
    ]
    assert needs_of(plan_again(tasks)) == {"a": [], "d": ["a"], "e": ["d"]}


def test_parts_of_a_skipped_task_move_up_and_keep_their_order() -> None:
    tasks = [
        task("before"),
        task("top"),
        task("whole", "before", parent="top", status="skipped"),
        task("part", parent="whole"),
        task("after", "whole"),
    ]
    plan = plan_again(tasks)
    assert needs_of(plan) == {"before": [], "top": [], "part": ["before"], "after": ["before", "part"]}
    assert {one.name: one.parent for one in plan}["part"] == "top"


@st.composite
def workflows(draw: st.DrawFn) -> list[Task]:
    """Sound plans in which anything may have been skipped: references only go backwards, parents too."""
    found: list[Task] = []
    for number in range(draw(st.integers(1, 8))):
        earlier = [one.name for one in found]
        status = draw(st.sampled_from(["pending", "completed", "skipped"]))
        needs = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        parent = draw(st.sampled_from([None, *(one for one in earlier if one not in needs)]))
        found.append(task(f"t{number}", *needs, parent=parent, status=status))
    return found


def _sound(tasks: list[PlanTask]) -> bool:
    try:
        check_plan(tasks)
    except Exception:  # noqa: BLE001 - whatever it says, it is not sound
        return False
    return True


def _before(tasks: list[PlanTask], skipped: frozenset[str] = frozenset()) -> set[tuple[str, str]]:
    """Who waits for whom, however indirectly. A task does not wait for its skipped parts, but for the parts of them."""
    edges = waits(tasks)
    parts = {one.name: [part.name for part in tasks if part.parent == one.name] for one in tasks}
    for name in set(parts) - skipped:
        while dropped := [part for part in parts[name] if part in skipped]:
            edges[name] = [other for other in edges[name] if other not in dropped]
            parts[name] = [part for part in parts[name] if part not in skipped]
            parts[name] += [deeper for part in dropped for deeper in parts[part]]
            edges[name] += parts[name]
    pairs = set()
    for start in edges:
        pending, seen = list(edges[start]), set()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending.extend(edges.get(name, ()))
        pairs |= {(start, name) for name in seen}
    return pairs


@given(workflows())
def test_leaving_out_skipped_tasks_keeps_the_order_of_the_others(tasks: list[Task]) -> None:
    names = {one.id: one.name for one in tasks}
    whole = [
        PlanTask(
            one.name,
            "",
            1,
            depends_on=one.depends_on,
            parent=None if one.parent_task_id is None else names[one.parent_task_id],
        )
        for one in tasks
    ]
    if not _sound(whole):
        return
    plan = plan_again(tasks)
    check_plan(plan)
    kept = {one.name for one in plan}
    assert kept == {one.name for one in tasks if one.status != "skipped"}
    told = _before(whole, frozenset(names.values()) - kept)
    assert _before(plan) == {(late, early) for late, early in told if late in kept and early in kept}
