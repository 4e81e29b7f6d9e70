"""What every engine owes: records, streams, keys, conflicts, a quiet look, a turn, and news. Run on all three."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lease import FREE, Lease, acquire, holds
from handrail.domain.work.repository import Repository
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams, StoreBusy
from handrail.store.queries import Query
from handrail.store.tables import BY_NAME
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, Conflict, Head, KeyWrite, RowWrite, WriteSet
from tests.store.ground import Ground
from tests.store.process import elsewhere
from tests.store.records import ANNA, BEN, checkpoint, found, happened, lease, put, remove, repository, task, workflow


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs `work` in that many threads at once. An error in one of them is raised here."""
    together = threading.Barrier(count)
    failures: list[BaseException] = []

    def body(number: int) -> None:
        try:
            together.wait()
            work(number)
        except BaseException as failure:  # noqa: BLE001 - raised again below
            failures.append(failure)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was_put(ground: Ground) -> None:
    given = workflow(name="Größe \U0001f6e0 → \n\t'\"%s?", plan={"steps": [1, 2.5, None, True, "x"]}, source_ref="#1")
    put(ground.store, given)
    assert found(ground.store, Workflow, "wf_1") == given
    assert found(ground.another(), Workflow, "wf_1") == given


def test_a_record_that_was_never_put_is_not_there(ground: Ground) -> None:
    assert found(ground.store, Workflow, "wf_1") is None


def test_a_later_put_replaces_the_record(ground: Ground) -> None:
    put(ground.store, workflow())
    put(ground.store, workflow(status="ready", repository_path="/code", plan={}))
    assert found(ground.store, Workflow, "wf_1") == workflow(status="ready", repository_path="/code", plan={})


def test_a_removed_record_is_gone_and_can_be_put_again(ground: Ground) -> None:
    put(ground.store, workflow(), task())
    remove(ground.store, task())
    assert found(ground.store, Task, "task_1") is None
    assert found(ground.store, Workflow, "wf_1") == workflow()
    put(ground.store, task(name="again"))
    assert found(ground.store, Task, "task_1") == task(name="again")


def test_a_name_can_move_from_a_removed_record_to_a_new_one_in_one_unit(ground: Ground) -> None:
    put(ground.store, workflow(), task("task_1", name="build"))

    def work(unit: Unit) -> None:
        old = unit.get(Task, "task_1")
        assert old is not None
        unit.record("task.removed", removes=[old])
        unit.record("task.created", task("task_2", name="build"))

    ground.store.run(ANNA, work)
    assert found(ground.store, Task, "task_1") is None
    assert found(ground.store, Task, "task_2") == task("task_2", name="build")
    assert ground.store.verify() == []


@pytest.mark.parametrize("renamed_first", [True, False])
def test_a_name_can_move_from_a_renamed_record_to_a_new_one_in_one_unit(ground: Ground, renamed_first: bool) -> None:
    """In the order in which the unit says it: a name that is not free yet is nobody else's."""
    put(ground.store, workflow(), task("task_1", name="build"))

    def work(unit: Unit) -> None:
        steps = [("task.renamed", task("task_1", name="make")), ("task.created", task("task_2", name="build"))]
        for kind, record in steps if renamed_first else reversed(steps):
            unit.record(kind, record)

    if renamed_first:
        ground.store.run(ANNA, work)
    else:
        with pytest.raises(StoreBusy):
            ground.store.run(ANNA, work)
    expected = (
        (task("task_1", name="make"), task("task_2", name="build"))
        if renamed_first
        else (task("task_1", name="build"), None)
    )
    assert (found(ground.store, Task, "task_1"), found(ground.store, Task, "task_2")) == expected
    assert ground.store.verify() == []


def test_many_records_are_written_in_one_unit(ground: Ground) -> None:
    tasks = [task(f"task_{number:03}", sequence=number) for number in range(60)]
    put(ground.store, workflow(), *tasks)
    kept = ground.store.run(ANNA, lambda unit: unit.select(Task, Query(order=("sequence",))))
    assert kept == tasks
    assert ground.store.verify() == []


