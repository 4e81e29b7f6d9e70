"""Which bytes of a SQLite file are live: the cells of its b-trees, with their overflow, and the pointers to them. Reads
the file format itself, so that nobody has to trust the library that is being tested."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_INNER_INDEX, _INNER_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13


class Span(NamedTuple):
    """Bytes of a cell, from `begin` up to `end`, and the root page of the b-tree they belong to."""

    root: int
    begin: int
    end: int


class Pages:
    """A whole database file."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        (size,) = struct.unpack_from(">H", raw, 16)
        self.size = 65536 if size == 1 else size
        self.usable = self.size - raw[20]

    def cells(self, root: int) -> Iterator[Span]:
        """Every cell of a b-tree: its payload wherever it lies, its lengths and its pointers."""
        waiting = [root]
        while waiting:
            page = waiting.pop()
            start = (page - 1) * self.size
            header = start + (100 if page == 1 else 0)
            kind = self.raw[header]
            (count,) = struct.unpack_from(">H", self.raw, header + 3)
            inner = kind in (_INNER_INDEX, _INNER_TABLE)
            pointers = header + (12 if inner else 8)
            yield Span(root, pointers, pointers + 2 * count)
            if inner:
                waiting.append(struct.unpack_from(">I", self.raw, header + 8)[0])
            for place in range(count):
                (offset,) = struct.unpack_from(">H", self.raw, pointers + 2 * place)
                at = start + offset
                if inner:
                    waiting.append(struct.unpack_from(">I", self.raw, at)[0])
                yield from self._cell(root, kind, at)

    def _cell(self, root: int, kind: int, begin: int) -> Iterator[Span]:
        at = begin + (4 if kind in (_INNER_INDEX, _INNER_TABLE) else 0)
        if kind == _INNER_TABLE:
            yield Span(root, begin, self._number(at)[1])
            return
        payload, at = self._number(at)
        if kind == _LEAF_TABLE:
            _, at = self._number(at)
        most = self.usable - 35 if kind == _LEAF_TABLE else (self.usable - 12) * 64 // 255 - 23
        if payload <= most:
            yield Span(root, begin, at + payload)
            return
        least = (self.usable - 12) * 32 // 255 - 23
        here = least + (payload - least) % (self.usable - 4)
        here = here if here <= most else least
        yield Span(root, begin, at + here + 4)
        (page,) = struct.unpack_from(">I", self.raw, at + here)
        left = payload - here
        while left > 0:
            start = (page - 1) * self.size
            part = min(left, self.usable - 4)
            yield Span(root, start, start + 4 + part)
            (page,) = struct.unpack_from(">I", self.raw, start)
            left -= part

    def _number(self, at: int) -> tuple[int, int]:
        """A number of variable length, and where the next thing begins."""
        found = 0
        for place in range(9):
            byte = self.raw[at + place]
            if place == 8:
                return (found << 8) | byte, at + 9
            found = (found << 7) | (byte & 0x7F)
            if byte < 0x80:
                return found, at + place + 1
        raise AssertionError("a number has nine bytes at most")


def live_spans(raw: bytes, roots: list[int]) -> list[Span]:
    """The spans of every b-tree: those with these roots, and the schema's own."""
    pages = Pages(raw)
    return [span for root in (1, *roots) for span in pages.cells(root)]
