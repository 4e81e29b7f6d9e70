"""Records beside the store: what is none counts as absent, whatever it is instead."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from handrail.outside.record_files import read_record, record_in


class Kept(msgspec.Struct):
    """A record."""

    name: str = ""


def test_a_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_bytes(b'{"name": "a"}')
    assert read_record(tmp_path / "kept.json", Kept) == Kept("a")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b'{"name": 1}',
        b'{"name": "\xff"}',
        b'{"x": ' + b"[" * 100_000,
        b'{"name": ' + b"1" * 5000 + b"}",
    ],
    ids=["empty", "cut", "list", "type", "bytes", "deep", "digits"],
)
def test_what_is_no_record_is_none(raw: bytes) -> None:
    assert record_in(raw, Kept) is None


def test_what_is_no_file_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "endless", "missing"):
        assert read_record(tmp_path / name, Kept) is None
