"""Looking through boards: every filter against a plain look at everything, and pages that leave nothing out."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from handrail.domain.board import queries
from handrail.domain.board.board import Board, EntryUpdate, set_many
from handrail.domain.board.queries import BoardSize, EntryQuery, FoundEntries, boards, search
from handrail.kernel.records import UnitOfWork
from tests.domain.board.units import Room

RESTS = ("a", "ab", "a:b", "b", "B", "é", "書", "a b", "~")
keys = st.builds(lambda board, rest: f"{board}:{rest}", st.sampled_from(["p", "pq", "q"]), st.sampled_from(RESTS))
tags = st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True)
entries = st.dictionaries(keys, st.tuples(tags, st.sampled_from([None, 1, 100])), max_size=12)
sought = st.builds(
    EntryQuery,
    st.sampled_from([None, "p", "pq"]),
    st.lists(keys, max_size=4).map(tuple),
    tags.map(tuple),
    st.sampled_from(["", "p:", "p:a", "pq:a", "p:é"]),
    st.just("") | keys,
)


def filled(given_entries: dict[str, Any]) -> Room:
    room = Room()
    wanted = [EntryUpdate(key, key, marks, ttl) for key, (marks, ttl) in given_entries.items()]
    room.do(lambda unit: set_many(unit, wanted))
    room.clock.advance(50)
    return room


def plainly(given_entries: dict[str, Any], asked: EntryQuery) -> list[str]:
    return [
        key
        for key, (marks, ttl) in sorted(given_entries.items())
        if ttl != 1
        and asked.board in (None, key.partition(":")[0])
        and (not asked.keys or key in asked.keys)
        and set(asked.tags) <= set(marks)
        and key.startswith(asked.beginning)
        and key > asked.after
    ]


def ids(found: FoundEntries) -> list[str]:
    return [entry.id for entry in found.entries]


@given(entries, sought, st.integers(1, 4))
def test_what_fits_is_found_page_by_page(given_entries: dict[str, Any], asked: EntryQuery, limit: int) -> None:
    room, fitting = filled(given_entries), plainly(given_entries, asked)
    seen: list[str] = []

    def look(unit: UnitOfWork) -> FoundEntries:
        return search(unit, asked, limit)

    for _ in range(len(fitting) + 1):
        page = room.do(look)
        assert page.total == len(fitting) - len(seen)
        seen += ids(page)
        if page.next is None:
            break
        asked = asked._replace(after=page.next)
    assert seen == fitting


def test_a_search_for_tags_stops_in_time_and_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "CHUNK", 3)
    monkeypatch.setattr(queries, "LOOKED_AT", 6)
    room = filled({f"p:{n:02}": (["x"] if n in (1, 9, 10) else [], None) for n in range(12)})
    first = room.do(lambda unit: search(unit, EntryQuery(tags=("x",)), 5))
    assert (ids(first), first.total, first.next) == (["p:01"], None, "p:05")
    rest = room.do(lambda unit: search(unit, EntryQuery(tags=("x",), after="p:05"), 1))
    assert (ids(rest), rest.total, rest.next) == (["p:09"], None, "p:09")
    last = room.do(lambda unit: search(unit, EntryQuery(tags=("x",), after="p:09"), 5))
    assert (ids(last), last.total, last.next) == (["p:10"], 1, None)


def test_boards_are_listed_with_what_stands_on_them() -> None:
    room = filled({"p:a": ([], None), "p:b": ([], 1), "q:a": ([], 100), "r:a": ([], 1)})
    assert room.do(boards) == [BoardSize("p", 1, 2), BoardSize("q", 1, 1)]


def test_looking_writes_nothing() -> None:
    room = filled({"p:a": ([], 1)})
    before = room.store.position()
    room.do(lambda unit: search(unit, EntryQuery(), 5))
    room.do(boards)
    assert room.store.position() == before
    room.do(lambda unit: Board(unit, "p").sweep())
    assert room.store.position() == before + 1
