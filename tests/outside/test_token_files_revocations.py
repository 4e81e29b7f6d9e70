"""The mark by which servers on this machine hear of a revocation."""

from __future__ import annotations

import stat
from pathlib import Path

from handrail.outside.token_files import REVOCATIONS, note_revocation, revocation_mark


def test_every_revocation_changes_the_mark(tmp_path: Path) -> None:
    marks = [revocation_mark(str(tmp_path / REVOCATIONS))]
    for _ in range(3):
        assert note_revocation(tmp_path, "tok_1")
        marks.append(revocation_mark(str(tmp_path / REVOCATIONS)))
    assert len(set(marks)) == 4


def test_nobody_else_can_read_or_write_it(tmp_path: Path) -> None:
    note_revocation(tmp_path, "tok_1")
    file = tmp_path / REVOCATIONS
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_written_to_is_told_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / REVOCATIONS.parent).write_text("a file is in the way")
    assert not note_revocation(tmp_path, "tok_1")
    assert revocation_mark(str(tmp_path / REVOCATIONS)) == 0
