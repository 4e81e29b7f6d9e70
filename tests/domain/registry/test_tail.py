"""Pages of the ledger hold every event that is wanted, once, in order, however it is filtered, while others write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.registry import tail
from handrail.domain.registry.envelopes import ROUTINE, category_of, level_of, task_of
from handrail.domain.registry.event_kinds import KINDS
from handrail.domain.registry.tail import (
    Bus,
    EventFilter,
    EventForm,
    OneStream,
    TailPage,
    bus_of,
    first_kept,
    meet,
    newest_page,
    page_after,
)
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Event, NewEvent, Only
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.store.writes import WriteSet, chained
from tests.store.records import ANNA, task, workflow

STREAMS = ("wf_1", "wf_2", "ag_1", "inbox:ag_1", "op:x")
ACTORS = ("ag_1", "ag_2", "Rita")
TASKS = ("task_1", "task_2", "task_gone")

happening = st.builds(
    lambda stream, actor, kind, task_id, taken: (
        stream,
        NewEvent(kind, actor, "mcp", 5, {**({"task_id": task_id} if task_id else {}), **taken}, ()),
    ),
    st.sampled_from(STREAMS),
    st.sampled_from(ACTORS),
    st.sampled_from(sorted(KINDS)),
    st.none() | st.sampled_from(TASKS),
    st.sampled_from(({}, {"taken_from": "ag_2"})),
)
filters = st.builds(
    EventFilter,
    st.lists(st.sampled_from(("child", "scheduler", "graph", "op", "store")), max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from(("info", "warn", "error")), max_size=2, unique=True).map(tuple),
    st.none() | st.sampled_from(("wf_1", "wf_2")),
    st.none() | st.sampled_from(TASKS),
    st.none() | st.sampled_from(("ag_1", "ag_2")),
)


def a_store() -> Store:
    store = Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds())
    store.run(ANNA, lambda unit: unit.record("workflow.created", workflow("wf_1"), task("task_1")))
    second = task("task_2", workflow_id="wf_2")
    store.run(ANNA, lambda unit: unit.record("workflow.created", workflow("wf_2"), second))
    return store


def write(store: Store, happened: list[tuple[str, NewEvent]]) -> None:
    for anywhere, event in happened:
        # A task's own events stand in its workflow's stream; what is told of it elsewhere may stand anywhere.
        own = {"task_1": "wf_1", "task_2": "wf_2"}.get(event.data.get("task_id", ""))
        stream = anywhere if own is None or event.kind.startswith(tail.ELSEWHERE) else own
        with store.engine.reading() as reader:
            head = reader.head(stream)
        store.engine.commit(WriteSet((chained(stream, head, [event]),), ()))


def is_wanted(event: Event, wanted: EventFilter) -> bool:
    """What `Wanted` means, in so many words."""
    if wanted.categories and category_of(event) not in wanted.categories:
        return False
    if event.kind in ROUTINE and "op" not in wanted.categories:
        return False
    if wanted.levels and level_of(event) not in wanted.levels:
        return False
    if wanted.run_id is not None and event.stream != wanted.run_id:
        return False
    if wanted.agent_id is not None and wanted.agent_id not in (event.actor, event.stream):
        return False
    return wanted.task_id is None or task_of(event) == wanted.task_id


def number(event: Event) -> dict[str, Any]:
    return {"seq": event.position}


def a_page(store: Store, wanted: EventFilter, after: int, limit: int) -> TailPage:
    shown = EventForm(number, limit)
    return store.run(ANNA, lambda unit: page_after(bus_of(unit, wanted), wanted.fits, after, shown))


def followed(store: Store, wanted: EventFilter, after: int, limit: int) -> tuple[list[int], int]:
    """The document's loop: page after page until one is empty."""
    seen: list[int] = []
    while (page := a_page(store, wanted, after, limit)).entries:
        assert len(page.entries) <= limit
        assert page.next_seq == page.entries[-1]["seq"] > after
        seen += [entry["seq"] for entry in page.entries]
        after = page.next_seq
    assert page.next_seq >= after
    return seen, page.next_seq


@given(
    batches=st.lists(st.lists(happening, max_size=25), min_size=1, max_size=3),
    wanted=filters,
    limit=st.integers(1, 7),
    chunk=st.sampled_from((1, 3, 500)),
    looked_at=st.sampled_from((1, 20_000)),
)
@settings(max_examples=150)
def test_page_by_page_is_the_same_as_a_plain_filter_over_everything(
    batches: list[list[tuple[str, NewEvent]]], wanted: EventFilter, limit: int, chunk: int, looked_at: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "PAGE", chunk)
        patch.setattr(tail, "LOOKED_AT", looked_at)
        store = a_store()
        seen: list[int] = []
        after = 0
        for batch in batches:  # others write between one look and the next
            write(store, batch)
            more, after = followed(store, wanted, after, limit)
            seen += more
        assert seen == [event.position for event in store.feed() if is_wanted(event, wanted)]
        assert after == store.position(), "what was looked at is not looked at again"


def the_newest(unit: Any, wanted: EventFilter, limit: int, keep: int) -> TailPage:
    cut = first_kept(Bus(unit), 0, keep)
    return newest_page(bus_of(unit, wanted), wanted.fits, EventForm(number, limit), cut)


