"""What makes a plan one that can be worked through."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.work.plan import PlanTask, check_plan, find_cycle
from handrail.kernel.errors import InvalidPlan


def planned(name: str, depends_on: list[str] | None = None) -> PlanTask:
    return PlanTask(name, "", 1, depends_on=depends_on or [])


def plan(**edges: list[str]) -> list[PlanTask]:
    return [planned(name, depends_on) for name, depends_on in edges.items()]


def test_a_plan_without_mistakes_is_taken() -> None:
    check_plan(plan(a=[], b=["a"], c=["a", "b"]))


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ([planned("a"), planned("a")], 'two tasks are named "a"'),
        (plan(a=["a"]), "depends on itself"),
        (plan(wrap=[], test=["wrp"]), "did you mean wrap?"),
        (plan(a=["b"], b=["c"], c=["a"]), "a → b → c → a"),
    ],
)
def test_a_mistake_is_refused_and_shown(tasks: list[PlanTask], says: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        check_plan(tasks)
    assert says in refused.value.message


def test_a_long_chain_needs_no_recursion() -> None:
    edges = {str(number): [str(number + 1)] for number in range(20_000)}
    assert find_cycle(edges) == []
    assert len(find_cycle({**edges, "20000": ["0"]})) == 20_002


graphs = st.dictionaries(
    st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefg"), max_size=4, unique=True), max_size=7
)


def reaches_itself(edges: dict[str, list[str]], start: str) -> bool:
    seen: set[str] = set()
    pending = list(edges.get(start, ()))
    while pending:
        node = pending.pop()
        if node == start:
            return True
        if node not in seen:
            seen.add(node)
            pending.extend(edges.get(node, ()))
    return False


@given(graphs)
def test_a_cycle_is_found_exactly_when_there_is_one(edges: dict[str, list[str]]) -> None:
    cycle = find_cycle(edges)
    assert bool(cycle) == any(reaches_itself(edges, node) for node in edges)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(after in edges[before] for before, after in itertools.pairwise(cycle))
