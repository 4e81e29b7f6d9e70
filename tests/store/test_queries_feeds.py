"""The feed with filters: what every engine gives is what a plain look at everything gives, on any page."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import EVERYTHING, Event, NewEvent, Only
from handrail.store import sqlite_reads
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from handrail.store.queries import asked
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.store.writes import NEW_STREAM, Head, WriteSet, chained
from tests.store.ground import VERSION, Ground
from tests.store.records import ANNA, BEN, found, happened, put, repository, task, workflow
from tests.store.server import empty
from tests.store.test_store_agreement import THOROUGH

LAST, BEFORE_SURROGATES = "\U0010ffff", "\ud7ff"
STREAMS = ["wf_1", "wf_2", "wf_", "bb:x", "Größe"]
ACTORS = ["anna", "ben", "Anna", ""]
KINDS = ["task.claimed", "task.claim_ended", "task.", "task", "tasks.x", "Task.x", "bb.set", "bb.set.again", "ä.ö", ""]
KINDS += [f"{LAST}.x", f"a{LAST}", f"{BEFORE_SURROGATES}.x", "\ue000.x", ".x"]
PREFIXES = [*KINDS, "task.claim", "ta", "bb.", "b", "ä", LAST, BEFORE_SURROGATES, f"a{LAST}{LAST}", ".", "nothing."]

Written = list[tuple[str, list[tuple[str, str]]]]
"""Units, each of a stream and the kinds and actors of its events."""
WRITTEN = st.lists(
    st.tuples(
        st.sampled_from(STREAMS),
        st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(ACTORS)), min_size=1, max_size=3),
    ),
    max_size=25,
)


def some(values: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.just(()) | st.lists(st.sampled_from(values), min_size=1, max_size=3).map(tuple)


class Question(NamedTuple):
    only: Only
    place: int
    limit: int


QUESTIONS = st.lists(
    st.builds(
        Question,
        st.builds(Only, some([*STREAMS, "nothing"]), some([*ACTORS, "nobody"]), some(PREFIXES)),
        st.integers(0, 40),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=6,
)


def plainly(whole: Sequence[Event], only: Only) -> list[Event]:
    """The events that fit, found by looking at every one of them."""
    kept = []
    for event in whole:
        by_kind = [prefix for prefix in only.kinds if event.kind[: len(prefix)] == prefix]
        if only.streams and event.stream not in only.streams:
            continue
        if only.actors and event.actor not in only.actors:
            continue
        if only.kinds and not by_kind:
            continue
        kept.append(event)
    return kept


def write(engine: Engine, written: Written) -> None:
    heads: dict[str, Head] = {}
    for stream, events in written:
        new = [NewEvent(kind, actor, "mcp", 5, {"number": 1}, ()) for kind, actor in events]
        made = chained(stream, heads.get(stream, NEW_STREAM), new)
        heads[stream] = made.head
        engine.commit(WriteSet((made,), ()))


def check(engine: Engine, written: Written, questions: Sequence[Question]) -> None:
    write(engine, written)
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    whole = store.feed()
    assert [(event.stream, event.kind, event.actor) for event in whole] == [
        (stream, kind, actor) for stream, events in written for kind, actor in events
    ]

    def ask(unit: Unit) -> None:
        for only, place, limit in questions:
            fitting = plainly(whole, only)
            after = whole[min(place, len(whole)) - 1].position if place and whole else 0
            later = [event for event in fitting if event.position > after]
            assert unit.feed(after, limit, only) == later[:limit], only
            assert unit.newest(limit, only) == fitting[len(fitting) - min(limit, len(fitting)) :], only
            assert list(paged(unit, only, limit + 1)) == fitting, only

    store.run(ANNA, ask)
    for only, _, _ in questions:
        assert store.feed(only=only) == plainly(whole, only)


def paged(unit: Unit, only: Only, limit: int) -> list[Event]:
    """All that fits, page by page."""
    seen: list[Event] = []
    while page := unit.feed(seen[-1].position if seen else 0, limit, only):
        assert len(page) <= limit
        seen += page
    return seen


@pytest.mark.hypothesis
@given(WRITTEN, QUESTIONS)
def test_memory_and_sqlite_give_what_a_plain_filter_gives(written: Written, questions: list[Question]) -> None:
    check(MemoryEngine(), written, questions)
    with TemporaryDirectory() as folder:
        engine = SqliteEngine(Path(folder) / "handrail.db", version=VERSION)
        try:
            check(engine, written, questions)
        finally:
            engine.close()


@pytest.mark.hypothesis
@settings(max_examples=300 if THOROUGH else 25)
@given(written=WRITTEN, questions=QUESTIONS)
def test_postgres_gives_what_a_plain_filter_gives(
    used_schema: str, written: Written, questions: list[Question]
) -> None:
    engine = PostgresEngine(used_schema, version=VERSION)
    try:
        empty(used_schema)
        check(engine, written, questions)
    finally:
        engine.close()
        empty(used_schema)


def test_every_beginning_of_a_kind_gives_what_begins_so(ground: Ground) -> None:
    write(ground.engine, [("a", [(kind, "anna")]) for kind in (*KINDS, *reversed(KINDS))])
    whole = ground.store.feed()
    for prefix in PREFIXES:
        for only in (Only(kinds=(prefix,)), Only(("a",), (), (prefix,)), Only((), ("anna",), (prefix, "bb."))):
            assert ground.store.feed(only=only) == plainly(whole, only), only


def test_each_of_three_conditions_leaves_something_out(ground: Ground) -> None:
    write(ground.engine, [("wf_1", [("task.a", "anna"), ("bb.a", "anna"), ("task.a", "ben")])])
    write(ground.engine, [("wf_2", [("task.a", "anna")])])
    whole = ground.store.feed()
    only = Only(("wf_1",), ("anna",), ("task.",))
    assert ground.store.feed(only=only) == whole[:1]
    assert ground.store.feed(only=only._replace(kinds=())) == whole[:2]
    assert ground.store.feed(only=only._replace(actors=())) == [whole[0], whole[2]]
    assert ground.store.feed(only=only._replace(streams=())) == [whole[0], whole[3]]


def test_every_position_of_a_stream_is_found_by_halving(ground: Ground) -> None:
    chance = random.Random(7)
    streams = ["a", "b", "c"]
    write(ground.engine, [(chance.choice(streams), [("x.y", "anna")] * chance.randint(1, 3)) for _ in range(40)])
    whole = ground.store.feed()
    for after in (0, *(event.position for event in whole)):
        for only in (Only(("a",)), Only(("b", "c"))):
            expected = [event for event in plainly(whole, only) if event.position > after]
            assert ground.store.feed(after=after, limit=4, only=only) == expected[:4]


def test_a_stream_whose_events_were_tampered_with_is_still_read_to_its_end(lasting: Ground) -> None:
    """Halving meets a number that is not there: it looks further back, and leaves nothing out."""
    lasting.engine.commit(happened("a", NEW_STREAM, *["x.y"] * 9))
    positions = [event.position for event in lasting.store.feed()]
    lasting.tamper("DELETE FROM event WHERE seq = 5")
    for after, left in ((0, 8), (positions[2], 5), (positions[6], 2), (positions[8], 0)):
        assert len(lasting.store.feed(after=after, only=Only(("a",)))) == left


# -- through a unit ---------------------------------------------------------------------------------------------------


def test_a_unit_reads_streams_and_the_feed(ground: Ground) -> None:
    for number in range(4):
        put(ground.store, workflow(updated_at=number), kind="workflow.put", actor=BEN if number % 2 else ANNA)
    put(ground.store, repository(), kind="repository.put")
    whole = ground.store.feed()

    def look(unit: Unit) -> None:
        assert unit.feed(0, 10) == whole  # first: only then does a view wait for commits that others hold up
        assert unit.events("wf_1") == whole[:4]
        assert unit.events("wf_1", 1, 2) == whole[1:3]
        assert unit.head_seq("wf_1") == 4
        assert unit.head_seq("nothing") == 0
        assert unit.feed(whole[1].position, 2) == whole[2:4]
        assert unit.newest(2) == whole[3:]
        assert unit.newest(1, Only(actors=("ben",))) == [whole[3]]
        assert unit.position() == whole[-1].position

    ground.store.run(ANNA, look)


def test_what_a_unit_records_is_counted_and_not_shown(ground: Ground) -> None:
    put(ground.store, workflow())

    def work(unit: Unit) -> None:
        assert len(unit.feed(0, 10)) == 1  # first: only then does a view wait for commits that others hold up
        unit.record("workflow.renamed", workflow(name="one"))
        assert unit.head_seq("wf_1") == 2
        unit.record("task.created", task())
        unit.record("workflow.created", workflow("wf_2"))
        assert (unit.head_seq("wf_1"), unit.head_seq("wf_2")) == (3, 1)
        assert len(unit.events("wf_1")) == len(unit.feed(0, 10)) == len(unit.newest(10)) == 1

    ground.store.run(ANNA, work)
    assert [event.seq for event in ground.store.events("wf_1")] == [1, 2, 3]
    assert [event.seq for event in ground.store.events("wf_2")] == [1]


def test_who_counted_on_a_head_runs_again_when_it_moves(ground: Ground) -> None:
    other = ground.another()
    told: list[int] = []

    def work(unit: Unit) -> None:
        told.append(unit.head_seq("wf_1"))
        if len(told) == 1:
            put(other, workflow(name="first"))
        unit.record("workflow.counted", workflow(name=f"after {told[-1]}"))

    ground.store.run(ANNA, work)
    assert told == [0, 1]
    assert found(ground.store, Workflow, "wf_1").name == "after 1"


@pytest.mark.parametrize("number", [-1, -(2**70), 2**63, 2**70])
def test_any_number_is_a_cursor_and_a_limit(ground: Ground, number: int) -> None:
    put(ground.store, workflow())
    put(ground.store, workflow(name="two"))
    expected = [1, 2] if number < 0 else []

    def look(unit: Unit) -> None:
        for only in (EVERYTHING, Only(("wf_1",)), Only(actors=("anna",)), Only(kinds=("thing.",))):
            assert [event.seq for event in unit.feed(number, 10, only)] == expected
            assert len(unit.feed(0, number, only)) == len(unit.newest(number, only)) == 2 - len(expected)
        assert [event.seq for event in unit.events("wf_1", number)] == expected
        assert len(unit.events("wf_1", 0, number)) == 2 - len(expected)

    ground.store.run(ANNA, look)


def test_the_newest_of_a_stream_by_one_actor_are_as_many_as_asked_for(ground: Ground) -> None:
    for number in range(6):
        put(ground.store, workflow(updated_at=number), actor=ANNA if number < 3 else BEN)
    assert [event.seq for event in ground.store.newest(2, stream="wf_1", actor="anna")] == [2, 3]


def test_a_reading_of_several_streams_that_fails_leaves_nothing_open(sqlite: Ground) -> None:
    """A cursor that is not read to its end keeps its look open, and the log from being cut."""
    write(sqlite.engine, [(stream, [("x.y", "anna")] * 3) for stream in STREAMS])
    sqlite.tamper("UPDATE event SET body = x'00' WHERE position = 2")
    with pytest.raises(StoreUnusable, match="cannot be read back") as refused:
        sqlite.store.feed(only=Only(tuple(STREAMS)))
    put(sqlite.store, workflow())
    checkpointing = apsw.Connection(sqlite.address)
    assert checkpointing.execute("PRAGMA wal_checkpoint(TRUNCATE)").get == (0, 0, 0)
    checkpointing.close()
    assert refused.value.details == {"seq": 2}


# -- the statements ---------------------------------------------------------------------------------------------------

LED = {
    "everything": (EVERYTHING, "sqlite_autoindex_event_1 (position>?)"),
    "a stream": (Only(("a",)), "PRIMARY KEY (stream=? AND seq>?)"),
    "streams and actors": (Only(("a", "b"), ("anna", "ben")), "PRIMARY KEY (stream=? AND seq>?)"),
    "a stream's kinds": (Only(("a",), (), ("task.",)), "PRIMARY KEY (stream=? AND seq>?)"),
    "actors": (Only((), ("anna", "ben")), "event_actor (actor=? AND position>?)"),
    "an actor's kinds": (Only((), ("anna",), ("task.", "bb.")), "event_actor (actor=? AND position>?)"),
    "families": (Only(kinds=("task.", "bb.")), "event_family (<expr>=? AND position>?)"),
    "part of a family": (Only(kinds=("task.claim",)), "event_family (<expr>=? AND position>?)"),
    "parts of words": (Only(kinds=("ta", "bb.")), "sqlite_autoindex_event_1 (position>?)"),
}


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("name", LED)
def test_sqlite_reads_what_leads_through_its_index_and_sorts_nothing(sqlite: Ground, name: str, newest: bool) -> None:
    only, index = LED[name]
    question = asked(only, sqlite_reads._WORDS, newest=newest)
    connection = apsw.Connection(sqlite.address)
    given = (0, 10, *question.rest, *question.leads[:1])
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {question.text}", given)]
    connection.close()
    assert plan[0].endswith(index.replace(" AND seq>?", "") if newest else index)
    assert not [line for line in plan if "TEMP B-TREE" in line or line.startswith("SCAN event")]


def test_questions_of_one_shape_share_their_text() -> None:
    words = sqlite_reads._WORDS
    one, two = asked(Only(("a",), ("x", "y")), words), asked(Only(("b", "c"), ("z", "z2")), words)
    assert one.text == two.text
    assert (one.leads, two.leads) == (("a",), ("b", "c"))
    assert asked(Only(("a",), ("x",)), words).text != one.text


def test_values_never_become_text() -> None:
    hostile = "'; DROP TABLE event; --."
    question = asked(Only((hostile,), (hostile,), (hostile,)), sqlite_reads._WORDS)
    assert "DROP" not in question.text
    assert hostile in question.rest
