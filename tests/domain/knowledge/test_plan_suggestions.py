"""Plans made of old ones: whatever is left out, what remains can be laid, in its order, and waits for nothing that is
not there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.knowledge.plan_suggestions import PastPlan, PastTask, fragment_of, ranked, seen_in
from handrail.domain.work.plan import PlanTask, check_plan

NAMES = "abcdef"


@st.composite
def past(draw: st.DrawFn) -> list[PastTask]:
    """Tasks that may wait for anything, even for each other or for what is not there."""
    count = draw(st.integers(0, len(NAMES)))
    return [
        PastTask(
            name=name,
            depends_on=tuple(draw(st.lists(st.sampled_from([*NAMES, "gone"]), unique=True, max_size=3))),
            was_skipped=draw(st.booleans()) and draw(st.booleans()),
        )
        for name in NAMES[:count]
    ]


@given(past(), st.sets(st.sampled_from(NAMES.upper()), max_size=2))
def test_a_fragment_can_always_be_laid(tasks: list[PastTask], exclude: set[str]) -> None:
    fragment = fragment_of(tasks, exclude)
    plan = [
        PlanTask(name=task.name, description="", sequence=at, depends_on=list(task.depends_on))
        for at, task in enumerate(fragment.tasks)
    ]
    check_plan(plan)
    places = {task.name: task.sequence for task in plan}
    assert all(places[need] < task.sequence for task in plan for need in task.depends_on)
    names = {task.name for task in fragment.tasks}
    assert names | {*fragment.skipped, *fragment.excluded} == {task.name for task in tasks}
    assert not names & {name.casefold() for name in exclude}


def reaches(tasks: list[PastTask], name: str) -> set[str]:
    by_name = {task.name: task for task in tasks}
    found: set[str] = set()
    pending = [name]
    while pending:
        for need in by_name[pending.pop()].depends_on:
            if need in by_name and need not in found:
                found.add(need)
                pending.append(need)
    return found


@given(past(), st.sets(st.sampled_from(NAMES), max_size=2))
def test_the_order_of_what_remains_is_the_old_one(tasks: list[PastTask], exclude: set[str]) -> None:
    fragment = fragment_of(tasks, exclude)
    if fragment.circles:
        return
    for task in fragment.tasks:
        kept = {one.name for one in fragment.tasks}
        assert reaches(fragment.tasks, task.name) == (reaches(tasks, task.name) & kept) - {task.name}


def plan(key: str, name: str, text: str = "", *sources: str) -> PastPlan:
    return PastPlan(id=key, name=name, text=text, kind="workflow", at=0, sources=sources)


def test_likeness_ranks_and_preference_comes_first() -> None:
    plans = [
        plan("wf_1", "Retry imports", "imports fail when the connection is lost"),
        plan("wf_2", "Retry lost imports", "retry imports with a proxy"),
        plan("wf_3", "Change the colours"),
        plan("facts:x", "Import again", "retry the import", "handbook"),
    ]
    found = ranked("retry the imports", plans, (), 5)
    assert [one.plan.id for one in found][:1] == ["wf_2"]
    assert "wf_3" not in {one.plan.id for one in found}
    assert found[0].common == ("import", "retry")
    preferred = ranked("retry the imports", plans, ("handbook",), 1)
    assert [(one.plan.id, one.is_preferred) for one in preferred] == [("facts:x", True)]


def test_what_recurs_is_counted_once_a_plan() -> None:
    one = [PastTask(name="Test"), PastTask(name="test"), PastTask(name="gone", was_skipped=True)]
    assert seen_in([one, [PastTask(name="TEST")], []]) == {"test": 2}
