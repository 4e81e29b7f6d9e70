"""Watching a board: every change once, whole, in order; what ran out, what was taken back, what retention hides."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.board.board import Board, EntryUpdate
from handrail.domain.board.queries import BoardChanges, watch
from handrail.kernel.ledger import Actor
from tests.domain.board.units import Room


@pytest.fixture
def room() -> Room:
    return Room()


def put(room: Room, key: str, value: Any = 1, **more: Any) -> None:
    room.do(lambda unit: Board(unit, "a").put(EntryUpdate(key, value, **more)))


def watched(room: Room, after: int = 0, limit: int = 100, history: int = 0) -> BoardChanges:
    return room.do(lambda unit: watch(unit, "a", after, limit, history=history), "watcher")


def told(found: BoardChanges) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(found.changes))
    return plain


def test_every_change_is_told_whole(room: Room) -> None:
    put(room, "a:x", {"n": 1}, tags=["t"], ttl_ms=500)
    room.clock.advance(5)
    put(room, "a:x", {"n": 1}, tags=["t"])
    room.do(lambda unit: Board(unit, "a").remove("a:x"), "ben")
    began = room.clock.now_ms() - 5
    first = {
        "key": "a:x",
        "value": {"n": 1},
        "tags": ["t"],
        "createdAt": began,
        "updatedAt": began,
        "expiresAt": began + 500,
        "version": 1,
        "setBy": "ada",
    }
    second = {**first, "updatedAt": began + 5, "expiresAt": None, "version": 2}
    assert told(watched(room)) == [
        {"version": 1, "kind": "set", "key": "a:x", "entry": first, "by": "ada", "ts": began},
        {"version": 2, "kind": "set", "key": "a:x", "entry": second, "previous": first, "by": "ada", "ts": began + 5},
        {"version": 3, "kind": "delete", "key": "a:x", "previous": second, "by": "ben", "ts": began + 5},
    ]


@pytest.mark.parametrize(("old", "new"), [(1, 1.0), (1, True), (0, False), ("1", 1), ({"a": 1}, {"a": 1.0}), (1, 1)])
def test_values_that_are_nearly_the_same_are_told_apart(room: Room, old: Any, new: Any) -> None:
    put(room, "a:x", old)
    put(room, "a:x", new)
    change = watched(room, 1).changes[0]
    assert msgspec.json.encode(change.entry.value) == msgspec.json.encode(new)
    assert msgspec.json.encode(change.previous.value) == msgspec.json.encode(old)


def test_what_ran_out_is_told_by_the_call_that_writes_it_off_and_by_every_later_one(room: Room) -> None:
    put(room, "a:x", ttl_ms=10)
    put(room, "a:y", ttl_ms=5)
    room.clock.advance(10)
    first = watched(room, 2)
    assert [(one.version, one.kind, one.key, one.reason) for one in first.changes] == [
        (3, "expire", "a:y", "ttl"),
        (4, "expire", "a:x", "ttl"),
    ]
    assert first.version == 4
    assert first == watched(room, 2)
    assert "by" not in told(first)[0]
    assert watched(room, 4).changes == []


def test_a_page_ends_where_it_is_full_also_within_what_ran_out_just_now(room: Room) -> None:
    for key in ("a:x", "a:y", "a:z"):
        put(room, key, ttl_ms=1)
    room.clock.advance(1)
    assert [one.version for one in watched(room, 0, 2).changes] == [1, 2]
    assert [one.version for one in watched(room, 2, 2).changes] == [3, 4]
    put(room, "a:x", ttl_ms=1)
    room.clock.advance(1)
    assert [one.version for one in watched(room, 4, 3).changes] == [5, 6, 7]
    assert [one.version for one in watched(room, 7, 3).changes] == [8]


def test_a_page_can_end_between_two_that_ran_out_just_now(room: Room) -> None:
    for key in ("a:x", "a:y"):
        put(room, key, ttl_ms=1)
    room.clock.advance(1)
    assert [one.version for one in watched(room, 1, 2).changes] == [2, 3]
    assert [one.version for one in watched(room, 3, 2).changes] == [4]


def test_taking_back_is_told_as_what_it_does(room: Room) -> None:
    put(room, "a:x", "old", tags=["t"])
    put(room, "a:x", "new", tags=["t"])
    room.store.undo(Actor("ada", "test"))
    change = told(watched(room, 2))[0]
    assert (change["version"], change["kind"], change["reason"], change["by"]) == (3, "set", "undo", "ada")
    assert (change["entry"]["value"], change["entry"]["version"], change["entry"]["tags"]) == ("old", 1, ["t"])
    assert (change["previous"]["value"], change["previous"]["version"]) == ("new", 2)


def test_taking_back_the_first_is_a_deletion_and_taking_back_a_deletion_sets(room: Room) -> None:
    put(room, "a:x")
    room.store.undo(Actor("ada", "test"))
    put(room, "a:y")
    room.do(lambda unit: Board(unit, "a").remove("a:y"), "ben")
    room.store.undo(Actor("ben", "test"))
    shown = [(one.version, one.kind, one.key, one.reason) for one in watched(room, 1).changes if one.reason]
    assert shown == [(2, "delete", "a:x", "undo"), (5, "set", "a:y", "undo")]


def test_a_retention_says_what_it_hides(room: Room) -> None:
    for n in range(5):
        put(room, "a:x", n)
    cut = watched(room, 0, history=2)
    assert [one.version for one in cut.changes] == [4, 5]
    assert cut.truncated_before == 4
    assert watched(room, 2, history=2).truncated_before == 4
    assert watched(room, 3, history=2).truncated_before == 0
    assert watched(room, 0, history=5).truncated_before == 0
    assert watched(room, 0).truncated_before == 0


def test_what_ran_out_just_now_is_neither_shown_behind_a_retention_nor_before_a_cursor(room: Room) -> None:
    for key in ("a:x", "a:y"):
        put(room, key, ttl_ms=1)
    room.clock.advance(1)
    cut = watched(room, 0, history=1)
    assert ([one.version for one in cut.changes], cut.truncated_before) == ([4], 4)
    put(room, "a:z", ttl_ms=1)
    room.clock.advance(1)
    assert watched(room, 9).changes == []


def test_a_board_nobody_wrote_to_has_nothing_to_tell(room: Room) -> None:
    assert watched(room, 7) == BoardChanges([], 0, 0)
    assert room.store.position() == 0