def test_a_text_with_a_nul_is_refused_and_nothing_is_written(ground: Ground) -> None:
    with pytest.raises(InvalidParams, match="NUL"):
        put(ground.store, workflow(name="a\0b"))
    assert ground.store.feed() == []
    put(ground.store, workflow(plan={"text": "a\0b"}))
    assert found(ground.store, Workflow, "wf_1") == workflow(plan={"text": "a\0b"})


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_counts_its_events_from_one_without_gaps(ground: Ground) -> None:
    for number in range(1, 6):
        put(ground.store, workflow(updated_at=number))
    put(ground.store, repository())
    assert [event.seq for event in ground.store.events("wf_1")] == [1, 2, 3, 4, 5]
    assert [event.seq for event in ground.store.events("wf_1", after=3)] == [4, 5]
    assert [event.seq for event in ground.store.events("wf_1", after=1, limit=2)] == [2, 3]
    assert ground.store.events("nothing") == []


def test_an_event_tells_who_did_what_when_through_which_channel(ground: Ground) -> None:
    put(ground.store, workflow(), kind="workflow.created", actor=BEN, because="asked")
    (event,) = ground.store.events("wf_1")
    assert (event.kind, event.actor, event.channel) == ("workflow.created", "ben", "cli")
    assert (event.at_ms, event.data) == (ground.clock.now_ms(), {"because": "asked"})
    assert [(change.table, change.key, change.before) for change in event.changes] == [("workflow", "wf_1", None)]


def test_the_feed_shows_all_streams_in_one_order(ground: Ground) -> None:
    for number in range(3):
        put(ground.store, workflow("wf_1", updated_at=number))
        put(ground.store, workflow("wf_2", updated_at=number))
    feed = ground.store.feed()
    assert [(event.stream, event.seq) for event in feed] == [
        (stream, seq) for seq in (1, 2, 3) for stream in ("wf_1", "wf_2")
    ]
    positions = [event.position for event in feed]
    assert positions == sorted(set(positions))
    assert ground.store.feed(after=positions[2]) == feed[3:]
    assert ground.store.feed(after=positions[1], limit=2) == feed[2:4]
    assert ground.store.feed(after=positions[-1]) == []


def test_the_newest_events_come_oldest_first(ground: Ground) -> None:
    for number in range(5):
        put(ground.store, workflow(updated_at=number), actor=BEN if number % 2 else ANNA)
    feed = ground.store.feed()
    assert ground.store.newest(2) == feed[-2:]
    assert ground.store.newest(10) == feed
    assert [event.seq for event in ground.store.newest(2, actor="ben")] == [2, 4]
    assert [event.seq for event in ground.store.newest(2, stream="wf_1")] == [4, 5]


def test_a_commit_returns_the_position_of_its_last_event(ground: Ground) -> None:
    position = ground.engine.commit(happened("a", NEW_STREAM, "one", "two"))
    feed = ground.store.feed()
    assert [event.position for event in feed][-1] == position
    with ground.engine.reading() as reader:
        assert reader.position() == position


def test_an_unchanged_stream_has_a_head_that_its_last_event_ends_at(ground: Ground) -> None:
    put(ground.store, workflow(), kind="one")
    put(ground.store, workflow(name="two"), kind="two")
    with ground.engine.reading() as reader:
        last = reader.events("wf_1", 0, 10)[-1]
        assert reader.head("wf_1") == Head(last.seq, last.hash)
        assert reader.head("nothing") == NEW_STREAM
        assert list(reader.streams()) == [("wf_1", Head(last.seq, last.hash))]


# -- conflicts --------------------------------------------------------------------------------------------------------


def test_a_write_after_another_one_to_the_same_stream_is_a_conflict(ground: Ground) -> None:
    ground.engine.commit(happened("a", NEW_STREAM, "first"))
    with pytest.raises(Conflict):
        ground.engine.commit(happened("a", NEW_STREAM, "second"))
    head = happened("a", NEW_STREAM, "first").streams[0].head
    ground.engine.commit(happened("a", head, "second"))
    with pytest.raises(Conflict):
        ground.engine.commit(happened("a", head, "third"))
    with pytest.raises(Conflict):
        ground.engine.commit(happened("b", head, "from nowhere"))
    assert [event.kind for event in ground.store.feed()] == ["first", "second"]


def test_the_same_count_with_another_hash_is_a_conflict(ground: Ground) -> None:
    ground.engine.commit(happened("a", NEW_STREAM, "first"))
    with pytest.raises(Conflict):
        ground.engine.commit(happened("a", Head(1, "0" * 32), "second"))


