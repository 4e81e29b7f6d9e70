"""Lines on file descriptors: reads newline-delimited messages of limited size, writes whole lines. No JSON."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import msgspec

_CHUNK = 64 * 1024


class Line(msgspec.Struct, frozen=True):
    """One line without its newline. `cut` means it was longer than the limit and only its beginning was kept."""

    data: bytes
    cut: bool = False


class OutputLost(Exception):  # noqa: N818 - a fact about the world the transport must act on
    """Nobody is reading our output any longer."""


def read_lines(fd: int, max_bytes: int) -> Iterator[Line]:
    """Lines until end of input. Blank lines are skipped, and a last line without a newline counts. An overlong line is
    discarded as it streams past: it costs time but no memory."""
    pending = bytearray()
    overlong = False
    while chunk := os.read(fd, _CHUNK):
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            pending += piece
            if line := _finished(pending, overlong, max_bytes):
                yield line
            pending.clear()
            overlong = False
        if not overlong:
            pending += rest
            overlong = len(pending) > max_bytes
    if line := _finished(pending, overlong, max_bytes):
        yield line


def _finished(pending: bytearray, overlong: bool, max_bytes: int) -> Line | None:
    if overlong or len(pending) > max_bytes:
        return Line(bytes(pending[:_CHUNK]), cut=True)
    data = bytes(pending).strip()
    return Line(data) if data else None


class LineWriter:
    """Writes lines to a descriptor, whole and one at a time, from any thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._is_terminal = os.isatty(fd)

    def write(self, data: bytes) -> None:
        view = memoryview((_seen(data) if self._is_terminal else data) + b"\n")
        with self._lock:
            while view:
                try:
                    view = view[os.write(self._fd, view) :]
                except OSError as problem:
                    raise OutputLost(str(problem)) from problem


def _seen(data: bytes) -> bytes:
    """A line of JSON for somebody who tries a server by hand: the same value, with nothing in it that could steer their
    terminal."""
    import json  # noqa: PLC0415 - a client is no terminal

    return json.dumps(json.loads(data), separators=(",", ":")).replace("\x7f", "\\u007f").encode()
