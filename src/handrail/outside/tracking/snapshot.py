"""Takes a snapshot of a git working tree: every visible file, as it is on disk, as one tree id.

Visible are tracked, staged and untracked files; ignored ones are not. The user's index, refs, hooks and files are left
alone. A scan takes a moment and files may change during it: each change lands either before or after the snapshot.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from handrail.domain.journal.paths import path_bytes, path_text
from handrail.outside.tracking.discovery import Repository
from handrail.outside.tracking.large import LargeFiles, Limits
from handrail.outside.tracking.private_index import PrivateIndex, Scan, names
from handrail.outside.tracking.state import Large, Last, Notes
from handrail.regular_files import open_regular, read_beginning

STATE_FOLDER = b".handrail/"
HEADS = b"refs/heads/"
UNDER_WAY = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
RULE_BYTES = 1 << 20


class Taken(NamedTuple):
    """A snapshot before it is kept."""

    commit: str | None
    branch: str | None
    tree: str
    notes: Notes
    flags: list[str]
    nested: list[bytes]
    """Repositories inside this tree, including submodules."""


class _Sorted(NamedTuple):
    """Changed files by what is to be done with them."""

    stored: list[bytes]
    large: dict[bytes, Large]
    gone: list[bytes]
    folders: list[bytes]
    """Paths that are folders now: submodules, and files that were replaced by folders."""


def is_ours(path: bytes) -> bool:
    """Whether a path is Handrail's own database, lock or snapshot, which is never part of what a task did."""
    if not path.startswith(STATE_FOLDER):
        return False
    name = path[len(STATE_FOLDER) :]
    return name.startswith((b"handrail.db", b"snapshots/")) or (name.endswith(b".gate") and b"/" not in name)


def take(private: PrivateIndex, limits: Limits) -> Taken:
    """Scans the tree into the private index and writes it as a tree. The state must be locked."""
    return _Taking(private, limits).take()


