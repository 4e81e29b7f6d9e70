"""A manifest: what every file in a plain directory contained at one moment, by hash. Contents are not kept.

A directory is walked once; a file is read only if its times, size or inode suggest that it may have changed since the
last manifest. A file that was touched shortly before it was read is read again next time: a second change within one
tick of the file system's clock leaves no other trace. Symbolic links are recorded as links and never followed; pipes,
sockets and devices are not content and are left out, as are empty directories.

Time and number of files are limited. A file that there was no time to read is known by size and times alone (`digest`
is empty); directories that the walk did not reach are listed in `unseen`, and nothing is claimed about them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from handrail.known_types import make_known
from handrail.outside.tracking.ignore_rules import IGNORE_FILE, MOST_BYTES, IgnoreRules, default_rules, is_ignored
from handrail.outside.tracking.own_files import overlooked

QUIET_NS = 3_000_000_000
"""Longer than a tick of any file system's clock."""
MOST_FILES = 1_000_000
"""Files in one manifest, at some 300 bytes of memory each."""
BUDGET_S = 10.0
"""Time for one manifest. Clients give up on a call after 30 seconds."""
CHUNK = 1024 * 1024

FORMAT = 1
FILE, EXECUTABLE, LINK = 0, 1, 2
BINARY = -1
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_LOOKED_AT_FOR_NUL = 8000
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class ManifestEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file. `stamp` is size, times and inode: if it is unchanged and was `settled`, so is the content."""

    kind: int
    stamp: tuple[int, int, int, int]
    digest: bytes
    lines: int
    """Lines of a text; BINARY for anything else and for files that were not read."""
    settled: bool

    def same_content(self, other: ManifestEntry) -> bool:
        """Exact if both were read; otherwise judged by size and times."""
        if self.digest and other.digest:
            return self.kind == other.kind and self.digest == other.digest
        return self.kind == other.kind and self.stamp == other.stamp


class FileManifest(msgspec.Struct, frozen=True):
    """Every visible file below one directory, by path."""

    files: dict[str, ManifestEntry]
    hidden: dict[str, ManifestEntry] = {}
    """Files that a changed .gitignore has hidden although they still exist, or came into being hidden by one that is
    younger than the task."""
    ignore_files: dict[str, str] = {}
    """The .gitignore files in effect, by directory."""
    unseen: list[str] = []
    """Directories that were not looked into; the empty name is the root."""
    unreadable: list[str] = []
    out_of_time: bool = False

    tree: str | None = None
    """A hash of all names and contents: equal for equal directories, at any time and place. None if a part is
    unknown."""


class ManifestReading(NamedTuple):
    """A manifest, and how it was obtained."""

    manifest: FileManifest
    read: int
    """How many files were read."""
    is_new: bool
    """Whether it differs from the previous one in any way."""


class ManifestBounds(NamedTuple):
    """What one manifest may cost."""

    elapsed: Callable[[], float]
    """Seconds since some fixed moment."""
    budget_s: float = BUDGET_S
    most_files: int = MOST_FILES
    quiet_ns: int = QUIET_NS


def read_manifest(
    root: str,
    previous: FileManifest,
    *,
    now_ns: int,
    state: str,
    bounds: ManifestBounds,
    began: FileManifest | None = None,
) -> ManifestReading:
    """The manifest of a directory. `now_ns` is the file system's own time, `state` a folder to leave out, `began` what
    a task began with: what the rules of then would show is looked at, too."""
    walk = _Walk(root, state, bounds)
    walk.run()
    by_old_rules: dict[str, os.stat_result] = {}
    if began is not None and began.ignore_files != walk.ignore_files:
        second = _Walk(root, state, bounds, texts=began.ignore_files)
        second.run()
        walk.unseen += [folder for folder in second.unseen if folder not in walk.unseen]
        by_old_rules = {path: facts for path, facts in second.found.items() if path not in walk.found}
    reading = _Reading(root, previous, now_ns - bounds.quiet_ns, walk.ends_at, bounds.elapsed)
    files = {path: entry for path, facts in walk.found.items() if (entry := reading.entry(path, facts)) is not None}
    hidden = _hidden(root, previous, files, walk.ignore_files, reading)
    for path, facts in by_old_rules.items():
        if path not in hidden and (entry := reading.entry(path, facts)) is not None:
            hidden[path] = entry
    out_of_time = walk.out_of_time or reading.out_of_time
    manifest = FileManifest(
        files, hidden, walk.ignore_files, walk.unseen, reading.unreadable, out_of_time, tree=previous.tree
    )
    is_new = bool(reading.read) or manifest != previous
    if is_new or previous.tree is None:
        manifest = msgspec.structs.replace(manifest, tree=None if walk.unseen else _tree(files))
    return ManifestReading(manifest, reading.read, is_new or manifest.tree != previous.tree)


def _tree(files: dict[str, ManifestEntry]) -> str | None:
    whole = _sha256(b"")
    for path in sorted(files):
        entry = files[path]
        if not entry.digest:
            return None
        whole.update(b"%d %s %s\0" % (entry.kind, entry.digest, _name(path)))
    return whole.hexdigest()


class _Walk:
    """Finds the files, directory by directory in the order of names, so that two walks that end early end alike."""

    def __init__(self, root: str, state: str, bounds: ManifestBounds, *, texts: dict[str, str] | None = None) -> None:
        """With `texts` those are the rules, and not what is in the directory now."""
        self.root = root
        self._texts = texts
        self.found: dict[str, os.stat_result] = {}
        self.ignore_files: dict[str, str] = {}
        self.unseen: list[str] = []
        self.out_of_time = False
        self.ends_at = bounds.elapsed() + bounds.budget_s
        self._bounds = bounds
        self._state = state
        self._pending: list[tuple[str, IgnoreRules]] = [("", default_rules())]

    def run(self) -> None:
        self._walk()
        for path in map(os.fsdecode, overlooked(os.fsencode(self.root) + b"/")):
            with contextlib.suppress(OSError):
                facts = os.lstat(_full_path(self.root, path))
                if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                    self.found[path] = facts

    def _walk(self) -> None:
        while self._pending:
            if self._bounds.elapsed() > self.ends_at:
                self.out_of_time = True
                self.unseen += [folder for folder, _ in self._pending]
                return
            folder, rules = self._pending.pop()
            try:
                with os.scandir(_full_path(self.root, folder)) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except (FileNotFoundError, NotADirectoryError):
                if not folder:
                    raise
                continue  # gone since its parent was listed
            except OSError:
                self.unseen.append(folder)
                continue
            self._take_folder(folder, entries, rules)

    def _take_folder(self, folder: str, entries: list[os.DirEntry[str]], rules: IgnoreRules) -> None:
        rules = rules.below(folder, self._ignore_text(folder, entries))
        prefix = f"{folder}/" if folder else ""
        files: list[tuple[str, os.stat_result]] = []
        folders: list[str] = []
        for entry in entries:
            path = prefix + entry.name
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                if rules.ignores(path, entry.name, is_folder) or entry.path == self._state:
                    continue
                if is_folder:
                    folders.append(path)
                    continue
                facts = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since it was listed
            except OSError:  # a directory that may be listed and not entered
                self.unseen.append(folder)
                return
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                files.append((path, facts))
        if len(self.found) + len(files) > self._bounds.most_files:
            self.unseen.append(folder)
            return
        self.found.update(files)
        self._pending += [(path, rules) for path in reversed(folders)]

    def _ignore_text(self, folder: str, entries: list[os.DirEntry[str]]) -> str | None:
        """The text of the directory's own .gitignore. If it cannot be read, that is reported when the files are
        read."""
        if self._texts is not None:
            return self._texts.get(folder)
        for entry in entries:
            if entry.name == IGNORE_FILE:
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        self.ignore_files[folder] = _beginning_of(entry.path)
                break
        return self.ignore_files.get(folder)


class _Reading:
    """Reads files that may have changed, while there is time."""

    def __init__(
        self, root: str, previous: FileManifest, quiet_since: int, ends_at: float, elapsed: Callable[[], float]
    ) -> None:
        self.read = 0
        self.unreadable: list[str] = []
        self.out_of_time = False
        self._root = root
        self._known = previous.hidden | previous.files if previous.hidden else previous.files
        self._quiet_since = quiet_since
        self._ends_at = ends_at
        self._elapsed = elapsed

    def entry(self, path: str, facts: os.stat_result) -> ManifestEntry | None:
        """The file's entry; None if it is gone."""
        kind, stamp = _kind(facts), _stamp(facts)
        known = self._known.get(path)
        is_same = known is not None and known.kind == kind and known.stamp == stamp
        if known is not None and is_same and known.settled:
            return known
        if self.out_of_time or self._elapsed() > self._ends_at:
            self.out_of_time = True
            return known if is_same else ManifestEntry(kind, stamp, b"", BINARY, False)
        try:
            return self._read(_full_path(self._root, path), facts)
        except FileNotFoundError:
            return None
        except _OutOfTime:
            self.out_of_time = True
        except OSError:
            self.unreadable.append(path)
        return ManifestEntry(kind, stamp, b"", BINARY, False)

    def _read(self, file: str, facts: os.stat_result) -> ManifestEntry:
        self.read += 1
        if stat.S_ISLNK(facts.st_mode):
            target = os.fsencode(os.readlink(file))  # noqa: PTH115 - the name need not be UTF-8
            return ManifestEntry(LINK, _stamp(facts), _sha256(target).digest(), 1, self._is_settled(facts))
        descriptor = os.open(file, _OPENING)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise FileNotFoundError(file)  # something else took its name
            digest, lines = self._content(descriptor, facts.st_size)
        finally:
            os.close(descriptor)
        return ManifestEntry(_kind(facts), _stamp(facts), digest, lines, self._is_settled(facts))

    def _content(self, descriptor: int, size: int) -> tuple[bytes, int]:
        wanted = min(size + 1, CHUNK)
        chunk = os.read(descriptor, wanted)
        hashed = _sha256(chunk)
        lines = chunk.count(b"\n")
        is_text = b"\0" not in chunk[:_LOOKED_AT_FOR_NUL]
        last = chunk[-1:]
        while len(chunk) == wanted:  # a short read means the end of the file
            if self._elapsed() > self._ends_at:
                raise _OutOfTime
            chunk = os.read(descriptor, wanted := CHUNK)
            hashed.update(chunk)
            lines += chunk.count(b"\n")
            last = chunk[-1:] or last
        return hashed.digest(), lines + (last not in (b"", b"\n")) if is_text else BINARY

    def _is_settled(self, facts: os.stat_result) -> bool:
        return max(facts.st_mtime_ns, facts.st_ctime_ns) < self._quiet_since


