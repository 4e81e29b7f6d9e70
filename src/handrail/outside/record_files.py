"""Small records that Handrail keeps as JSON beside the store: notes of snapshots, worktrees and locks. They lie in
folders that may have come with a repository, so a file that holds no such record counts as none."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from handrail.kernel.limits import RECORD_FILE_BYTES
from handrail.known_types import make_known
from handrail.regular_files import read_regular

RecordT = TypeVar("RecordT")


def read_record(file: Path | str, kind: type[RecordT]) -> RecordT | None:
    """The record in a file; None if there is none."""
    try:
        return record_in(read_regular(file, RECORD_FILE_BYTES), kind)
    except OSError:
        return None


def record_in(raw: bytes, kind: type[RecordT]) -> RecordT | None:
    """The record that these bytes are; None if they are none."""
    make_known(kind)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
