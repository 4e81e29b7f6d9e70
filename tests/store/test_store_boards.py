"""Boards on every kind of store: conditions that hold among writers at once, order, running out, watching."""

from __future__ import annotations

import threading
from typing import Any

from handrail.domain.board.board import Board, EntryUpdate, set_many, standing
from handrail.domain.board.queries import EntryQuery, boards, search, watch
from handrail.kernel.errors import BoardConflict
from handrail.kernel.ledger import Actor
from handrail.store.store import Store
from tests.store.ground import Ground
from tests.store.records import ANNA, BEN

WRITERS = 4
ROUNDS = 10


def put(store: Store, key: str, value: Any = 1, actor: Actor = ANNA, **more: Any) -> int:
    """Sets an entry; its version."""
    board = key.partition(":")[0]
    return store.run(actor, lambda unit: Board(unit, board).put(EntryUpdate(key, value, **more))).version


def told(store: Store, board: str, after: int = 0, limit: int = 1000) -> list[tuple[int, str, str]]:
    found = store.run(BEN, lambda unit: watch(unit, board, after, limit))
    return [(change.version, change.kind, change.key) for change in found.changes]


def test_an_entry_comes_back_as_it_was_set(ground: Ground) -> None:
    value = {"a": [1, 2.5, None, True, "é\0\U0001f6e0'\"%s?"], "b": {}, "big": 2**70}
    put(ground.store, "a:é 書", value, tags=["ü", "t"], ttl_ms=50)
    entry = ground.another().run(BEN, lambda unit: standing(unit, "a:é 書"))
    assert entry is not None
    assert (entry.value, entry.tags, entry.version, entry.set_by) == ({"value": value}, ["ü", "t"], 1, "anna")
    assert entry.expires_at == ground.clock.now_ms() + 50


def test_keys_come_in_one_order_whatever_their_letters(ground: Ground) -> None:
    keys = ["a:A", "a:B", "a:a", "a:a b", "a:a-", "a:ab", "a:z", "a:é", "a:éa", "a:書", "b:a"]
    ground.store.run(ANNA, lambda unit: set_many(unit, [EntryUpdate(key, key) for key in reversed(keys)]))

    def found(sought: EntryQuery, limit: int = 100) -> list[str]:
        return ground.store.run(BEN, lambda unit: [entry.id for entry in search(unit, sought, limit).entries])

    assert found(EntryQuery()) == keys
    assert found(EntryQuery(board="a")) == keys[:-1]
    assert found(EntryQuery(board="a", beginning="a:a")) == ["a:a", "a:a b", "a:a-", "a:ab"]
    assert found(EntryQuery(board="a", beginning="a:é")) == ["a:é", "a:éa"]
    assert found(EntryQuery(after="a:ab"), 3) == ["a:z", "a:é", "a:éa"]


def test_what_has_run_out_is_found_by_nobody_and_told_once(ground: Ground) -> None:
    store = ground.store
    put(store, "a:x", ttl_ms=100)
    put(store, "a:y", ttl_ms=50)
    put(store, "a:z")
    put(store, "b:x", ttl_ms=100)
    ground.clock.advance(100)
    page = store.run(BEN, lambda unit: search(unit, EntryQuery(), 10))
    assert ([entry.id for entry in page.entries], page.total) == (["a:z"], 1)
    assert store.run(BEN, boards) == [("a", 1, 3)]
    expected = [(4, "expire", "a:y"), (5, "expire", "a:x")]
    assert told(store, "a", 3) == expected
    assert told(ground.another(), "a", 3) == expected
    assert put(store, "a:x", expected=0) == 6
    assert store.verify() == []


def test_an_entry_can_run_out_and_be_set_again_in_one_unit(ground: Ground) -> None:
    put(ground.store, "a:x", "old", tags=["t"], ttl_ms=1)
    ground.clock.advance(1)
    assert put(ground.store, "a:x", "new") == 3
    again = ground.another().run(BEN, lambda unit: standing(unit, "a:x"))
    assert again is not None
    assert (again.value, again.tags, again.created_at) == ({"value": "new"}, [], ground.clock.now_ms())
    assert told(ground.store, "a", 1) == [(2, "expire", "a:x"), (3, "set", "a:x")]
    assert ground.store.verify() == []


def test_a_change_that_was_taken_back_is_told_too(ground: Ground) -> None:
    put(ground.store, "a:x", "old", tags=["t"])
    put(ground.store, "a:x", "new", tags=["t"])
    ground.store.undo(ANNA)
    (change,) = ground.store.run(BEN, lambda unit: watch(unit, "a", 2, 10)).changes
    entry: Any = change.entry
    assert (change.kind, change.reason, entry.value, entry.tags, entry.version) == ("set", "undo", "old", ("t",), 1)


def test_of_many_who_expect_the_same_one_is_let_through(ground: Ground) -> None:
    """Every writer adds one to what it saw and tries again when it was too late: no addition is lost, no number of the
    board is left out or used twice."""
    put(ground.store, "a:sum", 0)
    failures: list[BaseException] = []

    def add(store: Store, number: int) -> None:
        actor = Actor(f"writer {number}", "test")
        for _ in range(ROUNDS):
            while True:
                seen = store.run(actor, lambda unit: standing(unit, "a:sum"))
                assert seen is not None
                try:
                    put(store, "a:sum", seen.value["value"] + 1, actor, expected=seen.version)
                    break
                except BoardConflict:
                    continue

    def body(store: Store, number: int) -> None:
        try:
            add(store, number)
        except BaseException as failure:  # noqa: BLE001 - raised again below
            failures.append(failure)

    stores = [ground.another() for _ in range(WRITERS)]
    threads = [threading.Thread(target=body, args=(store, number)) for number, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    total = WRITERS * ROUNDS
    last = ground.store.run(BEN, lambda unit: standing(unit, "a:sum"))
    assert last is not None
    assert (last.value, last.version) == ({"value": total}, total + 1)
    changes = ground.store.run(BEN, lambda unit: watch(unit, "a", 0, 1000)).changes
    values: list[Any] = [change.entry for change in changes]
    assert [change.version for change in changes] == list(range(1, total + 2))
    assert [entry.value for entry in values] == list(range(total + 1))
