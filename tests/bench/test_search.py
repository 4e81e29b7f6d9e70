"""The bench of searches measures what it says: both ways find the same, and the index follows what is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.search.__main__ import Filled, opened, read_ledger, scan, search, write_one
from bench.search.filling import word


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    made = opened(tmp_path, 300)
    yield made
    made.engine.close()


def test_the_index_finds_what_reading_everything_finds(filled: Filled) -> None:
    assert read_ledger(filled) == 300
    for typed in (f"{word(0)}*", f'"{word(0)} {word(1)}"'):
        assert 0 < search(filled, typed).total <= scan(filled, typed)


def test_one_more_note_is_found(filled: Filled) -> None:
    before = search(filled, "src").total
    assert search(write_one(filled, 7), "src").total == before + 1 == 301