def test_the_same_count_with_another_hash_in_one_of_several_streams_is_a_conflict(ground: Ground) -> None:
    first, second = happened("a", NEW_STREAM, "first"), happened("b", NEW_STREAM, "first")
    ground.engine.commit(first)
    ground.engine.commit(second)
    with pytest.raises(Conflict):
        ground.engine.commit(
            WriteSet(
                (*happened("a", first.streams[0].head, "x").streams, *happened("b", Head(1, "0"), "x").streams), ()
            )
        )
    assert len(ground.store.feed()) == 2
    assert ground.store.verify() == []


@pytest.mark.parametrize("loser", ["a", "b", "c"])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_conflict_in_one_of_several_streams_takes_everything_back(ground: Ground, loser: str, keyed: bool) -> None:
    """`a` and `b` are there already, `c` is new."""
    heads = {"a": NEW_STREAM, "b": NEW_STREAM, "c": NEW_STREAM}
    for stream in ("a", "b"):
        first = happened(stream, NEW_STREAM, "first")
        ground.engine.commit(first)
        heads[stream] = first.streams[0].head
    ground.engine.commit(happened(loser, heads[loser], "the winner"))
    before = ground.store.feed()

    streams = tuple(happened(stream, head, "the loser").streams[0] for stream, head in heads.items())
    row = RowWrite("workflow", "wf_1", BY_NAME["workflow"].row_of(workflow()))
    key = KeyWrite("tool", "key", "hash", b"{}", 100, 1) if keyed else None
    with pytest.raises(Conflict):
        ground.engine.commit(WriteSet(streams, (row,), key))
    assert ground.store.feed() == before
    assert found(ground.store, Workflow, "wf_1") is None
    with ground.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 1) is None


def test_several_streams_are_written_together(ground: Ground) -> None:
    names = [f"stream_{number:02}" for number in range(12)]
    first = WriteSet(tuple(happened(name, NEW_STREAM, "first").streams[0] for name in names), ())
    ground.engine.commit(first)
    second = WriteSet(
        tuple(happened(stream.stream, stream.head, "second", "third").streams[0] for stream in first.streams), ()
    )
    ground.engine.commit(second)
    assert [[event.kind for event in ground.store.events(name)] for name in names] == [
        ["first", "second", "third"] for _ in names
    ]
    assert ground.store.verify() == []


@pytest.mark.parametrize(
    "rival",
    [task("task_2", name="build"), checkpoint("cp_2", task_id="task_1", sequence=1)],
    ids=["task name", "checkpoint number"],
)
def test_what_must_be_unique_within_a_workflow_is_a_conflict_the_second_time(ground: Ground, rival: Any) -> None:
    put(ground.store, workflow(), task("task_1", name="build"), checkpoint())
    with ground.engine.reading() as reader:
        head = reader.head("wf_1")
    table = BY_NAME["task" if isinstance(rival, Task) else "checkpoint"]
    again = happened("wf_1", head, "again")._replace(rows=(RowWrite(table.name, rival.id, table.row_of(rival)),))
    with pytest.raises(Conflict):
        ground.engine.commit(again)
    assert len(ground.store.events("wf_1")) == 1
    assert found(ground.store, type(rival), rival.id) is None


def test_a_path_belongs_to_one_repository(ground: Ground) -> None:
    put(ground.store, repository("repo_1", path="/code"))
    row = RowWrite("repository", "repo_2", BY_NAME["repository"].row_of(repository("repo_2", path="/code")))
    with pytest.raises(Conflict):
        ground.engine.commit(happened("repo_2", NEW_STREAM, "again")._replace(rows=(row,)))
    assert ground.store.events("repo_2") == []
    assert found(ground.store, Repository, "repo_2") is None


def test_what_is_unique_elsewhere_may_repeat(ground: Ground) -> None:
    put(ground.store, workflow("wf_1"), task("task_1", workflow_id="wf_1", name="build"))
    put(ground.store, workflow("wf_2"), task("task_2", workflow_id="wf_2", name="build"))
    put(ground.store, checkpoint("cp_1", task_id="task_1"), checkpoint("cp_2", task_id="task_2"))
    assert found(ground.store, Checkpoint, "cp_2") is not None


# -- idempotency keys -------------------------------------------------------------------------------------------------


def keep(ground: Ground, key: KeyWrite, *kinds: str, stream: str = "a") -> None:
    with ground.engine.reading() as reader:
        head = reader.head(stream)
    ground.engine.commit(happened(stream, head, *kinds)._replace(key=key))


