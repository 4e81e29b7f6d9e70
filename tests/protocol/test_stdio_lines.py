"""Lines on descriptors: what counts as one, what is skipped, and what becomes of those that are too long."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.stdio import Line, LineWriter, OutputLost, read_lines

MOST = 100_000


def lines_of(*writes: bytes, most: int = MOST) -> list[Line]:
    """What is read when these are written one after the other and the writer leaves."""
    reading, writing = os.pipe()

    def write() -> None:
        for data in writes:
            view = memoryview(data)
            while view:
                view = view[os.write(writing, view) :]
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return list(read_lines(reading, most))
    finally:
        writer.join()
        os.close(reading)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"  a \t\n", [b"a"]),
        (b"\n\n \n\t\r\n\r\n", []),
        (b"   ", []),
        (b"", []),
        (b"a b\n", [b"a b"]),
    ],
)
def test_a_line_is_what_stands_between_newlines_without_the_space_around_it(written: bytes, read: list[bytes]) -> None:
    assert lines_of(written) == [Line(data) for data in read]


@given(st.lists(st.binary(max_size=40).filter(lambda data: b"\n" not in data), max_size=8), st.integers(1, 30))
def test_lines_do_not_depend_on_how_they_are_cut_into_writes(lines: list[bytes], piece: int) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    pieces: Iterable[bytes] = (whole[at : at + piece] for at in range(0, len(whole), piece))
    assert lines_of(*pieces) == [Line(line.strip()) for line in lines if line.strip()]


def test_a_line_over_the_limit_is_cut_and_the_next_one_is_whole() -> None:
    first, second, third = lines_of(b"x" * MOST + b"\n", b"y" * (3 * MOST) + b"\n", b"z\n")
    assert first == Line(b"x" * MOST)
    assert second.cut
    assert 0 < len(second.data) <= MOST
    assert set(second.data) == {ord("y")}
    assert third == Line(b"z")


def test_a_last_line_over_the_limit_is_cut_too() -> None:
    (only,) = lines_of(b"x" * (MOST + 1))
    assert only.cut


def test_output_that_nobody_reads_is_told() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(OutputLost):
        LineWriter(writing).write(b"a")
    os.close(writing)
