"""Documents are told apart by their bytes, all of them, and shown as text."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.pipeline.workspace_texts import (
    ABSENT,
    UNREAD,
    WorkspaceTexts,
    document_bytes,
    fingerprint,
    is_accepted,
    is_short,
    shown_text,
    unticked,
    was_there,
)


def print_of(data: bytes | None) -> str:
    return fingerprint(WorkspaceTexts({"a.md": data}), "a.md")


@given(st.binary(max_size=40))
def test_a_fingerprint_is_the_whole_hash_of_the_bytes(data: bytes) -> None:
    read = WorkspaceTexts({"a.md": data})
    assert print_of(data) == hashlib.sha256(data).hexdigest()
    assert document_bytes(read, "a.md") == data
    read["a.md"].encode()


def test_bytes_that_a_lenient_reader_takes_for_the_same_are_not() -> None:
    several = [b"\xff", b"\xfe", "\ufffd".encode(), b"\\xff", shown_text(b"\xff").encode(), b"", b"\xed\xa0\x80"]
    assert len({print_of(data) for data in several}) == len(several)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain\r\n", "plain\r\n"),
        (b"a\xffb", "[not UTF-8: 1 byte, shown here as \\xNN]\n\na\\xffb"),
        (b"\xe9\xe9", "[not UTF-8: 2 bytes, shown here as \\xNN]\n\n\\xe9\\xe9"),
    ],
)
def test_a_text_says_what_is_not_text(data: bytes, shown: str) -> None:
    assert WorkspaceTexts({"a.md": data})["a.md"] == shown


def test_what_could_not_be_read_is_never_what_was_accepted() -> None:
    assert (print_of(None), fingerprint({}, "a.md")) == (UNREAD, ABSENT)
    assert not is_accepted(UNREAD, UNREAD)
    assert is_accepted(ABSENT, ABSENT)


def test_a_hash_of_64_bits_accepts_nothing_and_still_knows_what_was_there() -> None:
    """What an older Handrail kept: somebody can make another document with the same 64 bits."""
    found = print_of(b"text")
    assert is_short(found[:16])
    assert not is_accepted(found[:16], found)
    assert was_there((found[:16],), found)
    assert not was_there(("", found[:16]), print_of(b"another"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"- [ ] a\n", b"- [x] a\n"),
        (b"1. [ ] a\n", b"1. [X] a\n"),
        (b"## Task 1: a\n", b"## Task 1: a [x]\n"),
        (b"## Task 1: a\n", "## Task 1: a ✔\ufe0f \n".encode()),
        (b"## Task 1: a", b"## Task 1: a\n- [x] Done.\n"),
        (b"\xff\n- [ ] a\n", b"\xff\n- [x] a\n"),
    ],
)
def test_a_tick_is_no_change(before: bytes, after: bytes) -> None:
    assert unticked(WorkspaceTexts({"a.md": before}), "a.md") == unticked(WorkspaceTexts({"a.md": after}), "a.md")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"- [ ] a\n", b"- [x] b\n"),
        (b"## Task 1: a\n", b"## Task 1: a\n- [x] done, then push\n"),
        (b"a\n", b"a\n\xff\n"),
        (b"a\xff\n", b"a\xfe\n"),
        (b"a\n", None),
    ],
)
def test_anything_else_is(before: bytes, after: bytes | None) -> None:
    assert unticked(WorkspaceTexts({"a.md": before}), "a.md") != unticked(WorkspaceTexts({"a.md": after}), "a.md")


def test_a_long_line_of_blanks_is_read_in_no_time() -> None:
    for data in (b" " * 2_000_000 + b"x", b"- [x]" + b" " * 2_000_000 + b"x", b"- " + b"\t" * 2_000_000):
        assert len(unticked(WorkspaceTexts({"a.md": data}), "a.md")) == 64
