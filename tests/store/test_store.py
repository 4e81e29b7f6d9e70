"""The store over any engine: units run again when they lose, the last write is taken back, damage is found."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.work.lease import Lease
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NothingToUndo, StoreBusy, StoreUnusable
from handrail.store.queries import Query, where
from handrail.store.store import POLITE_TRIES, TRIES, UNDO
from handrail.store.unit import Unit
from tests.store.ground import Ground
from tests.store.records import ANNA, BEN, checkpoint, found, lease, put, remove, repository, task, workflow

# -- running ----------------------------------------------------------------------------------------------------------


def test_a_unit_that_only_reads_writes_nothing(ground: Ground) -> None:
    put(ground.store, workflow())
    assert ground.store.run(ANNA, lambda unit: unit.count(Workflow, Query())) == 1
    assert len(ground.store.feed()) == 1


def test_a_unit_that_fails_writes_nothing(ground: Ground) -> None:
    def work(unit: Unit) -> None:
        unit.record("workflow.created", workflow())
        raise StoreUnusable("a refusal in the middle")

    with pytest.raises(StoreUnusable, match="in the middle"):
        ground.store.run(ANNA, work)
    assert ground.store.feed() == []
    assert found(ground.store, Workflow, "wf_1") is None


def test_a_unit_that_lost_runs_again_on_what_the_winner_wrote(ground: Ground) -> None:
    put(ground.store, lease(fence=0))
    other = ground.another()
    seen: list[int] = []

    def work(unit: Unit) -> int:
        known = unit.get(Lease, "lease_1")
        assert known is not None
        seen.append(known.fence)
        if len(seen) <= POLITE_TRIES:
            put(other, lease(fence=known.fence + 10))
        unit.record("lease.counted", lease(fence=known.fence + 1))
        return known.fence + 1

    assert ground.store.run(ANNA, work) == 11
    assert seen == [0, 10]
    assert found(ground.store, Lease, "lease_1") == lease(fence=11)


def test_a_unit_that_lost_too_often_gets_the_store_to_itself(ground: Ground) -> None:
    put(ground.store, lease(fence=0))
    other = ground.another()
    runs = 0

    def work(unit: Unit) -> None:
        nonlocal runs
        runs += 1
        known = unit.get(Lease, "lease_1")
        assert known is not None
        if runs <= POLITE_TRIES:
            put(other, lease(fence=known.fence + 1))
        unit.record("lease.counted", lease(fence=100))

    ground.store.run(ANNA, work)
    assert runs == POLITE_TRIES + 1
    assert found(ground.store, Lease, "lease_1") == lease(fence=100)


def test_a_unit_that_can_never_be_written_is_given_up_with_a_refusal(ground: Ground) -> None:
    put(ground.store, repository("repo_1", path="/code"))
    runs = 0

    def work(unit: Unit) -> None:
        nonlocal runs
        runs += 1
        unit.record("repository.registered", repository("repo_2", path="/code"))

    with pytest.raises(StoreBusy, match="too many others") as refused:
        ground.store.run(ANNA, work)
    assert runs == TRIES
    assert "nothing was written" in refused.value.hint
    assert len(ground.store.feed()) == 1
    put(ground.store, repository("repo_3"))


def test_something_is_added_to_a_stream_that_the_unit_has_not_read(ground: Ground) -> None:
    put(ground.store, workflow())
    ground.store.run(ANNA, lambda unit: unit.record("lease.made", lease()))
    ground.store.run(ANNA, lambda unit: unit.record("task.made", task()))
    assert [event.seq for event in ground.store.events("wf_1")] == [1, 2, 3]


# -- taking back ------------------------------------------------------------------------------------------------------


def test_a_creation_is_taken_back(ground: Ground) -> None:
    put(ground.store, workflow())
    undone = ground.store.undo(ANNA)
    assert undone.seq == 1
    assert found(ground.store, Workflow, "wf_1") is None
    assert [event.kind for event in ground.store.events("wf_1")] == ["thing.put", UNDO]
    assert ground.store.events("wf_1")[-1].data == {"undone": 1, "kind": "thing.put"}
    assert ground.store.verify() == []


def test_a_change_is_taken_back_to_what_was_before(ground: Ground) -> None:
    before = workflow(plan={"steps": [1]}, repository_path="/code")
    put(ground.store, before, task(unmet=2))
    put(ground.store, workflow(status="ready", plan={"steps": [1, 2]}), task(unmet=1, outcome="x"), checkpoint())
    ground.store.undo(ANNA)
    assert found(ground.store, Workflow, "wf_1") == before
    assert found(ground.store, Task, "task_1") == task(unmet=2)
    assert ground.store.run(ANNA, lambda unit: unit.select(Task, where(unmet=2))) == [task(unmet=2)]
    assert ground.store.verify() == []


def test_a_removal_is_taken_back(ground: Ground) -> None:
    put(ground.store, workflow(), task(context={"a": 1}))
    remove(ground.store, task(context={"a": 1}))
    ground.store.undo(ANNA)
    assert found(ground.store, Task, "task_1") == task(context={"a": 1})
    assert ground.store.verify() == []


def test_what_others_have_built_on_is_not_taken_back(ground: Ground) -> None:
    put(ground.store, workflow(), actor=ANNA)
    put(ground.store, workflow(name="Ben's"), actor=BEN)
    with pytest.raises(NothingToUndo, match="not the last write") as refused:
        ground.store.undo(ANNA)
    assert refused.value.hint.startswith("1 later event")
    assert len(ground.store.feed()) == 2


def test_each_actor_takes_back_its_own(ground: Ground) -> None:
    put(ground.store, workflow("wf_1"), actor=ANNA)
    put(ground.store, workflow("wf_2"), actor=BEN)
    assert ground.store.undo(ANNA).stream == "wf_1"
    assert found(ground.store, Workflow, "wf_1") is None
    assert found(ground.store, Workflow, "wf_2") is not None


def test_taken_back_again_it_goes_one_step_further(ground: Ground) -> None:
    put(ground.store, workflow("wf_2"))
    put(ground.store, workflow())
    put(ground.store, workflow(name="second"))
    assert [(one.stream, one.seq) for one in (ground.store.undo(ANNA) for _ in range(3))] == [
        ("wf_1", 2),
        ("wf_1", 1),
        ("wf_2", 1),
    ]
    with pytest.raises(NothingToUndo, match="all taken back"):
        ground.store.undo(ANNA)
    assert found(ground.store, Workflow, "wf_1") is None
    assert found(ground.store, Workflow, "wf_2") is None
    assert ground.store.verify() == []


def test_what_another_took_back_stands_on_nothing(ground: Ground) -> None:
    put(ground.store, workflow(), actor=ANNA)
    put(ground.store, workflow(name="Ben's"), actor=BEN)
    ground.store.undo(BEN)
    assert ground.store.undo(ANNA).seq == 1
    assert found(ground.store, Workflow, "wf_1") is None
    assert ground.store.verify() == []


def test_what_was_written_after_a_taking_back_still_counts(ground: Ground) -> None:
    put(ground.store, workflow(), actor=ANNA)
    put(ground.store, workflow(name="second"), actor=ANNA)
    ground.store.undo(ANNA)
    put(ground.store, workflow(name="Ben's"), actor=BEN)
    with pytest.raises(NothingToUndo, match="not the last write"):
        ground.store.undo(ANNA)


def test_who_has_written_nothing_has_nothing_to_take_back(ground: Ground) -> None:
    with pytest.raises(NothingToUndo, match="anna"):
        ground.store.undo(ANNA)
    put(ground.store, workflow())
    ground.store.undo(ANNA)
    with pytest.raises(NothingToUndo, match="anna"):
        ground.store.undo(ANNA)


# -- verification -----------------------------------------------------------------------------------------------------


def filled(ground: Ground) -> Ground:
    put(ground.store, workflow(), task("task_1"), task("task_2", sequence=2))
    put(ground.store, task("task_1", status="in_progress", context={"a": [1, None]}))
    put(ground.store, task("task_2", status="skipped"))
    put(ground.store, repository())
    return ground


def test_a_sound_store_has_no_problems(ground: Ground) -> None:
    filled(ground)
    assert ground.store.verify() == []
    assert ground.engine.check() == []


def test_an_empty_store_has_no_problems(ground: Ground) -> None:
    assert ground.store.verify() == []


DAMAGE: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "another body": (
        "UPDATE event SET body = ? WHERE stream = ? AND seq = 2",
        (b'[{},[["task","task_1",{"status":"completed"},{"status":"pending"}]]]', "wf_1"),
        "wf_1: event 2 was changed after it was written",
    ),
    "a body that is no JSON": (
        "UPDATE event SET body = ? WHERE stream = ? AND seq = 2",
        (b"\xff{", "wf_1"),
        "wf_1: event 2 cannot be read back",
    ),
    "a body of another shape": (
        "UPDATE event SET body = ? WHERE stream = ? AND seq = 2",
        (b"[1]", "wf_1"),
        "wf_1: event 2 cannot be read back",
    ),
    "another kind": (
        "UPDATE event SET kind = ? WHERE stream = ? AND seq = 2",
        ("nothing.happened", "wf_1"),
        "wf_1: event 2 was changed after it was written",
    ),
    "another actor": (
        "UPDATE event SET actor = ? WHERE stream = ? AND seq = 1",
        ("mallory", "wf_1"),
        "wf_1: event 1 was changed after it was written",
    ),
    "another time": (
        "UPDATE event SET at_ms = at_ms + 1 WHERE stream = ? AND seq = 3",
        ("wf_1",),
        "wf_1: event 3 was changed after it was written",
    ),
    "another hash": (
        "UPDATE event SET hash = ? WHERE stream = ? AND seq = 3",
        ("0" * 32, "wf_1"),
        "wf_1: event 3 was changed after it was written",
    ),
    "another order": (
        "UPDATE event SET position = -5 WHERE stream = ? AND seq = 3",
        ("wf_1",),
        "wf_1: event 3 stands before the one it follows",
    ),
    "a missing first event": (
        "DELETE FROM event WHERE stream = ? AND seq = 1",
        ("wf_1",),
        "wf_1: event 1 is missing",
    ),
    "a missing event in the middle": (
        "DELETE FROM event WHERE stream = ? AND seq = 2",
        ("wf_1",),
        "wf_1: event 2 is missing",
    ),
    "a missing last event": (
        "DELETE FROM event WHERE stream = ? AND seq = 3",
        ("wf_1",),
        "wf_1: its head says 3 events, the ledger has 2",
    ),
    "a head that counts too far": (
        "UPDATE stream SET head = 9 WHERE name = ?",
        ("wf_1",),
        "wf_1: its head says 9 events, the ledger has 3",
    ),
    "a head with another hash": (
        "UPDATE stream SET hash = ? WHERE name = ?",
        ("0" * 32, "wf_1"),
        "wf_1: its head says 3 events, the ledger has 3",
    ),
    "a head that is gone": (
        "DELETE FROM stream WHERE name = ?",
        ("repo_1",),
        "repo_1: its head says 0 events, the ledger has 1",
    ),
    "a changed row": (
        "UPDATE task SET status = 'completed', unmet = 7 WHERE id = ?",
        ("task_1",),
        "task task_1: ledger and table disagree about status, unmet",
    ),
    "changed JSON in a row": (
        "UPDATE task SET context = ? WHERE id = ?",
        ('{"a":[1,2]}', "task_1"),
        "task task_1: ledger and table disagree about context",
    ),
    "broken JSON in a row": (
        "UPDATE task SET context = ? WHERE id = ?",
        ('{"a":', "task_2"),
        "task task_2: its row cannot be read back",
    ),
    "a row in another stream": (
        "UPDATE task SET stream = ? WHERE id = ?",
        ("repo_1", "task_2"),
        "task task_2: its row stands in another stream than it should",
    ),
    "a missing row": (
        "DELETE FROM task WHERE id = ?",
        ("task_2",),
        "task task_2: the ledger has it, the table has no row",
    ),
    "an extra row": (
        "INSERT INTO repository (id, path, name, created_at, stream) VALUES (?, '/x', 'x', 1, 'repo_1')",
        ("repo_9",),
        "repository repo_9: the table has a row that no event explains",
    ),
    "an extra row of no stream": (
        "INSERT INTO repository (id, path, name, created_at, stream) VALUES (?, '/x', 'x', 1, 'nowhere')",
        ("repo_9",),
        "repository repo_9: the table has a row that no event explains",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_found_and_named(lasting: Ground, damage: tuple[str, tuple[Any, ...], str]) -> None:
    statement, parameters, problem = damage
    filled(lasting).tamper(statement, *parameters)
    assert problem in lasting.store.verify()


def test_damage_in_one_place_does_not_hide_damage_in_another(lasting: Ground) -> None:
    filled(lasting)
    lasting.tamper("UPDATE event SET body = ? WHERE stream = 'wf_1' AND seq = 1", b"not json")
    lasting.tamper("UPDATE event SET body = ? WHERE stream = 'wf_1' AND seq = 3", b"not json")
    lasting.tamper("UPDATE task SET plan = 'not json' WHERE id = 'task_1'")
    lasting.tamper("UPDATE repository SET name = 'other'")
    problems = lasting.store.verify()
    for problem in (
        "wf_1: event 1 cannot be read back",
        "wf_1: event 3 cannot be read back",
        "task task_1: its row cannot be read back",
        "repository repo_1: ledger and table disagree about name",
    ):
        assert problem in problems


def test_what_cannot_be_read_back_is_a_refusal_that_names_it(lasting: Ground) -> None:
    filled(lasting)
    lasting.tamper("UPDATE event SET body = ? WHERE stream = 'wf_1' AND seq = 2", b"not json")
    lasting.tamper("UPDATE task SET plan = 'not json' WHERE id = 'task_1'")
    with pytest.raises(StoreUnusable, match="wf_1: event 2 cannot be read back") as refused:
        lasting.store.events("wf_1")
    assert "handrail db verify" in refused.value.hint
    with pytest.raises(StoreUnusable, match="task task_1: its row cannot be read back"):
        found(lasting.store, Task, "task_1")
    assert found(lasting.store, Task, "task_2") is not None


def test_damage_in_a_memory_store_is_found_too() -> None:
    from tests.store.ground import memory_ground

    ground = filled(memory_ground())
    state = ground.engine._state  # type: ignore[attr-defined]
    state.rows["task"]["task_1"] = task("task_1", status="failed")
    del state.events[1]
    problems = ground.store.verify()
    assert "wf_1: event 2 is missing" in problems
    assert any(problem.startswith("task task_1: ledger and table disagree") for problem in problems)


def test_verify_tells_how_far_it_has_come(ground: Ground) -> None:
    put(ground.store, workflow())

    def work(unit: Unit) -> None:
        for number in range(1000):
            unit.record("lease.seen", lease(fence=number))

    ground.store.run(ANNA, work)
    told: list[int] = []
    assert ground.store.verify(told.append) == []
    assert told == [1000]