def test_a_look_back_for_what_is_rare_ends_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PAGE", 3)
    monkeypatch.setattr(tail, "LOOKED_AT", 10)
    store = a_store()
    write(store, [("wf_1", NewEvent("task.failed", "Rita", "mcp", 5, {}, ()))])
    write(store, [("wf_1", NewEvent("task.pending", "Rita", "mcp", 5, {}, ()))] * 30)

    def rare(event: Event) -> bool:
        return event.kind == "task.failed"

    page = store.run(ANNA, lambda unit: newest_page(Bus(unit), rare, EventForm(number, 2)))
    assert (page.entries, page.next_seq, page.looked_back_to) == ((), 33, 24)
    errors = EventFilter(levels=("error",))
    page = store.run(ANNA, lambda unit: newest_page(bus_of(unit, errors), errors.fits, EventForm(number, 2)))
    assert ([entry["seq"] for entry in page.entries], page.looked_back_to) == ([3], 0), "the store looks for kinds"


@given(happened=st.lists(happening, max_size=30), wanted=filters, limit=st.integers(1, 9), keep=st.integers(0, 12))
def test_the_newest_are_the_last_that_fit_and_are_still_shown(
    happened: list[tuple[str, NewEvent]], wanted: EventFilter, limit: int, keep: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "PAGE", 2)
        store = a_store()
        write(store, happened)
        levels = EventFilter(levels=wanted.levels)
        page = store.run(ANNA, lambda unit: the_newest(unit, levels, limit, keep))
        everything = store.feed()
        still_shown = everything[-keep:] if keep else everything
        fitting = [event.position for event in still_shown if is_wanted(event, levels)]
        assert [entry["seq"] for entry in page.entries] == fitting[-limit:]
        assert page.next_seq == (fitting[-1] if fitting else store.position())
        if page.truncated_before:
            assert page.truncated_before == still_shown[0].position
            assert len(everything) > keep > 0
        if 0 < keep < len(everything) and len(fitting) < limit:
            assert page.truncated_before, "what is missing does not vanish silently"


@given(happened=st.lists(happening, max_size=20), after=st.integers(0, 25), keep=st.integers(1, 12))
def test_what_retention_leaves_out_is_said(happened: list[tuple[str, NewEvent]], after: int, keep: int) -> None:
    store = a_store()
    write(store, happened)
    everything = store.feed()
    cut = store.run(ANNA, lambda unit: first_kept(Bus(unit), after, keep))
    kept = everything[-keep:]
    missed = [event for event in everything if event.position > after and event not in kept]
    assert cut == (kept[0].position if missed else 0)
    page = store.run(ANNA, lambda unit: page_after(Bus(unit), lambda _: True, after, EventForm(number, 500), cut))
    assert [entry["seq"] for entry in page.entries] == [event.position for event in kept if event.position > after]
    assert page.truncated_before == cut


def test_a_stream_is_followed_by_its_own_numbers() -> None:
    store = a_store()
    write(store, [("wf_1", NewEvent("task.failed", "Rita", "mcp", 5, {"n": n}, ())) for n in range(3)])

    def read(unit: Any) -> TailPage:
        source = OneStream(unit, "wf_1")
        return page_after(source, lambda _: True, 1, EventForm(lambda event: {"seq": source.number(event)}, 2))

    page = store.run(ANNA, read)
    assert ([entry["seq"] for entry in page.entries], page.next_seq) == ([2, 3], 3)


def test_a_page_without_a_number_is_small_and_never_empty() -> None:
    store = a_store()
    write(store, [("wf_1", NewEvent("task.failed", "Rita", "mcp", 5, {}, ()))] * 5)
    large = EventForm(lambda event: {"seq": event.position, "text": "x" * 100}, 100, room=250)
    page = store.run(ANNA, lambda unit: page_after(Bus(unit), lambda _: True, 2, large))
    assert [entry["seq"] for entry in page.entries] == [3, 4]
    tiny = large._replace(room=1)
    page = store.run(ANNA, lambda unit: page_after(Bus(unit), lambda _: True, 2, tiny))
    assert [entry["seq"] for entry in page.entries] == [3], "whatever its size, something is told"
    page = store.run(ANNA, lambda unit: newest_page(Bus(unit), lambda _: True, tiny))
    assert [entry["seq"] for entry in page.entries] == [7]


starts = st.lists(st.sampled_from(("task.", "task.claim", "agent.", "op.")), max_size=2, unique=True).map(tuple)
names = st.lists(st.sampled_from(("a", "b", "c")), max_size=2, unique=True).map(tuple)
onlys = st.builds(Only, names, names, starts)


@given(
    onlys, onlys, st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from(("task.claimed", "task.x", "op.done"))
)
def test_what_two_filters_let_through_is_what_both_do(
    one: Only, other: Only, stream: str, actor: str, kind: str
) -> None:
    event = Event(stream, 1, 1, kind, actor, "mcp", 5, {}, (), "")
    met = meet(one, other)
    assert (met is not None and met.fits(event)) == (one.fits(event) and other.fits(event))
