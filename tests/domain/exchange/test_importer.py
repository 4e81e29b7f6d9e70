"""Documents become rows and come out again; counters, ledger and undo are right all the while."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange import jsonl
from handrail.domain.exchange.importer import lay_new, same_source, what_is_new
from handrail.domain.exchange.normalize import DONE, FAILED, fitted
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote, TaskOrigin
from handrail.domain.exchange.validate import first_batch, oddities
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import InvalidPlan, WorkflowClosed
from handrail.kernel.ids import CountingIds
from handrail.kernel.records import where
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from tests.domain.exchange.documents import NOW, bare, documents
from tests.domain.exchange.laid import SOURCE, TESTER, check_counters, lay, more, take


def new_store(engine: Engine | None = None) -> Store:
    return Store(engine or MemoryEngine(), clock=FixedClock(NOW), ids=CountingIds())


def plan(*tasks: PlannedTask, **whole: object) -> PlanDocument:
    numbered = [msgspec.structs.replace(task, sequence=number) for number, task in enumerate(tasks, 1)]
    return msgspec.structs.replace(PlanDocument(name="Plan", tasks=numbered), **whole)


def task(name: str, status: str = "pending", **more: object) -> PlannedTask:
    return msgspec.structs.replace(PlannedTask(name=name, status=status), **more)


# -- there and back ---------------------------------------------------------------------------------------------------


@given(documents(), st.integers(1, 4))
def test_what_is_laid_in_is_taken_out_again(document: PlanDocument, most: int) -> None:
    store = new_store()
    laid = lay(store, document, most)
    taken = take(store, laid.workflow.id)
    assert taken == document
    if document.tasks:
        check_counters(store, laid.workflow.id, document)
    assert store.verify() == []


@given(documents())
@settings(max_examples=15)
def test_it_is_the_same_on_sqlite(document: PlanDocument) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = SqliteEngine(Path(folder) / "handrail.db", version="0", durable=False)
        try:
            store = new_store(engine)
            laid = lay(store, document)
            assert take(store, laid.workflow.id) == document
            assert store.verify() == []
        finally:
            engine.close()


@given(documents())
def test_what_a_source_leaves_out_is_filled_in_once(document: PlanDocument) -> None:
    first, second = new_store(), new_store()
    once = take(first, lay(first, bare(document)).workflow.id)
    again = take(second, lay(second, once).workflow.id)
    assert jsonl.write(again) == jsonl.write(once)
    assert [one.name for one in once.tasks] == [one.name for one in document.tasks]
    assert [one.status for one in once.tasks] == [one.status for one in document.tasks]


@given(documents())
def test_laying_again_adds_nothing(document: PlanDocument) -> None:
    store = new_store()
    open_one = msgspec.structs.replace(document, status="in_progress")
    laid = lay(store, open_one)
    again = more(store, laid.workflow.id, open_one)
    assert (again.added, again.left) == (0, 0)
    assert take(store, laid.workflow.id) == open_one


# -- states as the source says them -----------------------------------------------------------------------------------


def test_states_that_no_plan_comes_to_by_itself_are_kept() -> None:
    document = plan(
        task("whole", "completed"),
        task("part", parent="whole"),
        task("first"),
        task("early", "completed", depends_on=["first"]),
        task("begun", "in_progress", depends_on=["first"]),
    )
    store = new_store()
    laid = lay(store, document)
    check_counters(store, laid.workflow.id, document)
    assert {one.name: one.status for one in take(store, laid.workflow.id).tasks} == {
        "whole": "completed",
        "part": "pending",
        "first": "pending",
        "early": "completed",
        "begun": "in_progress",
    }
    assert oddities(document.tasks) == [
        "completed before something they depend on: early",
        "started before something they depend on was done: begun",
        "finished, but with open parts: whole",
    ]


def test_what_states_need_is_said() -> None:
    fit = fitted(plan(task("a", "completed"), task("b", "failed"), task("c", "in_progress"), task("d", "skipped")), NOW)
    done, failed, begun, skipped = fit.tasks
    assert (done.outcome, done.finished_at) == (DONE, None), "nobody knows when"
    assert (failed.error, failed.outcome) == (FAILED, None)
    assert begun.started_at == NOW
    assert skipped.outcome is None
    assert fit.status == "in_progress"


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([], "planning"),
        (["pending", "pending"], "ready"),
        (["pending", "completed"], "in_progress"),
        (["paused"], "in_progress"),
        (["completed", "skipped"], "completed"),
    ],
)
def test_a_workflow_stands_as_its_tasks_say(states: list[str], whole: str) -> None:
    document = plan(*(task(f"t{number}", state) for number, state in enumerate(states)))
    assert fitted(document, NOW).status == whole


def test_a_workflow_is_not_completed_while_tasks_are_open() -> None:
    fit = fitted(plan(task("a"), status="completed"), NOW)
    assert fit.status == "in_progress"
    assert "tasks are open" in fit.remarks[0]


def test_no_time_lies_in_the_future() -> None:
    later = NOW + 5
    note = PlanNote(summary="s", at=later)
    fit = fitted(plan(task("a", "completed", created_at=later, finished_at=later, notes=[note])), NOW)
    assert (fit.tasks[0].created_at, fit.tasks[0].finished_at, fit.tasks[0].notes[0].at) == (NOW, None, NOW)
    assert "in the future" in fit.remarks[0]


def test_texts_that_are_too_long_are_cut_and_kept_beside() -> None:
    long = "x" * 200_001
    fit = fitted(plan(task("a", description=long, notes=[PlanNote(summary="y" * 5000)])), NOW)
    assert len(fit.tasks[0].description) == 200_000
    assert fit.tasks[0].origin == TaskOrigin(system="handrail", fields={"description": long})
    assert fit.tasks[0].notes[0].detail == {"text": "y" * 5000}
    assert "cut" in fit.remarks[0]
    assert fitted(fit, NOW) == fit, "and it is then as it is kept"


def test_whatever_is_cut_of_a_task_is_kept_whole() -> None:
    long = "x" * 200_001
    texts = {"description": long, "outcome": f"{long}y", "error": f"{long}z"}
    taken = TaskOrigin(system="beads", id="bd-1", fields={"outcome": "another", "body": long})
    fit = fitted(plan(task("a", "failed", **texts), task("b", "failed", **texts, origin=taken)), NOW)
    first, second = (one.origin.fields for one in fit.tasks if one.origin is not None)
    assert first == texts
    assert second == {"outcome": "another", "body": long, "text": f"{long}y", "error": f"{long}z"}
    assert fitted(fit, NOW) == fit


def test_a_long_name_of_the_whole_is_kept_in_its_description() -> None:
    fit = fitted(plan(task("a"), name="n" * 201, description="about it"), NOW)
    assert (fit.name, fit.description) == ("n" * 199 + "…", "n" * 201 + "\n\nabout it")
    assert fit.remarks == ["texts that are too long were cut: the name of the whole, kept in its description"]
    assert fitted(fit, NOW) == fit


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (task("a", "nonsense"), "it cannot be nonsense"),
        (task("x" * 201), "length <= 200"),
        (task(""), "length >= 1"),
        (task(" a"), "blank"),
        (task("a\0"), "NUL"),
        (task("a", priority=5000), "priority"),
        (task("a", notes=[PlanNote(type="poem", summary="s")]), "no note is a poem"),
    ],
)
def test_what_no_plan_can_have_is_refused(wrong: PlannedTask, said: str) -> None:
    with pytest.raises(InvalidPlan, match=said):
        fitted(plan(wrong), NOW)


# -- what cannot end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "hint"),
    [
        ([task("a", depends_on=["b"]), task("b", depends_on=["a"])], '"a" needs "b"'),
        ([task("w", depends_on=["x"]), task("p", parent="w"), task("x", depends_on=["p"])], '"x" needs "p"'),
        ([task("w", depends_on=["p"]), task("p", parent="w")], '"w", which "p" is part of, needs "p"'),
        ([task("w", "in_progress"), task("p", parent="w", depends_on=["w"])], '"p" is part of "w"'),
    ],
)
def test_a_circle_is_refused_with_what_to_take_out(tasks: list[PlannedTask], hint: str) -> None:
    store = new_store()
    with pytest.raises(InvalidPlan) as refused:
        lay(store, plan(*tasks))
    assert "wait for each other" in refused.value.message
    assert hint in refused.value.hint
    assert refused.value.details["cycle"][0] == refused.value.details["cycle"][-1]
    assert store.position() == 0


def test_a_circle_that_is_over_is_history() -> None:
    document = plan(task("a", "completed", depends_on=["b"]), task("b", "skipped", depends_on=["a"]))
    store = new_store()
    laid = lay(store, document, 1)
    check_counters(store, laid.workflow.id, document)


def test_a_circle_of_three_is_laid_at_once() -> None:
    circle = [task("a", "skipped", depends_on=["b"]), task("b", "skipped", depends_on=["c"])]
    circle += [task("c", "skipped", depends_on=["a"]), task("d")]
    assert [one.name for one in first_batch(circle, 1)] == ["a", "b", "c"]


def test_what_is_under_way_waits_for_nothing_any_more() -> None:
    document = plan(task("a", "in_progress", depends_on=["b"]), task("b", depends_on=["a"]))
    store = new_store()
    check_counters(store, lay(store, document).workflow.id, document)


def test_tasks_within_each_other_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="part of each other: a → b → a"):
        lay(new_store(), plan(task("a", "completed", parent="b"), task("b", "completed", parent="a")))


def test_hostile_depth_is_refused() -> None:
    deep = [task(f"t{number}", parent=f"t{number - 1}" if number else None) for number in range(150)]
    with pytest.raises(InvalidPlan, match="more than 100 times"):
        lay(new_store(), plan(*deep))


# -- adding to what is there ------------------------------------------------------------------------------------------


def from_beads(name: str, key: str, status: str = "pending", **more: object) -> PlannedTask:
    return msgspec.structs.replace(
        task(name, status, **more), origin=TaskOrigin(system="beads", id=key, source=".beads/issues.jsonl")
    )


def test_the_source_s_id_says_what_is_known() -> None:
    store = new_store()
    laid = lay(store, plan(from_beads("a", "bd-1"), task("plain")))
    document = plan(
        from_beads("a, renamed there", "bd-1", status="completed"),
        from_beads("a", "bd-2", depends_on=["a, renamed there"]),
        from_beads("new", "bd-3", parent="a"),
        task("plain"),
    )
    again = more(store, laid.workflow.id, document)
    assert (again.added, again.known) == (2, 2)
    found = {one.name: one for one in take(store, laid.workflow.id).tasks}
    assert set(found) == {"a", "plain", "a (bd-2)", "new"}
    assert found["a"].status == "pending", "what is known is left as it is"
    assert found["a (bd-2)"].depends_on == ["a"]
    assert found["new"].parent == "a (bd-2)"
    assert store.verify() == []


def test_new_and_old_must_not_wait_for_each_other() -> None:
    store = new_store()
    laid = lay(store, plan(task("whole"), task("after", depends_on=["whole"])))
    document = plan(task("whole"), task("after"), task("part", parent="whole", depends_on=["after"]))
    with pytest.raises(InvalidPlan, match="wait for each other"):
        more(store, laid.workflow.id, document)


def test_nothing_is_added_to_what_has_ended() -> None:
    store = new_store()
    laid = lay(store, plan(task("a", "completed")))
    with pytest.raises(WorkflowClosed):
        more(store, laid.workflow.id, plan(task("b")))


def test_an_interrupted_import_is_finished_by_the_next() -> None:
    tasks = [task(f"t{number}", depends_on=[f"t{number + 1}"] if number < 9 else []) for number in range(10)]
    document = fitted(plan(*tasks), NOW)
    store = new_store()
    first = store.run(TESTER, lambda unit: lay_new(unit, document, SOURCE, None, 4))
    assert (first.added, first.left, first.workflow.status) == (4, 6, "planning")
    assert {one.name for one in take(store, first.workflow.id).tasks} == {"t9", "t8", "t7", "t6"}
    rest = more(store, first.workflow.id, document)
    assert (rest.added, rest.known, rest.left, rest.workflow.status) == (6, 4, 0, "ready")
    assert take(store, first.workflow.id) == msgspec.structs.replace(document, remarks=[])


@pytest.mark.parametrize("most", [2, 100])
def test_another_file_s_tasks_come_after_those_that_are_here(most: int) -> None:
    here = plan(task("a"), task("b"), source_ref="here.md")
    there = plan(task("c"), task("d", depends_on=["e"]), task("e"), source_ref="there.md")
    store = new_store()
    added = lay(store, here)
    while added.left or added.known == 0:
        added = more(store, added.workflow.id, there, most)
    order = [(one.name, one.sequence) for one in take(store, added.workflow.id).tasks]
    assert order == [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]


def test_what_is_new_in_the_same_file_comes_where_it_stands_there() -> None:
    store = new_store()
    laid = lay(store, plan(task("a"), task("c"), source_ref="here.md"))
    more(store, laid.workflow.id, plan(task("a"), task("b"), task("c"), source_ref="here.md"))
    assert [one.name for one in take(store, laid.workflow.id).tasks] == ["a", "b", "c"]


def test_the_same_source_is_known_again() -> None:
    store = new_store()
    document = plan(task("a"), source_ref="todo.md")
    laid = lay(store, document)
    unnamed = lay(store, plan(task("a"), name="Other", created_at=5))

    def same(one: PlanDocument, repository: str | None = "/srv/shop") -> list[str]:
        found = store.run(TESTER, lambda unit: same_source(unit, fitted(one, NOW), repository))
        return [workflow.id for workflow in found]

    assert same(document) == [laid.workflow.id]
    assert same(document, "/elsewhere") == []
    assert same(msgspec.structs.replace(document, source_ref="other.md")) == []
    assert same(plan(name="Other", created_at=5)) == [unnamed.workflow.id]
    assert same(plan(name="Other", created_at=6)) == []


# -- the ledger -------------------------------------------------------------------------------------------------------


def test_one_event_says_what_was_taken_and_undo_takes_it_back() -> None:
    store = new_store()
    laid = lay(store, plan(task("a", "completed", notes=[PlanNote(summary="s")]), task("b", depends_on=["a"])))
    events = store.events(laid.workflow.id)
    assert [event.kind for event in events] == ["workflow.imported"]
    assert events[0].data == {"file": "plan.jsonl", "format": "handrail", "tasks": 2}
    rows = store.run(TESTER, lambda unit: unit.select(Task, where(workflow_id=laid.workflow.id)))
    assert {row.name: row.checkpoints for row in rows} == {"a": 1, "b": 0}
    store.undo(TESTER)
    assert store.run(TESTER, lambda unit: unit.get(Workflow, laid.workflow.id)) is None
    assert store.run(TESTER, lambda unit: unit.select(Task, where(workflow_id=laid.workflow.id))) == []
    assert store.verify() == []


def test_undo_of_an_addition_leaves_what_was_there() -> None:
    store = new_store()
    laid = lay(store, plan(task("a")))
    before = take(store, laid.workflow.id)
    more(store, laid.workflow.id, plan(task("a"), task("b", depends_on=["a"])))
    store.undo(TESTER)
    assert take(store, laid.workflow.id) == before
    check_counters(store, laid.workflow.id, before)
    assert store.run(TESTER, lambda unit: what_is_new(unit, laid.workflow, before)).tasks == []
