"""The private index: a copy of the user's index that follows the working tree instead of the next commit.

It holds every visible file, tracked or not, as it is on disk; its tree is the snapshot. It starts as a copy of the
user's index and is then kept, because its cache of file times is what makes the next scan cheap. Objects that it needs
and the user's repository lacks go to a private store. The user's index is read, never written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.domain.journal.paths import path_text
from handrail.kernel.limits import INDEX_FILE_BYTES
from handrail.outside.atomic_files import drop_file
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import Deadline, GitCall, GitFailed, GitTimedOut
from handrail.outside.tracking.sight import clear_sight
from handrail.outside.tracking.state import Last, TreeState
from handrail.regular_files import copy_regular, read_beginning

ARGUMENTS = 1000
"""The most folders named on one command line; if there are more, the whole tree is searched instead."""
SMALL_BYTES = 1 << 20
SCAN = (
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "-unormal",
    "--no-renames",
    "--ignore-submodules=dirty",
)


class Scan(NamedTuple):
    """What differs between the private index and the disk. Paths are bytes, relative to the tree."""

    commit: str | None
    branch: str | None
    changed: list[bytes]
    """On disk, and new or different."""
    gone: list[bytes]
    """In the index, but not on disk."""
    embedded: list[bytes]
    """Folders that are repositories of their own but not submodules."""
    differing: list[bytes]
    """Paths in which the index differs from HEAD."""
    unmerged: list[bytes]
    """Paths that have a conflict in the index."""


class PrivateIndex:
    """The private index of one working tree. Use it only while the tree's state is locked."""

    def __init__(self, repository: GitRepository, state: TreeState, deadline: Deadline) -> None:
        self.repository = repository
        self.state = state
        self.deadline = deadline

    def start(
        self,
        *arguments: str,
        index: str | None = None,
        given: bytes | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> GitCall:
        """Starts git with the private index (or another) and the private object store."""
        # Git writes a refreshed index back only if optional locks are allowed: never with the user's own index.
        locks = "1" if index is None else "0"
        places = {
            "GIT_INDEX_FILE": index or self.state.index,
            "GIT_OBJECT_DIRECTORY": self.state.objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(self.repository.objects),
            "GIT_OPTIONAL_LOCKS": locks,
        }
        sight = clear_sight(self.repository.top, self.state.folder)
        seen = self.repository._replace(overrides={**sight, **self.repository.overrides})
        environment = {**places, **(environment or {})}
        return seen.start(*arguments, deadline=self.deadline, environment=environment, given=given)

    def git(
        self, *arguments: str, index: str | None = None, given: bytes | None = None, allowed: Sequence[int] = (0,)
    ) -> bytes:
        return self.start(*arguments, index=index, given=given).output(allowed=allowed)

    @property
    def users_index(self) -> str:
        return f"{self.repository.git_dir}/index"

    def prepare(self, last: Last | None) -> bool:
        """Prepares the index for a scan; True if something other than files on disk changed it."""
        drop_file(f"{self.state.index}.lock")  # left by a killed process: we hold the lock on the state
        sparse = self.repository.is_sparse or (last is not None and last.sparse)
        if not os.path.exists(self.state.index) or (sparse and last is None):  # noqa: PTH110
            self.begin()
            return True
        if not sparse or last is None:
            return False
        is_seen = last.users_index == index_facts(self.users_index)
        rules = sparse_rules(self.repository)
        return not (is_seen and rules == last.sparse) and self._follow_sparse(is_believed=rules != last.sparse)

    def begin(self) -> None:
        """Copies the user's index, and reveals the changes it would hide."""
        copied = f"{self.state.index}.new"
        drop_file(self.state.index)
        try:
            copy_index(self.repository, copied)
            os.replace(copied, self.state.index)  # noqa: PTH105
        except FileNotFoundError:  # nothing was ever staged
            return
        self.show_hidden_edits()
        self.git(
            "update-index", "--no-untracked-cache", allowed=(0, 1, 128)
        )  # somebody else's, and made to be believed
        self.git("-c", "core.untrackedCache=true", "update-index", "--force-untracked-cache", allowed=(0, 1, 128))

    def _follow_sparse(self, *, is_believed: bool) -> bool:
        """Leaves out of sight what the user's index leaves out of the tree, and nothing else. A file that is left out
        although the patterns stayed the same is not believed to be: it counts as deleted."""
        theirs = self._left_out(self.users_index) if self.repository.is_sparse else ({}, set())
        ours = self._left_out(None)
        new = {path: facts for path, facts in theirs[0].items() if ours[0].get(path) != facts}
        if not is_believed:
            new = {path: facts for path, facts in new.items() if path not in ours[1]}
        back = sorted(ours[0].keys() - theirs[0].keys())
        if back:
            self.git("update-index", "--no-skip-worktree", "-z", "--stdin", given=joined(back))
        if new:
            self.put({path: (facts.split(b" ")[0], facts.split(b" ")[1]) for path, facts in new.items()})
            self.git("update-index", "--skip-worktree", "-z", "--stdin", given=joined(new))
        return bool(back or new)

    def _left_out(self, index: str | None) -> tuple[dict[bytes, bytes], set[bytes]]:
        """The paths that an index leaves out of the tree, with their modes and ids; and the paths it does not."""
        left_out, present = {}, set()
        for line in names(self.git("ls-files", "-t", "-s", "-z", index=index)):
            facts, path = line[2:].split(b"\t", 1)
            if line[:1] == b"S":
                left_out[path] = facts
            else:
                present.add(path)
        return left_out, present

    def put(self, entries: Mapping[bytes, tuple[bytes, bytes]]) -> None:
        """Sets entries, given as mode and blob id, without a look at the disk."""
        given = b"".join(b"%b %b\t%b\0" % (mode, oid, path) for path, (mode, oid) in sorted(entries.items()))
        self.git("update-index", "-z", "--index-info", given=given)

    def forget_times(self, paths: Sequence[bytes]) -> None:
        """Makes the next scan compare the contents of some files, whatever their times say."""
        chosen = [os.fsdecode(path) for path in paths] if len(paths) <= ARGUMENTS else []
        lines = names(self.git("ls-files", "-s", "-z", "--", *chosen)) if paths else []
        entries = {}
        for facts, path in (line.split(b"\t", 1) for line in lines):
            mode, oid, stage = facts.split(b" ")
            if stage == b"0":
                entries[path] = (mode, oid)
        if entries:
            self.put(entries)

    def put_as_they_are(self, modes: Mapping[bytes, bytes]) -> list[bytes]:
        """Updates the index with the bytes of some files as they are, without any conversion. Returns those that cannot
        be read."""
        paths = sorted(modes)
        for start in range(0, len(paths), ARGUMENTS):
            chosen = paths[start : start + ARGUMENTS]
            arguments = ("hash-object", "-w", "--no-filters", "--", *map(os.fsdecode, chosen))
            try:
                oids = self.git(*arguments).split()
            except GitTimedOut:
                raise
            except GitFailed:
                return paths[start:]
            self.put({path: (modes[path], oid) for path, oid in zip(chosen, oids, strict=True)})
        return []

    def show_hidden_edits(self) -> None:
        """Clears `assume-unchanged` and, outside sparse checkouts, `skip-worktree`, which would hide changes."""
        assumed: list[bytes] = []
        skipped: list[bytes] = []
        for entry in names(self.git("ls-files", "-v", "-z")):
            mark, path = entry[:1], entry[2:]
            if mark.islower():
                assumed.append(path)
            if mark in b"Ss" and not self.repository.is_sparse:
                skipped.append(path)
        for option, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
            if paths:
                self.git("update-index", option, "-z", "--stdin", given=joined(paths), allowed=(0, 1, 128))

    def scan(self, *, is_cache_believed: bool = True) -> Scan:
        """Compares the index with the disk. The cache of untracked files spares a look into most folders."""
        commit = branch = None
        changed: list[bytes] = []
        gone: list[bytes] = []
        folders: list[bytes] = []
        differing: list[bytes] = []
        unmerged: list[bytes] = []
        doubt = {} if is_cache_believed else {"GIT_DISABLE_UNTRACKED_CACHE": "1"}
        for record in names(self.start("-c", "core.untrackedCache=true", *SCAN, environment=doubt).output()):
            kind = record[:1]
            if record.startswith(b"# branch.oid ") and record[13:] != b"(initial)":
                commit = record[13:].decode()
            elif record.startswith(b"# branch.head ") and record[14:] != b"(detached)":
                branch = path_text(record[14:])
            elif kind == b"?":
                (folders if record.endswith(b"/") else changed).append(record[2:])
            elif kind in (b"1", b"u"):
                marks, path = record[2:4], record.split(b" ", 8 if kind == b"1" else 10)[-1]
                if kind == b"u" or marks[1:] == b"D":
                    (changed if kind == b"u" and self._is_file(path) else gone).append(path)
                elif marks[1:] != b".":
                    changed.append(path)
                if kind == b"1" and marks[:1] == b"D" and self._is_file(path):
                    changed.append(path)  # committed although ignored: in HEAD, but not listed as untracked
                differing.append(path)
                unmerged += [path] if kind == b"u" else []
        embedded, found = self._inside(folders)
        return Scan(commit, branch, changed + found, gone, embedded, differing, unmerged)

    def _is_file(self, path: bytes) -> bool:
        full = os.fsencode(self.repository.top) + b"/" + path
        return os.path.lexists(full) and not (os.path.isdir(full) and not os.path.islink(full))  # noqa: PTH112, PTH114

    def _inside(self, folders: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """The embedded repositories among untracked folders, and all untracked files below the others."""
        embedded: list[bytes] = []
        found: list[bytes] = []
        for path in self.untracked(folders) if folders else []:
            (embedded if path.endswith(b"/") else found).append(path)
        return [path.rstrip(b"/") for path in embedded], found

    def untracked(self, below: Sequence[bytes]) -> list[bytes]:
        """Visible files below some folders that the index lacks; embedded repositories end in a slash."""
        chosen = [os.fsdecode(path) for path in below] if len(below) <= ARGUMENTS else []
        own = "--exclude=/.handrail/snapshots/"
        return names(self.git("ls-files", "-o", "--exclude-standard", own, "-z", "--", *chosen))

    def take_up(self, paths: Sequence[bytes]) -> list[bytes]:
        """Updates the index with files as they are on disk, and drops those that are gone by now. Returns those that
        cannot be read."""
        if not paths:
            return []
        arguments = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        try:
            self.git(*arguments, given=joined(paths))
        except GitTimedOut:
            raise
        except GitFailed:  # one bad file fails the whole call: bisect
            if len(paths) == 1:
                return list(paths)
            middle = len(paths) // 2
            return self.take_up(paths[:middle]) + self.take_up(paths[middle:])
        return []

    def drop(self, paths: Sequence[bytes]) -> None:
        if paths:
            self.git("update-index", "--force-remove", "-z", "--stdin", given=joined(paths))

    def tree(self) -> str:
        return self.git("write-tree", "--missing-ok").strip().decode()

    def submodules(self) -> list[bytes]:
        """Paths that the index records as another repository's commit."""
        found = names(self.git("ls-files", "-s", "-z"))
        return [entry.split(b"\t", 1)[1] for entry in found if entry.startswith(b"160000 ")]

    def ignored(self, paths: Sequence[bytes]) -> list[bytes]:
        """The paths that ignore rules hide, tracked or not."""
        if not paths:
            return []
        # Only this command refuses literal pathspecs; after `./` none can be mistaken for a pattern.
        arguments = ("check-ignore", "--no-index", "-z", "--stdin")
        given = joined(b"./" + path for path in paths)
        call = self.start(*arguments, given=given, environment={"GIT_LITERAL_PATHSPECS": "0"})
        return [path.removeprefix(b"./") for path in names(call.output(allowed=(0, 1)))]

    def attributes(
        self, wanted: Sequence[str], paths: Sequence[bytes], *, index: str | None = None
    ) -> dict[bytes, dict[str, str]]:
        """The values of some attributes, where they have one: as the tree says, or as an index does."""
        found: dict[bytes, dict[str, str]] = {}
        if not paths:
            return found
        source = () if index is None else ("--cached",)
        words = self.git("check-attr", *source, "-z", "--stdin", *wanted, index=index, given=joined(paths)).split(b"\0")
        for path, name, value in zip(words[0::3], words[1::3], words[2::3], strict=False):
            if value != b"unspecified":
                found.setdefault(path, {})[name.decode()] = os.fsdecode(value)
        return found


def index_facts(index: str) -> list[int]:
    """Size, times and inode of an index: unchanged as long as nobody wrote it."""
    try:
        facts = os.stat(index)  # noqa: PTH116
    except OSError:
        return []
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]


def sparse_rules(repository: GitRepository) -> str:
    """A fingerprint of the patterns of a sparse checkout; empty if there is none."""
    if not repository.is_sparse:
        return ""
    return hashlib.sha256(small_file(f"{repository.git_dir}/info/sparse-checkout")).hexdigest()


def small_file(file: str) -> bytes:
    """The content of a file that may be anything: does not block on a pipe, and does not end in gigabytes."""
    try:
        return read_beginning(file, SMALL_BYTES)
    except OSError:
        return b""


def copy_index(repository: GitRepository, copied: str) -> None:
    """Copies the user's index with its time, which git compares with the files' times to find those that changed in the
    very moment it was written. Raises FileNotFoundError if nothing was ever staged."""
    index = f"{repository.git_dir}/index"
    copy_regular(index, copied, INDEX_FILE_BYTES)
    facts = os.stat(index)  # noqa: PTH116
    os.utime(copied, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def names(output: bytes) -> list[bytes]:
    """The parts of an output with -z."""
    return [part for part in output.split(b"\0") if part]


def joined(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def quoted_path(path: str) -> str:
    """A path in the form that git's list of object directories requires."""
    if os.pathsep in path or path.startswith('"'):
        return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return path