def test_a_key_is_kept_with_its_unit_and_answers_until_it_expires(ground: Ground) -> None:
    keep(ground, KeyWrite("tool", "key", "hash", b'{"ok":1}', expires_ms=100, now_ms=1), "made")
    with ground.another().engine.reading() as reader:
        assert reader.key_answer("tool", "key", 99) == ("hash", b'{"ok":1}')
        assert reader.key_answer("tool", "key", 100) is None
        assert reader.key_answer("other", "key", 1) is None
        assert reader.key_answer("tool", "other", 1) is None


def test_a_key_that_is_taken_is_a_conflict_and_takes_its_unit_back(ground: Ground) -> None:
    keep(ground, KeyWrite("tool", "key", "hash", b"1", expires_ms=100, now_ms=1), "made")
    with pytest.raises(Conflict):
        keep(ground, KeyWrite("tool", "key", "hash", b"2", expires_ms=200, now_ms=99), "made again")
    with pytest.raises(Conflict):
        keep(ground, KeyWrite("tool", "key", "hash", b"2", expires_ms=200, now_ms=99), "made new", stream="b")
    assert [event.kind for event in ground.store.feed()] == ["made"]
    with ground.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 50) == ("hash", b"1")


def test_an_expired_key_makes_room(ground: Ground) -> None:
    keep(ground, KeyWrite("tool", "key", "hash", b"1", expires_ms=100, now_ms=1), "made")
    keep(ground, KeyWrite("tool", "key", "other", b"2", expires_ms=300, now_ms=100), "made again")
    with ground.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 101) == ("other", b"2")


def test_keys_whose_time_is_over_do_not_pile_up(ground: Ground) -> None:
    for number in range(6):
        keep(ground, KeyWrite("tool", f"old {number}", "hash", b"1", expires_ms=100, now_ms=1), "made")
    keep(ground, KeyWrite("tool", "living", "hash", b"1", expires_ms=900, now_ms=1), "made")
    for number in range(2):
        keep(ground, KeyWrite("tool", f"new {number}", "hash", b"1", expires_ms=900, now_ms=100), "made")
    with ground.engine.reading() as reader:
        assert [number for number in range(6) if reader.key_answer("tool", f"old {number}", 1) is not None] == []
        assert reader.key_answer("tool", "living", 100) == ("hash", b"1")


def test_a_key_can_be_kept_for_a_unit_that_changed_nothing(ground: Ground) -> None:
    ground.engine.commit(WriteSet((), (), KeyWrite("tool", "key", "hash", b"1", expires_ms=100, now_ms=1)))
    with pytest.raises(Conflict):
        ground.engine.commit(WriteSet((), (), KeyWrite("tool", "key", "hash", b"1", expires_ms=100, now_ms=1)))
    with ground.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 1) == ("hash", b"1")


def test_a_unit_keeps_its_answer_and_finds_it_again(ground: Ground) -> None:
    def work(unit: Unit) -> bytes:
        now = unit.now_ms()
        known = unit.key_answer("tool", "key")
        if known is not None:
            return known[1]
        unit.record("workflow.created", workflow(unit.new_id("wf")))
        unit.keep_answer(KeyWrite("tool", "key", "hash", b"made", now + 1000, now))
        return b"made"

    assert [ground.store.run(ANNA, work) for _ in range(3)] == [b"made"] * 3
    assert len(ground.store.feed()) == 1
    ground.clock.advance(1000)
    ground.store.run(ANNA, work)
    assert len(ground.store.feed()) == 1 + 1


# -- a look, and a turn -----------------------------------------------------------------------------------------------


def test_a_look_does_not_change_while_it_is_open(ground: Ground) -> None:
    put(ground.store, workflow())
    other = ground.another()
    table = BY_NAME["workflow"]
    with ground.engine.reading() as reader:
        before = reader.get(table, "wf_1")
        put(other, workflow(name="changed"))
        put(other, workflow("wf_2"))
        assert reader.get(table, "wf_1") == before
        assert reader.count(table, Query()) == 1
        assert len(reader.events("wf_1", 0, 10)) == 1
        assert reader.feed(0, 10) == reader.events("wf_1", 0, 10)
    assert found(ground.store, Workflow, "wf_1") == workflow(name="changed")


def test_many_threads_write_and_nothing_is_lost_or_doubled(ground: Ground) -> None:
    """More threads than are committed in one go."""
    in_threads(80, lambda number: put(ground.store, workflow(f"wf_{number}"), kind=f"kind_{number}"))
    feed = ground.store.feed()
    assert sorted(event.kind for event in feed) == sorted(f"kind_{number}" for number in range(80))
    assert ground.store.run(ANNA, lambda unit: unit.count(Workflow, Query())) == 80
    assert ground.store.verify() == []


