"""The chain of hashes: whatever is changed, moved, added or left out afterwards breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import Change, NewEvent
from handrail.store.writes import NEW_STREAM, NO_HASH, Head, chained, decode_events, encode_body, link

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
DOCUMENT = st.dictionaries(st.text(), JSON, max_size=4)


def event(**given: Any) -> NewEvent:
    plain: dict[str, Any] = {
        "kind": "task.created",
        "actor": "anna",
        "channel": "mcp",
        "at_ms": 5,
        "data": {"a": 1},
        "changes": (Change("task", "task_1", {"name": "x"}, None),),
    }
    return NewEvent(**{**plain, **given})


def test_events_follow_each_other_in_number_and_hash() -> None:
    written = chained("wf_1", NEW_STREAM, [event(), event(kind="task.changed"), event(kind="task.removed")])
    assert [stored.seq for stored in written.events] == [1, 2, 3]
    assert len({stored.hash for stored in written.events}) == 3
    assert written.head == Head(3, written.events[-1].hash)
    later = chained("wf_1", written.head, [event()])
    assert later.events[0].seq == 4
    assert later.events[0].hash == link(written.head.hash, "wf_1", 4, event(), encode_body(event()))


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "task.removed"},
        {"actor": "ben"},
        {"channel": "cli"},
        {"at_ms": 6},
        {"data": {"a": 2}},
        {"changes": ()},
        {"changes": (Change("task", "task_2", {"name": "x"}, None),)},
    ],
    ids=str,
)
def test_the_hash_covers_everything_about_an_event(other: dict[str, Any]) -> None:
    one, two = chained("wf_1", NEW_STREAM, [event()]), chained("wf_1", NEW_STREAM, [event(**other)])
    assert one.head.hash != two.head.hash


def test_the_hash_covers_stream_number_and_what_came_before() -> None:
    body = encode_body(event())
    known = {
        link(NO_HASH, "wf_1", 1, event(), body),
        link(NO_HASH, "wf_2", 1, event(), body),
        link(NO_HASH, "wf_1", 2, event(), body),
        link("x", "wf_1", 1, event(), body),
    }
    assert len(known) == 4


@given(DOCUMENT, st.lists(st.tuples(DOCUMENT | st.none(), DOCUMENT | st.none()), max_size=3))
def test_an_event_that_was_read_back_has_the_hash_it_was_written_with(
    data: dict[str, Any], changes: list[tuple[Any, Any]]
) -> None:
    new = event(data=data, changes=tuple(Change("task", "t", after, before) for after, before in changes))
    (stored,) = chained("wf_1", NEW_STREAM, [new]).events
    (read,) = decode_events([("wf_1", 1, 7, *stored[2:])])
    assert (read.data, read.changes, read.position) == (new.data, new.changes, 7)
    assert link(NO_HASH, "wf_1", 1, read, encode_body(read)) == read.hash


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1]", b"[{},[1]]", b"[{},[[1]]]", b'"text"', b"5"])
def test_a_body_that_cannot_be_read_is_a_refusal(body: bytes) -> None:
    sound = ("wf_1", 2, 8, "kind", "anna", "mcp", 5, b"[{},[]]", "hash")
    assert len(decode_events([sound])) == 1
    with pytest.raises(StoreUnusable, match="event 3") as refused:
        for event in decode_events([sound, ("wf_1", 3, 9, "kind", "anna", "mcp", 5, body, "hash"), sound]):
            assert list(event.changes) == []
    assert refused.value.details == {"seq": 3}


def test_changes_that_were_read_back_are_like_the_tuple_that_was_written() -> None:
    given = tuple(Change("task", f"t_{number}", {"a": number}, None) for number in range(3))
    (stored,) = chained("wf_1", NEW_STREAM, [event(changes=given)]).events
    (read,), (again,) = (decode_events([("wf_1", 1, 7, *stored[2:])]) for _ in range(2))
    assert read == again
    assert (read.changes == given, given == read.changes, read.changes == given[:2]) == (True, True, False)
    assert (len(read.changes), read.changes[1], tuple(reversed(read.changes))) == (3, given[1], given[::-1])
    assert repr(read.changes) == repr(given)
    assert isinstance(read.changes, Sequence)