class _Taking:
    """One snapshot being taken."""

    def __init__(self, private: PrivateIndex, limits: Limits) -> None:
        self._private = private
        self._repository = private.repository
        self._limits = limits
        self._top = os.fsencode(private.repository.top) + b"/"
        self._flags = _flags(private.repository)
        large_file = Path(private.state.folder, "large.json")
        self._large = LargeFiles(large_file, private.repository.algorithm, limits, private.deadline)

    def take(self) -> Taken:
        private = self._private
        began_ns = private.state.now_ns()
        size, end = reflog_end(self._repository.git_dir)
        asked = self._repository.start("for-each-ref", "--format=%(objectname) %(refname)", deadline=private.deadline)
        try:
            last = None if private.prepare() else private.state.last()
            scan = private.scan()
            refs = [line.split(b" ", 1) for line in asked.output().split(b"\n")[:-1]]
        finally:
            asked.stop()
        files = self._sort(scan)
        is_same = last is not None and not (files.stored or files.gone)
        tree = last.tree if is_same and last is not None else self._stored_tree(files)
        rules = ignore_rules(self._repository)
        tree, unstaged = self._beside_users_index(tree, last, rules)
        submodules = self._submodules(files, last)
        self._remember(
            last,
            Last(
                tree=tree,
                users_index=index_facts(private.users_index),
                rules=rules,
                unstaged=unstaged,
                submodules=[path_text(path) for path in submodules],
            ),
        )
        notes = Notes(
            began_ns=began_ns,
            tree=tree,
            branch=scan.branch,
            refs=sorted({oid.decode() for oid, _ in refs}),
            heads={path_text(name.removeprefix(HEADS)): oid.decode() for oid, name in refs if name.startswith(HEADS)},
            large={path_text(path): entry for path, entry in self._with_oids(files.large).items()},
            unstaged=unstaged,
            dirty=sorted({path_text(path) for path in (*scan.differing, *scan.changed) if not is_ours(path)}),
            rules=rules,
            reflog_size=size,
            reflog_end=end,
        )
        nested = sorted({*scan.embedded, *submodules})
        return Taken(scan.commit, scan.branch, tree, notes, self._flags, nested)

    def _remember(self, last: Last | None, found: Last) -> None:
        if found != last:
            self._private.state.remember(found)
        self._large.save()

    def _sort(self, scan: Scan) -> _Sorted:
        found = _Sorted([], {}, [path for path in scan.gone if not is_ours(path)], [])
        found.folders.extend(path for path in found.gone if self._is_folder(path))
        changed = sorted({path for path in scan.changed if not is_ours(path)})
        filtered = self._unrun_filters(changed)
        room, count = self._limits.total_bytes, self._limits.files
        for path in changed:
            try:
                facts = os.lstat(self._top + path)
            except OSError:
                found.gone.append(path)
                continue
            if stat.S_ISDIR(facts.st_mode):
                found.stored.append(path)
                found.folders.append(path)
            elif not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
                found.gone.append(path)  # a pipe or a socket is not content
            elif path in filtered or self._is_large(path, facts, room, count):
                found.large[path] = self._large.look(path, self._top + path, facts, is_lfs=filtered.get(path) == "lfs")
            else:
                found.stored.append(path)
                room -= facts.st_size
                count -= 1
        if count <= 0 or room <= 0:
            self._flags.append("over_budget")
        return found

    def _is_large(self, path: bytes, facts: os.stat_result, room: int, count: int) -> bool:
        if not stat.S_ISREG(facts.st_mode):
            return False
        over = facts.st_size > min(self._limits.file_bytes, room) or count <= 0
        return over or self._large.has(path) or not os.access(self._top + path, os.R_OK)

    def _is_folder(self, path: bytes) -> bool:
        full = self._top + path
        return os.path.isdir(full) and not os.path.islink(full)  # noqa: PTH112, PTH114 - bytes

    def _unrun_filters(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """Files under a content filter that is not run, with the filter's name."""
        drivers = self._repository.filters
        if not drivers:
            return {}
        values = {path: os.fsdecode(value) for path, value in self._private.attributes("filter", paths).items()}
        return {path: driver for path, driver in values.items() if driver in drivers}

    def _stored_tree(self, files: _Sorted) -> str:
        self._private.drop(files.gone)
        self._take_up(files.stored)
        became_folders = [path for path in files.folders if path in set(files.gone)]
        if became_folders:  # what is below was hidden by the file's own entry
            below = self._private.untracked(became_folders)
            self._take_up([path for path in below if not path.endswith(b"/") and not is_ours(path)])
        return self._private.tree()

    def _take_up(self, paths: list[bytes]) -> None:
        for path in self._private.take_up(paths):
            self._flags.append(f"unreadable:{path_text(path)}")

    def _beside_users_index(self, tree: str, last: Last | None, rules: str) -> tuple[str, dict[str, str]]:
        """The tree, corrected by what only the user's index can tell, and where that index differs from it. The
        corrections: files that are staged although ignored, and files that are now ignored and untracked."""
        facts = index_facts(self._private.users_index)
        if last is not None and (last.tree, last.users_index, last.rules) == (tree, facts, rules):
            return tree, last.unstaged
        unstaged = self._differences_from(tree)
        staged_only = [path for path, mark in unstaged.items() if mark == "A" and self._is_content(path)]
        not_staged = [path for path, mark in unstaged.items() if mark == "D"]
        ignored = self._private.ignored(not_staged)
        fits = [path for path in staged_only if not self._is_large(path, os.lstat(self._top + path), 1 << 60, 1)]
        if fits or ignored:
            self._private.drop(ignored)
            self._take_up(fits)
            tree = self._private.tree()
            unstaged = self._differences_from(tree)
        return tree, {path_text(path): mark for path, mark in unstaged.items()}

    def _differences_from(self, tree: str) -> dict[bytes, str]:
        arguments = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=none", tree)
        words = names(self._private.git(*arguments, index=self._private.users_index))
        found = {
            path: mark.rsplit(b" ", 1)[-1].decode()[:1] for mark, path in zip(words[0::2], words[1::2], strict=True)
        }
        return {path: mark for path, mark in found.items() if not is_ours(path)}

    def _is_content(self, path: bytes) -> bool:
        full = self._top + path
        return os.path.islink(full) or (os.path.isfile(full) and not self._beyond_link(path))  # noqa: PTH113, PTH114

    def _beyond_link(self, path: bytes) -> bool:
        parts = path.split(b"/")[:-1]
        return any(os.path.islink(self._top + b"/".join(parts[: n + 1])) for n in range(len(parts)))  # noqa: PTH114

    def _submodules(self, files: _Sorted, last: Last | None) -> list[bytes]:
        """The submodules. They rarely change, so they are listed again only if a folder's entry did."""
        if last is not None and not files.folders and not files.gone:
            return [path_bytes(text) for text in last.submodules]
        return self._private.submodules()

    def _with_oids(self, large: dict[bytes, Large]) -> dict[bytes, Large]:
        """Adds the blob ids of large files that are in the user's index exactly as they are on disk."""
        asked = [os.fsdecode(path) for path, entry in large.items() if entry.oid is None][:1000]
        if not asked:
            return large
        index = self._private.users_index
        staged = names(self._private.git("ls-files", "-s", "-z", "--", *asked, index=index))
        differing = set(names(self._private.git("diff-files", "--name-only", "-z", "--", *asked, index=index)))
        found = dict(large)
        for line in staged:
            facts, path = line.split(b"\t", 1)
            if path not in differing and path in large and facts.endswith(b" 0"):
                entry = large[path]
                found[path] = Large(entry.mode, entry.size, entry.print, facts.split(b" ")[1].decode())
        return found


def _flags(repository: Repository) -> list[str]:
    marks = (
        ("shallow", repository.is_shallow),
        ("sparse", repository.is_sparse),
        ("partial_clone", repository.is_partial),
    )
    found = [name for name, is_set in marks if is_set]
    found += [f"under_way:{name}" for name in UNDER_WAY if os.path.exists(f"{repository.git_dir}/{name}")]  # noqa: PTH110
    return found + [f"not_run:{key}" for key in repository.silenced]


def index_facts(index: str) -> list[int]:
    """Size, times and inode of an index: unchanged as long as nobody wrote it."""
    try:
        facts = os.stat(index)  # noqa: PTH116
    except OSError:
        return []
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]


def ignore_rules(repository: Repository) -> str:
    """A fingerprint of the ignore rules that are not files of the tree."""
    digest = hashlib.sha256()
    for file in (f"{repository.common_dir}/info/exclude", repository.excludes_file):
        digest.update(_small_file(file) + b"\0")
    return digest.hexdigest()[:16]


def _small_file(file: str) -> bytes:
    """The content of a file that may be anything: does not block on a pipe."""
    try:
        return read_beginning(file, RULE_BYTES)
    except OSError:
        return b""


def reflog_end(git_dir: str) -> tuple[int, str]:
    """How long HEAD's reflog is, and a fingerprint of its last line."""
    try:
        with os.fdopen(open_regular(f"{git_dir}/logs/HEAD"), "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - 4096))
            return size, log_line_print(log.read(4096))
    except OSError:
        return 0, ""


def log_line_print(content: bytes) -> str:
    """A fingerprint of the last line."""
    last = content.rstrip(b"\n").rpartition(b"\n")[2]
    return hashlib.sha256(last).hexdigest()[:16] if last else ""
