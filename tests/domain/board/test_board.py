"""One board: setting on a condition, removing, running out, and several entries at once."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.board.board import SWEPT, TAGS, VALUE, Board, EntryUpdate, set_many, standing
from handrail.domain.board.entry import BRIEF, BoardEntry, brief, snapshot
from handrail.kernel.clock import DAY_MS
from handrail.kernel.errors import BoardConflict, InvalidParams
from tests.domain.board.units import Room


@pytest.fixture
def room() -> Room:
    return Room()


def put(room: Room, key: str, value: Any = 1, who: str = "ada", **more: Any) -> BoardEntry:
    return room.do(lambda unit: Board(unit, key.partition(":")[0]).put(EntryUpdate(key, value, **more)), who)


def get(room: Room, key: str) -> BoardEntry | None:
    return room.do(lambda unit: standing(unit, key))


def test_versions_count_the_events_of_a_board_and_of_no_other(room: Room) -> None:
    versions = [put(room, key).version for key in ("a:x", "a:y", "b:x", "a:x")]
    assert versions == [1, 2, 1, 3]
    assert room.kinds("a") == ["bb.set"] * 3


def test_setting_again_replaces_all_but_the_beginning(room: Room) -> None:
    first = put(room, "a:x", {"deep": [1]}, tags=["t"], ttl_ms=1000)
    room.clock.advance(10)
    second = put(room, "a:x", None, who="ben")
    assert second.created_at == first.created_at
    assert second.updated_at == first.updated_at + 10
    assert (second.value, second.tags, second.expires_at, second.set_by) == ({"value": None}, [], None, "ben")
    assert get(room, "a:x") == second


@pytest.mark.parametrize("expected", [0, 2, 7])
def test_another_version_than_the_expected_one_is_refused_and_shown(room: Room, expected: int) -> None:
    there = put(room, "a:x", "mine")
    with pytest.raises(BoardConflict) as refused:
        put(room, "a:x", "yours", expected=expected)
    assert refused.value.details["entry"]["value"] == "mine"
    assert refused.value.details["entry"]["version"] == 1
    assert "expected_version 1" in refused.value.hint
    assert get(room, "a:x") == there


def test_the_expected_version_is_let_through(room: Room) -> None:
    assert put(room, "a:x", expected=0).version == 1
    assert put(room, "a:x", expected=1).version == 2


def test_what_is_not_there_has_no_version(room: Room) -> None:
    with pytest.raises(BoardConflict, match="is not there") as refused:
        put(room, "a:x", expected=3)
    assert refused.value.details == {"key": "a:x", "entry": None}
    with pytest.raises(BoardConflict):
        room.do(lambda unit: Board(unit, "a").remove("a:x", 3))


def test_what_has_run_out_is_there_for_nobody_at_once(room: Room) -> None:
    put(room, "a:x", ttl_ms=100)
    room.clock.advance(99)
    assert get(room, "a:x") is not None
    room.clock.advance(1)
    assert get(room, "a:x") is None
    assert room.kinds("a") == ["bb.set"]  # written off by who writes next, not by who looks
    with pytest.raises(BoardConflict, match="is not there"):
        put(room, "a:x", expected=1)
    again = put(room, "a:x", expected=0)
    assert room.kinds("a") == ["bb.set", "bb.expired", "bb.set"]
    assert (again.version, again.created_at) == (3, room.clock.now_ms())


def test_removing_tells_what_was_there(room: Room) -> None:
    there = put(room, "a:x")
    assert room.do(lambda unit: Board(unit, "a").remove("a:x", 1)) == there
    assert room.do(lambda unit: Board(unit, "a").remove("a:x")) is None
    assert room.kinds("a") == ["bb.set", "bb.deleted"]
    assert put(room, "a:x", expected=0).version == 3


def test_removing_what_has_run_out_removes_nothing(room: Room) -> None:
    put(room, "a:x", ttl_ms=1)
    room.clock.advance(1)
    assert room.do(lambda unit: Board(unit, "a").remove("a:x")) is None
    assert room.kinds("a") == ["bb.set", "bb.expired"]


def test_a_call_writes_off_so_many_and_always_what_is_in_its_own_way(room: Room) -> None:
    room.do(lambda unit: set_many(unit, [EntryUpdate(f"a:{n:03}", n, ttl_ms=n + 1) for n in range(SWEPT + 20)]))
    put(room, "b:x", ttl_ms=1)
    room.clock.advance(DAY_MS)
    last = f"a:{SWEPT + 19:03}"
    entry = put(room, last)
    assert room.kinds("a").count("bb.expired") == SWEPT + 1
    assert entry.version == len(room.kinds("a"))
    assert room.kinds("b") == ["bb.set"]
    put(room, last)
    assert room.kinds("a").count("bb.expired") == SWEPT + 20
    assert get(room, last) is not None
    assert room.store.verify() == []


def test_several_are_set_in_order_on_their_boards(room: Room) -> None:
    put(room, "a:old", ttl_ms=1)
    room.clock.advance(1)
    wanted = [EntryUpdate("a:x", 1), EntryUpdate("b:x", 2), EntryUpdate("a:x", 3, expected=3), EntryUpdate("z", 4)]
    entries, failures = room.do(lambda unit: set_many(unit, wanted))
    assert failures == []
    assert [(entry.id, entry.version) for entry in entries] == [("a:x", 3), ("b:x", 1), ("a:x", 4), ("default:z", 1)]
    assert [event.seq for event in room.store.events("bb:a")] == [1, 2, 3, 4]
    now = get(room, "a:x")
    assert now is not None
    assert now.value == {"value": 3}
    assert room.store.verify() == []


def test_every_failure_among_several_is_told_and_a_refusal_leaves_nothing(room: Room) -> None:
    put(room, "a:x")
    wanted = [
        EntryUpdate("a:y", 1),
        EntryUpdate("a:x", 2, expected=0),
        EntryUpdate(":bad", 3),
        EntryUpdate("a:z", 4, tags=[""]),
    ]
    told: list[tuple[int, str]] = []

    def work(unit: Any) -> None:
        entries, failures = set_many(unit, wanted)
        assert [entry.id for entry in entries] == ["a:y"]
        told.extend((failure.at, failure.refusal.code) for failure in failures)
        raise failures[0].refusal

    with pytest.raises(BoardConflict):
        room.do(work)
    assert told == [(1, "BOARD_CONFLICT"), (2, "INVALID_PARAMS"), (3, "INVALID_PARAMS")]
    assert get(room, "a:y") is None
    assert room.kinds("a") == ["bb.set"]


def test_a_value_may_be_any_json_up_to_its_bound(room: Room) -> None:
    values: list[Any] = [None, False, 0, 1.5, 2**70, "", "é\0", [], {}, {"a": [None]}, "x" * (VALUE - 2)]
    for value in values:
        put(room, "a:x", value)
        there = get(room, "a:x")
        assert there is not None
        assert there.value == {"value": value}
    with pytest.raises(InvalidParams, match=f"{VALUE} is the most"):
        put(room, "a:x", "x" * (VALUE - 1))


def test_what_cannot_be_kept_as_json_is_refused(room: Room) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (10**5000, deep):
        with pytest.raises(InvalidParams, match="cannot be kept as JSON"):
            put(room, "a:x", value)


def test_there_are_not_too_many_tags(room: Room) -> None:
    put(room, "a:x", tags=[str(n) for n in range(TAGS)] * 2)
    with pytest.raises(InvalidParams, match=f"{TAGS} is the most"):
        put(room, "a:x", tags=[str(n) for n in range(TAGS + 1)])


def test_a_long_value_is_not_repeated_to_who_did_not_ask_for_it(room: Room) -> None:
    entry = put(room, "a:x", "x" * BRIEF)
    assert snapshot(entry).value == "x" * BRIEF
    assert brief(entry).value_bytes == BRIEF + 2
    with pytest.raises(BoardConflict) as refused:
        put(room, "a:x", expected=9)
    assert "value" not in refused.value.details["entry"]
    assert refused.value.details["entry"]["valueBytes"] == BRIEF + 2
