"""Files and folders that changed in the very second in which git looked at them.

Most builds of git compare times by the second. If somebody then changes a file again within that second, keeps its size
and sets its time back, git cannot tell; the same holds for a folder that gets a file, and the cache of untracked files.
Git's index has the times to the nanosecond, though, and this module reads the doubtful ones from there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from handrail.kernel.limits import INDEX_FILE_BYTES
from handrail.regular_files import read_regular

_ENTRIES_FROM = 12
_TIMES = struct.Struct(">IIII")
_OIDS = {"sha1": 20, "sha256": 32}
_LONG_FLAGS = 0x4000
_UNTRACKED_CACHE = b"UNTR"
_FILE_TYPES = (0o10, 0o12)


class Doubtful(NamedTuple):
    """What must be looked at again."""

    files: dict[bytes, int]
    """Files, with the time of their last change in nanoseconds, as git saw it."""
    folders: bool
    """Whether a folder in the cache of untracked files is among them."""


def has_untracked_cache(index: str) -> bool:
    """Whether an index has a cache of untracked files."""
    return _UNTRACKED_CACHE in _content(index)


def _content(index: str) -> bytes:
    try:
        return read_regular(index, INDEX_FILE_BYTES)
    except OSError:
        return b""


def doubtful(index: str, algorithm: str, seconds: Iterable[int]) -> Doubtful:
    """What an index says about some seconds: those that passed while it was made."""
    content = _content(index)
    files: dict[bytes, int] = {}
    folders = False
    cache = content.rfind(_UNTRACKED_CACHE)
    end = len(content) if cache < 0 else cache
    for second in seconds:
        wanted = struct.pack(">I", second)
        at = content.find(wanted, _ENTRIES_FROM, end)
        while at >= 0:
            if (at - _ENTRIES_FROM) % 8 == 0:
                path = _path_at(content, at, _OIDS[algorithm])
                files[path] = second * 1_000_000_000 + _TIMES.unpack_from(content, at)[1]
            at = content.find(wanted, at + 1, end)
        folders |= cache >= 0 and content.find(wanted, cache) >= 0
    return Doubtful({path: time for path, time in files.items() if path}, folders)


def _path_at(content: bytes, at: int, oid_bytes: int) -> bytes:
    """The name in the entry that begins here; nonsense if none does."""
    flags_at = at + 40 + oid_bytes
    if flags_at + 4 > len(content):
        return b""
    (mode,), (flags,) = struct.unpack_from(">I", content, at + 24), struct.unpack_from(">H", content, flags_at)
    if mode >> 12 not in _FILE_TYPES:
        return b""
    begin = flags_at + (4 if flags & _LONG_FLAGS else 2)
    return content[begin : content.find(b"\0", begin)]


def changed_since(top: bytes, known: Mapping[bytes, int]) -> list[bytes]:
    """The doubtful files that have changed after git looked."""
    found = []
    for path, time in known.items():
        try:
            if os.lstat(top + path).st_ctime_ns != time:
                found.append(path)
        except OSError:  # it is gone, which git sees
            continue
    return found
