"""`bench/registry` measures what it says: all of a ledger page by page, the same events raw, and a lost one is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.registry import ledger
from bench.registry.contestants import MANY, events_of, sections
from bench.registry.ledger import PAGE, READS, Appends, RawAppends, Watch, problems_of, store_over
from bench.registry.notice import Heard, ratio, table
from handrail.kernel.ledger import Event
from handrail.store.memory import MemoryEngine
from handrail.store.sqlite import SqliteEngine


def test_what_was_acknowledged_and_is_not_there_is_a_problem(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "bench.db", version="0")
    appends = Appends(store_over(engine), "ours", 3)
    for _ in range(4):
        appends()
    assert problems_of(engine, 12) == []
    assert problems_of(engine, 13) == ["13 events were acknowledged, 12 are there"]
    engine.close()


def test_units_and_raw_rows_write_events_of_one_size() -> None:
    """An event changes an entry that was set a round before, in both."""
    engine = MemoryEngine()
    appends = Appends(store_over(engine), "a", 100)
    for _ in range(3):
        appends()
    through_units = store_over(engine).feed()[-1]
    raw, row = RawAppends("a").next(300)[-1]
    assert (raw.seq, raw.kind, raw.stream) == (through_units.seq, through_units.kind, through_units.stream)
    assert b'"version":300' in raw.body
    assert b'"version":100' in raw.body
    assert [dict(change.after or {}) for change in through_units.changes] == [
        {"version": 300, "updated_at": through_units.changes[0].after["updated_at"]}  # type: ignore[index]
    ]
    assert row[0] == through_units.changes[0].key


@pytest.mark.parametrize("name", READS)
def test_a_watch_reads_every_page_and_begins_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "FILLED", 1000)
    monkeypatch.setattr(ledger, "FILLED_TOGETHER", 50)
    store = store_over(MemoryEngine())
    ledger.fill(store)
    pages: list[list[Event]] = []

    def read(unit: object, last: Event | None) -> list[Event]:
        pages.append(READS[name](unit, last))  # type: ignore[arg-type]
        return pages[-1]

    watch = Watch(store, read)
    for _ in range(6):
        watch()
    expected = [event for event in store.feed() if "stream" not in name or event.stream == "bb:followed"]
    seen = [event for page in pages for event in page]
    assert seen[: len(expected)] == expected
    assert pages[len(expected) // PAGE + 1] == expected[:PAGE]


def test_every_step_has_its_number_of_events() -> None:
    counts = {contestant.name: events_of(contestant) for known in sections(1.0).values() for contestant in known}
    assert counts["units, 1 event a commit"] == 1
    assert counts[f"raw apsw, {MANY} events a commit"] == MANY
    assert counts["unit.feed"] == PAGE


def test_a_notice_is_compared_within_its_round() -> None:
    floor = [Heard(1.0, 1.0), Heard(1.0, 10.0), Heard(1.0, 2.0)]
    ours = [Heard(1.0, 20.0), Heard(1.0, 30.0), Heard(1.0, 20.0)]
    assert ratio(ours, floor) == 10.0
    lines = table({"floor-sqlite": floor, "ours-sqlite": ours})
    cells = [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines[2:]]
    assert [row[:2] + row[3:] for row in cells] == [
        ["1.00", "2.00", "10.0", "", "3"],
        ["1.00", "20.00", "30.0", "10.0", "3"],
    ]
