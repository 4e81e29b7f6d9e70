"""Files that are fingerprinted instead of stored: large ones, those over the budget of one snapshot, and files whose
content filter is not run. A tracker needs to know whether a file changed, not to hold a copy of it.

git-lfs is imitated: the blob that its filter would make is a few lines with the hash and the size of the file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from handrail.domain.journal.paths import path_text
from handrail.outside.atomic_files import write_whole
from handrail.outside.record_files import read_record
from handrail.outside.tracking.git_process import Deadline, GitTimedOut
from handrail.outside.tracking.state import Large

SETTLED_NS = 2_000_000_000
"""A fingerprint is reused only if the file had been left alone for this long when it was taken: a second write within
one clock tick leaves no trace."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
POINTER_BYTES = 1024
CHUNK = 1 << 20


class _Remembered(msgspec.Struct, frozen=True, array_like=True):
    """A fingerprint, and the file's facts when it was taken."""

    facts: list[int]
    taken_ns: int
    found: Large


class Limits(NamedTuple):
    """How much one snapshot may cost. What exceeds a limit is fingerprinted, flagged or left out, and reported."""

    seconds: float = 20.0
    file_bytes: int = 2 * 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024
    files: int = 5000
    hashed_bytes: int = 512 * 1024 * 1024
    """Larger files are known by size and times only."""
    nested: int = 16
    """How many repositories inside the tree are looked into."""
    depth: int = 4


class LargeFiles:
    """The fingerprints of one tree. A file that was fingerprinted once stays so while it differs from the index: the
    same content must not be stored one time and fingerprinted another."""

    def __init__(self, file: Path, algorithm: str, limits: Limits, deadline: Deadline) -> None:
        self._file = file
        self._algorithm = algorithm
        self._limits = limits
        self._deadline = deadline
        self._used: dict[str, _Remembered] = {}
        self._known = read_record(file, dict[str, _Remembered]) or {}

    def has(self, path: bytes) -> bool:
        return path_text(path) in self._known

    def look(self, path: bytes, full: bytes, facts: os.stat_result, *, is_lfs: bool) -> Large:
        """The fingerprint of a file, retaken only if the file may have changed."""
        text = path_text(path)
        signature = [facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, int(is_lfs)]
        known = self._known.get(text)
        newest = max(facts.st_mtime_ns, facts.st_ctime_ns)
        if known is None or known.facts != signature or known.taken_ns - newest < SETTLED_NS:
            taken = time.time_ns()
            known = _Remembered(signature, taken, self._fingerprint(full, facts, is_lfs=is_lfs))
        self._used[text] = known
        return known.found

    def save(self) -> None:
        if self._used != self._known:
            write_whole(self._file, msgspec.json.encode(self._used))

    def _fingerprint(self, full: bytes, facts: os.stat_result, *, is_lfs: bool) -> Large:
        mode = "100755" if facts.st_mode & 0o100 else "100644"
        if stat.S_ISLNK(facts.st_mode):
            target = os.readlink(full)  # noqa: PTH115
            print_, raw = f"sha256:{hashlib.sha256(target).hexdigest()}", blob_id(self._algorithm, target)
            return Large("120000", facts.st_size, print_, raw=raw)
        times = f"{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ctime_ns}:{facts.st_ino}"
        if facts.st_size > self._limits.hashed_bytes and not is_lfs:
            return Large(mode, facts.st_size, f"stat:{times}")
        try:
            digest, raw, pointer = self._hash_of(full, facts.st_size)
        except OSError:
            return Large(mode, facts.st_size, f"unreadable:{times}")
        if not is_lfs:
            return Large(mode, facts.st_size, f"sha256:{digest}", raw=raw)
        blob = pointer or LFS_POINTER + f"oid sha256:{digest}\nsize {facts.st_size}\n".encode()
        oid = blob_id(self._algorithm, blob)
        return Large(mode, facts.st_size, f"lfs:{oid}", oid)

    def _hash_of(self, full: bytes, size: int) -> tuple[str, str, bytes | None]:
        """The hash of a file's content and the id of such a blob; and the content itself if it is an LFS pointer."""
        digest, first = hashlib.sha256(), b""
        blob = hashlib.new(self._algorithm, b"blob %d\0" % size, usedforsecurity=False)
        descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            while chunk := os.read(descriptor, CHUNK):
                digest.update(chunk)
                blob.update(chunk)
                first = first or chunk
                if self._deadline.left() <= 0:
                    raise GitTimedOut((os.fsdecode(full),), -9, b"reading it took too long")
        finally:
            os.close(descriptor)
        is_pointer = first.startswith(LFS_POINTER) and len(first) < POINTER_BYTES
        return digest.hexdigest(), blob.hexdigest(), first if is_pointer else None


def blob_id(algorithm: str, content: bytes) -> str:
    """The id that git gives a blob of these bytes."""
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