class _OutOfTime(Exception):  # noqa: N818 - not shown to anyone
    """The time ran out inside a large file."""


def _hidden(
    root: str, previous: FileManifest, files: dict[str, ManifestEntry], ignore_files: dict[str, str], reading: _Reading
) -> dict[str, ManifestEntry]:
    """Files of the previous manifest that still exist but are now ignored."""
    if not previous.hidden and previous.ignore_files == ignore_files:
        return {}
    found: dict[str, ManifestEntry] = {}
    for path in (*previous.files, *previous.hidden):
        if path not in files and is_ignored(path, ignore_files):
            try:
                facts = os.lstat(_full_path(root, path))
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                entry = reading.entry(path, facts)
                if entry is not None:
                    found[path] = entry
    return found


def _sha256(data: bytes) -> hashlib._Hash:
    """The fastest hash in the standard library on processors with hardware support: twice BLAKE2's speed here."""
    return hashlib.sha256(data, usedforsecurity=False)


def _kind(facts: os.stat_result) -> int:
    if stat.S_ISLNK(facts.st_mode):
        return LINK
    return EXECUTABLE if facts.st_mode & stat.S_IXUSR else FILE


def _stamp(facts: os.stat_result) -> tuple[int, int, int, int]:
    return (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


def _beginning_of(file: str) -> str:
    descriptor = os.open(file, _OPENING)
    try:
        return os.read(descriptor, MOST_BYTES).decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)


