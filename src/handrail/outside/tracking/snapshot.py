"""Takes a snapshot of a git working tree: every visible file, as it is on disk, as one tree id.

Visible are tracked, staged and untracked files; ignored ones are not. The user's index, refs, hooks and files are left
alone. A scan takes a moment and files may change during it: each change lands either before or after the snapshot.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from handrail.domain.journal.paths import path_bytes, path_text
from handrail.outside.atomic_files import drop_file
from handrail.outside.tracking.conversion import (
    ask_for_ident,
    bytes_of,
    found_by,
    treatment,
    with_own_ident,
)
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import GitCall, GitFailed, GitTimedOut
from handrail.outside.tracking.large_files import LargeFiles, Limits, blob_id
from handrail.outside.tracking.out_of_sight import (
    OutOfSight,
    RulesThen,
    TaskBeginning,
    ask_for_ignored,
    ignored_by,
    look_out_of_sight,
    rules_print,
    sources_of,
)
from handrail.outside.tracking.own_files import is_ours, overlooked
from handrail.outside.tracking.private_index import (
    PrivateIndex,
    Scan,
    copy_index,
    index_facts,
    joined,
    names,
    small_file,
    sparse_rules,
)
from handrail.outside.tracking.same_second import changed_since, doubtful
from handrail.outside.tracking.state import IgnoreSources, Large, Last, Notes
from handrail.regular_files import open_regular

HEADS = b"refs/heads/"
BELIEVED_AFTER_S = 10
UNDER_WAY = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")


class Taken(NamedTuple):
    """A snapshot before it is kept."""

    commit: str | None
    branch: str | None
    tree: str
    notes: Notes
    flags: list[str]
    nested: list[bytes]
    """Repositories inside this tree, including submodules."""
    rules_then: RulesThen | None = None
    """The ignore rules that the task began with, if they are others now."""


class _Sorted(NamedTuple):
    """Changed files by what is to be done with them."""

    stored: list[bytes]
    large: dict[bytes, Large]
    gone: list[bytes]
    folders: list[bytes]
    """Paths that are folders now: submodules, and files that were replaced by folders."""
    unconverted: dict[bytes, bytes]
    """Files to store byte by byte, with their modes: git would leave something out."""
    raw: dict[str, str]
    """The ids of the bytes of files that git converts."""
    converted: frozenset[bytes] = frozenset()
    unrun: frozenset[bytes] = frozenset()
    """Files with a filter that is not run."""


def take(
    private: PrivateIndex, limits: Limits, beginning: TaskBeginning | None = None, nested: Sequence[bytes] = ()
) -> Taken:
    """Scans the tree into the private index and writes it as a tree. The state must be locked. If this is the end of a
    task, it looks for what was hidden since its `beginning`, too; `nested` are the repositories that it had inside."""
    return _Taking(private, limits).take(beginning, nested)


class _Taking:
    """One snapshot being taken."""

    def __init__(self, private: PrivateIndex, limits: Limits) -> None:
        self._private = private
        self._repository = private.repository
        self._limits = limits
        self._top = os.fsencode(private.repository.top) + b"/"
        self._flags = _flags(private.repository)
        self._overlooked = set(overlooked(self._top))
        large_file = Path(private.state.folder, "large.json")
        self._large = LargeFiles(large_file, private.repository.algorithm, limits, private.deadline)

    def take(self, beginning: TaskBeginning | None, nested: Sequence[bytes]) -> Taken:
        private = self._private
        began_ns = private.state.now_ns()
        log = reflog_end(self._repository.git_dir)
        asked = self._repository.start("for-each-ref", "--format=%(objectname) %(refname)", deadline=private.deadline)
        searched = hidden = None
        try:
            known = private.state.last()
            last = None if private.prepare(known) else known
            searched, hidden = ask_for_ident(private), ask_for_ignored(private)
            self._doubt(known, began_ns)
            scan = private.scan(is_cache_believed=known is None or not known.are_folders_doubtful)
            refs = [line.split(b" ", 1) for line in asked.output().split(b"\n")[:-1]]
            files = self._sort(scan, found_by(searched))
            ignored = ignored_by(hidden)
        finally:
            _stop(asked, searched, hidden)
        is_same = last is not None and not (files.stored or files.gone or files.unconverted)
        tree = last.tree if is_same and last is not None else self._stored_tree(files, scan.unmerged)
        sources = sources_of(self._repository, ignored)
        tree, unstaged = self._beside_users_index(tree, last, rules_print(sources), files)
        submodules = self._submodules(files, last)
        inside = sorted({*scan.embedded, *submodules, *(path for path in nested if self._is_repository(path))})
        now_hidden = self._out_of_sight(beginning, (tree, sources, ignored), {path: path in nested for path in inside})
        raw = self._raw(files, last)
        self._remember(
            last,
            began_ns,
            Last(
                tree=tree,
                users_index=index_facts(private.users_index),
                rules=rules_print(sources),
                unstaged=unstaged,
                submodules=[path_text(path) for path in submodules],
                raw=raw,
                sparse=sparse_rules(self._repository),
            ),
        )
        notes = Notes(
            began_ns=began_ns,
            tree=tree,
            branch=scan.branch,
            refs=sorted({oid.decode() for oid, _ in refs}),
            heads={path_text(name.removeprefix(HEADS)): oid.decode() for oid, name in refs if name.startswith(HEADS)},
            large={path_text(path): entry for path, entry in (self._with_oids(files) | now_hidden.files).items()},
            unstaged=unstaged,
            dirty=sorted({path_text(path) for path in (*scan.differing, *scan.changed) if not is_ours(path)}),
            rules=rules_print(sources),
            ignoring=sources,
            since=beginning.id if beginning is not None else "",
            are_rules_new=now_hidden.are_rules_new,
            hidden_folders=now_hidden.folders,
            is_hidden_cut=now_hidden.is_cut,
            attributes=attribute_rules(self._repository),
            line_ends="/".join(self._repository.line_ends),
            raw=raw,
            reflog_size=log[0],
            reflog_end=log[1],
        )
        return Taken(scan.commit, scan.branch, tree, notes, self._flags, inside, now_hidden.rules)

    def _is_repository(self, path: bytes) -> bool:
        return self._is_folder(path) and os.path.lexists(self._top + path + b"/.git")

    def _out_of_sight(
        self,
        beginning: TaskBeginning | None,
        now: tuple[str, IgnoreSources, Sequence[bytes]],
        inside: Mapping[bytes, bool],
    ) -> OutOfSight:
        """What is hidden since a task began. It is fingerprinted, never stored: whoever ignores a file does not want it
        to be passed on."""
        if beginning is None:
            return OutOfSight({}, {}, are_rules_new=False, is_cut=False)
        file = Path(self._private.state.folder, "hidden.json")
        known = LargeFiles(file, self._repository.algorithm, self._limits, self._private.deadline)

        def fingerprint(path: bytes) -> Large | None:
            try:
                facts = os.lstat(self._top + path)
            except OSError:
                return None
            is_content = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
            return known.look(path, self._top + path, facts, is_lfs=False) if is_content else None

        try:
            found = look_out_of_sight(self._private, beginning, now, inside, fingerprint)
        except GitTimedOut:
            raise
        except GitFailed:  # what the task began with is gone
            return OutOfSight({}, {}, are_rules_new=True, is_cut=True)
        known.save()
        return found

    def _remember(self, last: Last | None, began_ns: int, found: Last) -> None:
        """Keeps what was found for the next snapshot, with what it must look at again."""
        state = self._private.state
        seconds = range(began_ns // 1_000_000_000, state.now_ns() // 1_000_000_000 + 1)
        doubts = doubtful(state.index, self._repository.algorithm, seconds)
        found = msgspec.structs.replace(
            found,
            doubtful={path_text(path): time for path, time in sorted(doubts.files.items())},
            are_folders_doubtful=doubts.folders,
        )
        if found != last:
            self._private.state.remember(found)
        self._large.save()

    def _doubt(self, known: Last | None, began_ns: int) -> None:
        """Makes git read files again that it would take for unchanged, because they changed in the second in which it
        last looked."""
        if known is not None:
            doubts = {path_bytes(text): time for text, time in known.doubtful.items()}
        else:  # the user's git looked last, at any time; what is older than this is believed
            now = began_ns // 1_000_000_000
            seconds = range(now - BELIEVED_AFTER_S, now + 1)
            doubts = doubtful(self._private.state.index, self._repository.algorithm, seconds).files
        self._private.forget_times(changed_since(self._top, doubts))

    def _sort(self, scan: Scan, searched: Sequence[bytes]) -> _Sorted:
        visible = {path for path in scan.changed if not is_ours(path)} | self._overlooked
        treated = treatment(self._private, sorted(visible))
        searched = [path for path in searched if not self._beyond_link(path)]
        own_ident = with_own_ident(self._top, {*searched, *treated.ident}, self._limits.file_bytes)
        filtered = {path: name for path, name in treated.filters.items() if name in self._repository.filters}
        gone = [path for path in scan.gone if not is_ours(path)]
        folders = [path for path in gone if self._is_folder(path)]
        found = _Sorted([], {}, gone, folders, {}, {}, treated.converted, frozenset(filtered))
        room, count = self._limits.total_bytes, self._limits.files
        for path in sorted(visible | own_ident):
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
                if path in own_ident:
                    found.unconverted[path] = b"100755" if facts.st_mode & 0o100 else b"100644"
                else:
                    found.stored.append(path)
                    content = bytes_of(self._top + path, facts.st_size) if path in treated.converted else None
                    if content is not None:
                        found.raw[path_text(path)] = blob_id(self._repository.algorithm, content)
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

    def _stored_tree(self, files: _Sorted, unmerged: Sequence[bytes]) -> str:
        self._private.drop([*files.gone, *(path for path in unmerged if path in files.large)])
        self._take_up(files.stored, files)
        self._fingerprint(self._private.put_as_they_are(files.unconverted), files)
        became_folders = [path for path in files.folders if path in set(files.gone)]
        if became_folders:  # what is below was hidden by the file's own entry
            below = self._private.untracked(became_folders)
            self._take_up([path for path in below if not path.endswith(b"/") and not is_ours(path)], files)
        return self._private.tree()

    def _take_up(self, paths: list[bytes], files: _Sorted) -> None:
        self._fingerprint(self._private.take_up(paths), files)

    def _fingerprint(self, refused: list[bytes], files: _Sorted) -> None:
        """Fingerprints files that git cannot or will not store: a name it reserves, an encoding it does not know."""
        for path in refused:
            try:
                facts = os.lstat(self._top + path)
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                files.large[path] = self._large.look(path, self._top + path, facts, is_lfs=False)
            else:
                self._flags.append(f"unreadable:{path_text(path)}")

    @staticmethod
    def _raw(files: _Sorted, last: Last | None) -> dict[str, str]:
        """The raw ids of files that are as the last snapshot found them, and of those that are not."""
        known = last.raw if last is not None else {}
        if not known and not files.raw:
            return {}
        looked_at = {path_text(path) for path in (*files.stored, *files.large, *files.gone, *files.unconverted)}
        return {text: oid for text, oid in known.items() if text not in looked_at} | files.raw

    def _beside_users_index(
        self, tree: str, last: Last | None, rules: str, files: _Sorted
    ) -> tuple[str, dict[str, str]]:
        """The tree, corrected by what only the user's index can tell, and where that index differs from it. The
        corrections: files that are staged although ignored, and files that are now ignored and untracked."""
        facts = index_facts(self._private.users_index)
        if last is not None and (last.tree, last.users_index, last.rules) == (tree, facts, rules):
            return tree, last.unstaged
        unstaged = self._differences_from(tree)
        staged_only = [path for path, mark in unstaged.items() if mark == "A" and self._is_content(path)]
        not_staged = [path for path, mark in unstaged.items() if mark == "D"]
        ignored = [path for path in self._private.ignored(not_staged) if path not in self._overlooked]
        fits = [path for path in staged_only if not self._is_large(path, os.lstat(self._top + path), 1 << 60, 1)]
        if fits or ignored:
            self._private.drop(ignored)
            self._take_up(fits, files)
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

    def _with_oids(self, files: _Sorted) -> dict[bytes, Large]:
        """The fingerprinted files, with the blob ids of those that are staged exactly as they are on disk."""
        asked = [path for path, entry in files.large.items() if entry.oid is None][:1000]
        if not asked:
            return files.large
        words = [os.fsdecode(path) for path in asked]
        lines = names(self._private.git("ls-files", "-s", "-z", "--", *words, index=self._private.users_index))
        staged = {path: facts.split(b" ")[1].decode() for facts, path in (line.split(b"\t", 1) for line in lines)}
        asked = [path for path in asked if path in staged]
        unrun = [path for path in asked if path in files.unrun]
        same = set(unrun) - self._differing_from_staged(unrun) if unrun else set()
        for path in asked:
            is_known = files.large[path].raw == staged[path] or path not in files.converted or path in files.unrun
            if files.large[path].raw == staged[path] or (not is_known and self._blob_of(path) == staged[path]):
                same.add(path)
        found = dict(files.large)
        for path in same:
            found[path] = msgspec.structs.replace(found[path], oid=staged[path])
        return found

    def _blob_of(self, path: bytes) -> str | None:
        """The id of the blob that git would make of a file."""
        try:
            return self._private.git("hash-object", "--", os.fsdecode(path)).decode().strip()
        except GitTimedOut:
            raise
        except GitFailed:
            return None

    def _differing_from_staged(self, paths: list[bytes]) -> set[bytes]:
        """Which files are not as the user's index has them, by their times: their filter is not run."""
        copied = f"{self._private.state.folder}/staged.{os.getpid()}"
        try:
            copy_index(self._repository, copied)
            for option in ("--no-assume-unchanged", "--no-skip-worktree"):
                self._private.git("update-index", option, "-z", "--stdin", index=copied, given=joined(paths))
            words = [os.fsdecode(path) for path in paths]
            return set(names(self._private.git("diff-files", "--name-only", "-z", "--", *words, index=copied)))
        finally:
            drop_file(copied)


def _stop(*calls: GitCall | None) -> None:
    for call in calls:
        if call is not None:
            call.stop()


def _flags(repository: GitRepository) -> list[str]:
    marks = (
        ("shallow", repository.is_shallow),
        ("sparse", repository.is_sparse),
        ("partial_clone", repository.is_partial),
    )
    found = [name for name, is_set in marks if is_set]
    found += [f"under_way:{name}" for name in UNDER_WAY if os.path.exists(f"{repository.git_dir}/{name}")]  # noqa: PTH110
    return found + [f"not_run:{key}" for key in repository.silenced]


def attribute_rules(repository: GitRepository) -> str:
    """A fingerprint of what decides on conversions, apart from line ends, and is no file of the tree."""
    files = (f"{repository.common_dir}/info/attributes", repository.attributes_file)
    settings = repr(sorted(repository.filter_settings.items())).encode("utf-8", "surrogateescape")
    return _fingerprint(*map(small_file, files), settings)


def _fingerprint(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


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
    return hashlib.sha256(last).hexdigest() if last else ""