def test_threads_that_count_on_one_record_all_get_their_turn(ground: Ground) -> None:
    put(ground.store, lease(fence=0))

    def count_one(unit: Unit) -> None:
        now = unit.get(Lease, "lease_1")
        assert now is not None
        unit.record("lease.counted", lease(fence=now.fence + 1))

    def count(_: int) -> None:
        for _ in range(5):
            ground.store.run(ANNA, count_one)

    in_threads(6, count)
    counted = found(ground.store, Lease, "lease_1")
    assert counted.fence == 30
    assert len(ground.store.events("wf_1")) == 31
    assert ground.store.verify() == []


def test_whoever_is_alone_keeps_other_writers_out(ground: Ground) -> None:
    other = ground.another()
    rival = threading.Thread(target=put, args=(other, workflow("wf_2")), daemon=True)
    with ground.engine.alone():
        rival.start()
        rival.join(0.2)
        assert rival.is_alive()
        put(ground.store, workflow("wf_1"))
    rival.join(10)
    assert not rival.is_alive()
    assert [event.stream for event in ground.store.feed()] == ["wf_1", "wf_2"]


def test_being_alone_without_writing_lets_the_others_go_on(ground: Ground) -> None:
    with ground.engine.alone(), ground.engine.alone():
        assert found(ground.store, Workflow, "wf_1") is None
    put(ground.another(), workflow())
    assert found(ground.store, Workflow, "wf_1") == workflow()


def test_a_holder_whose_lease_ran_out_is_refused_by_its_fence(ground: Ground) -> None:
    """Leases on top of the store: the first holder comes back late and must not write."""

    def claim(holder: str) -> Callable[[Unit], int]:
        def work(unit: Unit) -> int:
            known = unit.get(Lease, "lease_1")
            taken = acquire(known.holding if known else FREE, holder, unit.now_ms(), 1000)
            assert taken is not None
            unit.record("lease.taken", (known or lease()).with_holding(taken, unit.now_ms()))
            return taken.fence

        return work

    def write(holder: str, fence: int, name: str) -> Callable[[Unit], bool]:
        def work(unit: Unit) -> bool:
            known, thing = unit.get(Lease, "lease_1"), unit.get(Task, "task_1")
            assert known is not None
            assert thing is not None
            if not holds(known.holding, holder, fence, unit.now_ms()):
                return False
            unit.record("task.written", task(error=name))
            return True

        return work

    put(ground.store, workflow(), task())
    late, other = ground.store, ground.another()
    first = late.run(ANNA, claim("anna"))
    ground.clock.advance(1001)
    second = other.run(BEN, claim("ben"))
    assert second == first + 1
    assert other.run(BEN, write("ben", second, "ben's"))
    assert not late.run(ANNA, write("anna", first, "anna's"))
    assert not late.run(ANNA, write("ben", first, "under an old fence"))
    assert found(late, Task, "task_1") == task(error="ben's")


# -- news -------------------------------------------------------------------------------------------------------------


def test_there_is_news_at_once_when_something_has_happened_already(ground: Ground) -> None:
    put(ground.store, workflow())
    assert ground.store.wait(0, 5)


def test_waiting_ends_when_the_time_is_up(ground: Ground) -> None:
    put(ground.store, workflow())
    position = ground.store.feed()[-1].position
    assert not ground.store.wait(position, 0.05)
    assert not ground.store.wait(position, 0)


def test_waiting_ends_when_the_caller_gives_up(ground: Ground) -> None:
    asked = threading.Event()

    def cancelled() -> bool:
        asked.set()
        return True

    assert not ground.store.wait(0, 60, cancelled)
    assert asked.is_set()


def test_a_waiter_is_woken_by_another_thread(ground: Ground) -> None:
    put(ground.store, workflow())
    position = ground.store.feed()[-1].position
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(ground.store.wait(position, 30)))
    waiter.start()
    put(ground.another(), workflow(name="news"))
    waiter.join(30)
    assert woken == [True]
    assert [event.seq for event in ground.store.feed(after=position)] == [2]


def test_a_waiter_is_woken_by_another_process(lasting: Ground) -> None:
    with elsewhere(lasting.address, "put", "wf_9") as process:
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(lasting.store.wait(0, 30)))
        waiter.start()
        process.go()
        waiter.join(30)
        assert process.answer() == "done"
    assert woken == [True]
    assert [event.stream for event in lasting.store.feed()] == ["wf_9"]