def _full_path(root: str, path: str) -> str:
    return f"{root}/{path}" if path else root


def _name(path: str) -> bytes:
    return path.encode(_ENCODING, _ERRORS)


class _Written(msgspec.Struct, frozen=True, array_like=True):
    """A manifest in stored form. Names are bytes, as the file system has them."""

    format: int
    files: dict[bytes, ManifestEntry]
    hidden: dict[bytes, ManifestEntry]
    ignore_files: dict[bytes, bytes]
    unseen: list[bytes]
    unreadable: list[bytes]
    out_of_time: bool
    tree: str | None


def to_bytes(manifest: FileManifest) -> bytes:
    written = _Written(
        FORMAT,
        {_name(path): entry for path, entry in manifest.files.items()},
        {_name(path): entry for path, entry in manifest.hidden.items()},
        {_name(folder): text.encode("utf-8", "surrogateescape") for folder, text in manifest.ignore_files.items()},
        list(map(_name, manifest.unseen)),
        list(map(_name, manifest.unreadable)),
        manifest.out_of_time,
        manifest.tree,
    )
    return msgspec.msgpack.encode(written)


def from_bytes(content: bytes) -> FileManifest | None:
    """The stored manifest; None if this is not one, or one of another format."""
    try:
        make_known(_Written)
        written = msgspec.msgpack.decode(content, type=_Written)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if written.format != FORMAT:
        return None
    return FileManifest(
        {name.decode(_ENCODING, _ERRORS): entry for name, entry in written.files.items()},
        {name.decode(_ENCODING, _ERRORS): entry for name, entry in written.hidden.items()},
        {os.fsdecode(folder): text.decode("utf-8", "surrogateescape") for folder, text in written.ignore_files.items()},
        list(map(os.fsdecode, written.unseen)),
        list(map(os.fsdecode, written.unreadable)),
        written.out_of_time,
        written.tree,
    )
