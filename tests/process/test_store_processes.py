"""Many processes on one SQLite file: nothing lost, nothing doubled, nobody told that the file is locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.store_audit import audit
from tests.process.store_crew import Writer


def write_together(path: Path, *, processes: int, units: int, seed: int) -> None:
    writers = [Writer(path, f"w{number}", seed, last=units) for number in range(processes)]
    for writer in writers:
        writer.finish()
    refused = [writer.other for writer in writers if writer.process.returncode != 0]
    assert refused == [], f"seed {seed}"
    acks = [ack for writer in writers for ack in writer.acks]
    assert len(acks) == processes * units
    assert audit(path, acks) == [], f"seed {seed}"
    longest = [writer.said("longest_ms") for writer in writers]
    print(f"{processes} processes, {len(acks)} units; longest wait of each: {longest} ms")


def test_four_processes_write_mixed_units_to_one_file(tmp_path: Path) -> None:
    write_together(tmp_path / "store.db", processes=4, units=150, seed=4)


@pytest.mark.torture
def test_eight_processes_make_ten_thousand_mixed_writes(tmp_path: Path) -> None:
    write_together(tmp_path / "store.db", processes=8, units=1250, seed=8)
