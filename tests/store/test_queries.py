"""Queries: every condition and order gives the same records on every engine, and the text stays one per shape."""

from __future__ import annotations

import pytest

from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.store.queries import Query, count_sql, select_sql, where
from handrail.store.tables import BY_NAME
from tests.store.ground import Ground
from tests.store.records import ANNA, put, task, workflow

TASKS = (
    task("a", sequence=3, priority=1, status="pending", outcome=None, parent_task_id=None, name="Zoë"),
    task("B", sequence=1, priority=1, status="failed", outcome="bad", parent_task_id="a", name="alpha"),
    task("c", sequence=2, priority=0, status="pending", outcome="good", parent_task_id=None, name="Beta"),
    task("d", sequence=2, priority=5, status="completed", outcome=None, parent_task_id="a", name="Äpfel"),
    task("_e", sequence=9, priority=0, status="skipped", outcome="bad", parent_task_id="c", name="\U0001f6e0"),
)

CASES: dict[str, tuple[Query, list[str]]] = {
    "everything, by id": (Query(), ["B", "_e", "a", "c", "d"]),
    "everything, by id turned around": (Query(order=("-id",)), ["d", "c", "a", "_e", "B"]),
    "equal text": (where(status="pending"), ["a", "c"]),
    "equal number": (where(priority=0), ["_e", "c"]),
    "two conditions": (where(status="pending", priority=1), ["a"]),
    "by id": (where(id="c"), ["c"]),
    "by stream": (where(stream="wf_1"), ["B", "_e", "a", "c", "d"]),
    "by another stream": (where(stream="wf_2"), []),
    "nothing there": (where(outcome=None), ["a", "d"]),
    "any of several": (where(status=("failed", "skipped")), ["B", "_e"]),
    "any of one": (where(status=("failed",)), ["B"]),
    "any of none": (where(status=()), []),
    "any of several or nothing": (where(outcome=("good", None)), ["a", "c", "d"]),
    "any of nothing": (where(outcome=(None,)), ["a", "d"]),
    "no such value": (where(status="PENDING"), []),
    "by number, then id": (Query(order=("sequence",)), ["B", "c", "d", "a", "_e"]),
    "by number turned around, then id": (Query(order=("-sequence",)), ["_e", "a", "c", "d", "B"]),
    "by number, then id turned around": (Query(order=("sequence", "-id")), ["B", "d", "c", "a", "_e"]),
    "by two columns": (Query(order=("-priority", "sequence")), ["d", "B", "a", "c", "_e"]),
    "nothing comes first": (Query(order=("outcome",)), ["a", "d", "B", "_e", "c"]),
    "nothing comes last when turned around": (Query(order=("-outcome",)), ["c", "B", "_e", "a", "d"]),
    "texts by their characters": (Query(order=("name",)), ["c", "a", "B", "d", "_e"]),
    "the first two": (Query(limit=2), ["B", "_e"]),
    "the next two": (Query(limit=2, offset=2), ["a", "c"]),
    "past the end": (Query(limit=2, offset=9), []),
    "none": (Query(limit=0), []),
    "all but the first": (Query(offset=1), ["_e", "a", "c", "d"]),
    "a page of some": (Query((("priority", (0, 1)),), ("-sequence",), 2, 1), ["a", "c"]),
}


@pytest.fixture
def stocked(ground: Ground) -> Ground:
    put(ground.store, workflow(auto_create_workspaces=True), *TASKS)
    put(ground.store, workflow("wf_2", auto_create_workspaces=False))
    return ground


def test_every_engine_selects_the_same_in_the_same_order(stocked: Ground) -> None:
    given = {known.id: known for known in TASKS}
    for name, (query, expected) in CASES.items():
        kept = stocked.store.run(ANNA, lambda unit, query=query: unit.select(Task, query))  # type: ignore[misc]
        assert [known.id for known in kept] == expected, name
        assert kept == [given[key] for key in expected], name


def test_every_engine_counts_what_fits_whatever_the_page(stocked: Ground) -> None:
    for name, (query, _) in CASES.items():
        whole = stocked.store.run(
            ANNA,
            lambda unit, query=query: unit.select(Task, Query(query.where)),  # type: ignore[misc]
        )
        counted = stocked.store.run(ANNA, lambda unit, query=query: unit.count(Task, query))  # type: ignore[misc]
        assert counted == len(whole), name


def test_flags_are_asked_for_as_what_they_are(stocked: Ground) -> None:
    def ids(query: Query) -> list[str]:
        return [known.id for known in stocked.store.run(ANNA, lambda unit: unit.select(Workflow, query))]

    assert ids(where(auto_create_workspaces=True)) == ["wf_1"]
    assert ids(where(auto_create_workspaces=False)) == ["wf_2"]
    assert ids(where(auto_create_workspaces=(True, False))) == ["wf_1", "wf_2"]


def test_json_cannot_be_asked_for(stocked: Ground) -> None:
    for query in (where(plan=None), Query(order=("plan",))):
        with pytest.raises(AssertionError, match="JSON"):
            stocked.store.run(ANNA, lambda unit, query=query: unit.select(Workflow, query))  # type: ignore[misc]


def test_a_row_comes_with_the_head_of_its_stream(stocked: Ground) -> None:
    with stocked.engine.reading() as reader:
        head = reader.head("wf_1")
        assert {known for _, known in reader.select(BY_NAME["task"], Query())} == {head}
        assert reader.get(BY_NAME["task"], "a") == (TASKS[0], head)


def test_queries_of_one_shape_share_their_text() -> None:
    columns = BY_NAME["task"].columns
    one, first = select_sql("task", columns, where(status="a", outcome=None))
    two, second = select_sql("task", columns, where(status="b", outcome=None))
    assert one == two
    assert (first, second) == (["a"], ["b"])
    assert select_sql("task", columns, where(status=("a", "b")))[0] != one


def test_values_never_become_text() -> None:
    hostile = "'; DROP TABLE task; --"
    text, parameters = select_sql("task", BY_NAME["task"].columns, where(status=hostile, outcome=(hostile, None)))
    assert "DROP" not in text
    assert parameters == [hostile, hostile]
    assert count_sql("task", where(status=hostile))[1] == [hostile]


def test_an_order_is_said_only_where_nothing_may_stand() -> None:
    columns = BY_NAME["task"].columns
    assert "NULLS" not in select_sql("task", columns, Query(order=("sequence", "-priority")))[0]
    assert select_sql("task", columns, Query(order=("outcome",)))[0].endswith("ORDER BY r.outcome NULLS FIRST, r.id")
    assert select_sql("task", columns, Query(order=("-outcome",)))[0].endswith("r.outcome DESC NULLS LAST, r.id")
