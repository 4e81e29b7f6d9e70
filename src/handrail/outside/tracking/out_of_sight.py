"""Files that ignore rules hide now, and did not when a task began. Git leaves them out of its tree, so they are looked
at beside it: a rule that hides what the task does, and perhaps itself, hides nothing from the journal.

What the rules were is known from three places: the .gitignore files of the tree, those that are ignored themselves, and
the two files outside of the tree (`IgnoreSources`). Which of the hidden files they would have shown is decided by
`ignore_rules.py`. Folders of tools, which hold nobody's work, are named and counted instead of listed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.domain.journal.paths import path_bytes, path_text
from handrail.outside.tracking.difference import (
    Entries,
    Pairs,
    TreeEntry,
    differing,
    differing_indexes,
    in_index,
    in_tree,
    is_same,
)
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import GitCall, GitFailed, GitTimedOut
from handrail.outside.tracking.ignore_rules import IGNORE_FILE, IgnoreFile, IgnoreRules, tool_folders
from handrail.outside.tracking.own_files import is_ours, is_own_worktree
from handrail.outside.tracking.private_index import PrivateIndex, names, small_file
from handrail.outside.tracking.state import IgnoreSources, Large, Notes
from handrail.regular_files import read_beginning

ASKED = ("ls-files", "-o", "-i", "--exclude-standard", "--exclude=/.handrail/snapshots/", "--directory", "-z")
MOST_LISTED = 1000
"""How many hidden files are told one by one."""
MOST_ENTRIES = 20_000
"""How many hidden entries are looked at to find them."""
MOST_COUNTED = 1000
NAMED = 5
RULE_BYTES = 1 << 20
KEPT_BYTES = 1 << 18
"""How much text of rules outside of the tree one snapshot keeps."""
_NAME = IGNORE_FILE.encode()


class TaskBeginning(NamedTuple):
    """The snapshot that a task began with."""

    id: str
    tree: str
    notes: Notes
    outer: RulesThen | None = None
    """For a repository that was not there yet: the rules of the tree that it is in."""
    prefix: str = ""
    """And where it is in there."""


class OutOfSight(NamedTuple):
    """What is hidden now and was not then."""

    files: dict[bytes, Large]
    """Files that are new or different."""
    folders: dict[str, int]
    """Folders and files of tools, and how many files they are."""
    are_rules_new: bool
    is_cut: bool
    """Whether there may be more than was found."""
    rules: RulesThen | None = None


class RulesThen:
    """The ignore rules of a tree as they were."""

    def __init__(self, texts: Mapping[str, str], sources: IgnoreSources) -> None:
        """`texts` are those of the .gitignore files, by folder."""
        self._texts = texts
        base = IgnoreRules(((0, IgnoreFile(_decoded(sources.repository))), (0, IgnoreFile(_decoded(sources.user)))))
        self._known: dict[str, IgnoreRules | None] = {"": base.below("", texts.get(""))}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether they hid a path, or a folder above it."""
        folder, _, name = path.rpartition("/")
        rules = self._of(folder)
        return rules is None or rules.ignores(path, name, is_folder)

    def _of(self, folder: str) -> IgnoreRules | None:
        """What applied in a folder; None if it was hidden."""
        missing = []
        while folder not in self._known:
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        rules = self._known[folder]
        for below in reversed(missing):
            if rules is not None:
                is_hidden = rules.ignores(below, below.rpartition("/")[2], True)
                rules = None if is_hidden else rules.below(below, self._texts.get(below))
            self._known[below] = rules
        return rules


def ask_for_ignored(private: PrivateIndex) -> GitCall:
    """Starts to list what is ignored; a folder that is ignored as a whole ends in a slash."""
    return private.start(*ASKED)


def ignored_by(call: GitCall) -> list[bytes]:
    return [path for path in names(call.output()) if not is_ours(path.rstrip(b"/"))]


def sources_of(repository: GitRepository, ignored: Iterable[bytes]) -> IgnoreSources:
    """The rules that are in no tree, with those of .gitignore files that are ignored themselves."""
    top = os.fsencode(repository.top) + b"/"
    outside = (f"{repository.common_dir}/info/exclude", repository.excludes_file)
    exclude, user = (small_file(file) for file in outside)
    inside = {}
    for path in ignored:
        if path == _NAME or path.endswith(b"/" + _NAME):
            try:
                inside[path_text(path)] = read_beginning(os.fsdecode(top + path), RULE_BYTES, links=False)
            except OSError:
                continue
    found = {path: text.decode("latin-1") for path, text in sorted(inside.items())}
    kept = IgnoreSources(repository=exclude.decode("latin-1"), user=user.decode("latin-1"), inside=found)
    if len(exclude) + len(user) + sum(map(len, inside.values())) <= KEPT_BYTES:
        return kept
    return IgnoreSources(inside={"": rules_print(kept)}, is_whole=False)


def rules_print(sources: IgnoreSources) -> str:
    """A fingerprint of the rules that are in no tree."""
    digest = hashlib.sha256()
    for part in (sources.repository, sources.user, *(word for pair in sources.inside.items() for word in pair)):
        text = part.encode("latin-1", "backslashreplace")
        digest.update(b"%d:" % len(text) + text)
    return f"sources:{digest.hexdigest()}"


def _older_prints(repository: GitRepository) -> tuple[str, ...]:
    """How earlier versions noted the two files outside of the tree."""
    parts = [small_file(f"{repository.common_dir}/info/exclude"), small_file(repository.excludes_file)]
    first = hashlib.sha256(b"".join(part + b"\0" for part in parts)).hexdigest()[:16]
    second = hashlib.sha256(b"".join(b"%d:" % len(part) + part for part in parts)).hexdigest()
    return first, second[:32], second


def look_out_of_sight(
    private: PrivateIndex,
    beginning: TaskBeginning,
    now: tuple[str, IgnoreSources, Sequence[bytes]],
    looked_into: Mapping[bytes, bool],
    fingerprint: Callable[[bytes], Large | None],
) -> OutOfSight:
    """What is hidden now and was not when a task began. `now` is the tree, the rules outside of it and what is ignored;
    `looked_into` are the repositories inside, which have an account of their own, and whether they were there then."""
    return _Looking(private, beginning, looked_into, fingerprint).look(*now)


class _Looking:
    """One look."""

    def __init__(
        self,
        private: PrivateIndex,
        beginning: TaskBeginning,
        looked_into: Mapping[bytes, bool],
        fingerprint: Callable[[bytes], Large | None],
    ) -> None:
        self._private = private
        self._then = beginning
        self._looked_into = looked_into
        self._fingerprint = fingerprint
        self._top = os.fsencode(private.repository.top) + b"/"
        self._kept: Entries | None = None
        self._is_cut = False
        self._tools = tool_folders()
        self._folders: dict[str, int] = {}
        self._files: dict[str, int] = {}

    def look(self, tree: str, sources: IgnoreSources, ignored: Sequence[bytes]) -> OutOfSight:
        pairs = self._pairs(tree)
        known = {path_bytes(text) for text in self._then.notes.large}
        gone = [path for path, (old, new) in pairs.items() if new is None and old is not None and old.mode != "160000"]
        files = self._still_there(sorted({*gone, *(path for path in known if path not in pairs)}), tree)
        old_sources = self._sources_then(sources)
        in_tree_too = any(path == _NAME or path.endswith(b"/" + _NAME) for path in (*pairs, *files))
        are_new = in_tree_too or old_sources != sources or self._then.outer is not None
        rules = self._then.outer
        if rules is None and (are_new or not all(self._looked_into.values())):
            rules = RulesThen(self._texts_then(old_sources), old_sources)
        if rules is not None and are_new:
            files |= self._new(ignored, rules)
        return OutOfSight(files, self._folders | self._files, are_new, self._is_cut, rules)

    def _pairs(self, tree: str) -> Pairs:
        """What differs between the tree of then and that of now."""
        try:
            return differing(self._private, self._then.tree, tree)
        except GitTimedOut:
            raise
        except GitFailed:  # it was in the user's repository, and is gone; its names are still known
            kept = self._private.state.kept_index(self._then.id)
            if not os.path.exists(kept):  # noqa: PTH110
                raise
            self._kept = in_index(self._private, kept)
            return differing_indexes(self._private, kept, self._private.state.index)

    def _entries_then(self, paths: Sequence[bytes]) -> Entries:
        if self._kept is not None:
            return {path: self._kept.get(path) for path in paths}
        return in_tree(self._private, self._then.tree, paths) if paths else {}

    def _sources_then(self, now: IgnoreSources) -> IgnoreSources:
        notes = self._then.notes
        if notes.ignoring is not None:
            self._is_cut |= notes.ignoring != now and not (notes.ignoring.is_whole and now.is_whole)
            return notes.ignoring
        if notes.rules and notes.rules not in _older_prints(self._private.repository):
            self._is_cut = True
            return IgnoreSources()
        older = {text: rules for text, rules in now.inside.items() if self._is_older(path_bytes(text), notes.began_ns)}
        return IgnoreSources(repository=now.repository, user=now.user, inside=older, is_whole=now.is_whole)

    def _is_older(self, path: bytes, time_ns: int) -> bool:
        try:
            facts = os.lstat(self._top + path)
        except OSError:
            return False
        return max(facts.st_mtime_ns, facts.st_ctime_ns) < time_ns

    def _texts_then(self, sources: IgnoreSources) -> dict[str, str]:
        """The texts of all .gitignore files, by folder."""
        oids: dict[bytes, bytes] = {}
        for line in names(self._private.git("ls-tree", "-r", "-z", "--full-tree", self._then.tree)):
            facts, path = line.split(b"\t", 1)
            if (path == _NAME or path.endswith(b"/" + _NAME)) and facts.startswith(b"100"):
                oids[path] = facts.split(b" ")[2]
        self._is_cut |= any(text == IGNORE_FILE or text.endswith("/" + IGNORE_FILE) for text in self._then.notes.large)
        found = {path_bytes(text): rules.encode("latin-1") for text, rules in sources.inside.items() if text}
        found |= dict(zip(oids, self._blobs(list(oids.values())), strict=True))
        return {os.fsdecode(path[: -len(_NAME) - 1]): _text(rules) for path, rules in found.items()}

    def _blobs(self, oids: list[bytes]) -> list[bytes]:
        output = self._private.git("cat-file", "--batch", given=b"".join(oid + b"\n" for oid in oids)) if oids else b""
        found, at = [], 0
        for _ in oids:
            end = output.index(b"\n", at)
            kind, size = output[at:end].split(b" ")[-2:]
            if kind != b"blob":
                raise GitFailed(("cat-file",), 1, b"rules of the beginning are gone")
            found.append(output[end + 1 : end + 1 + int(size)][:RULE_BYTES])
            at = end + 2 + int(size)
        return found

    def _still_there(self, paths: Sequence[bytes], tree: str) -> dict[bytes, Large]:
        """Of files that were in sight, those that are hidden now and differ."""
        there = [path for path in paths if self._is_file(path) and not self._is_looked_into(path) and not is_ours(path)]
        hidden = self._private.ignored(there) if there else []
        hidden = [path for path, entry in in_tree(self._private, tree, hidden).items() if entry is None]
        then = self._entries_then(hidden)
        found = {}
        for path in hidden:
            old = self._then.notes.large.get(path_text(path))
            entry = TreeEntry.of_large(old) if old is not None else then[path]
            if entry is not None:
                entry = entry._replace(raw=self._then.notes.raw.get(path_text(path), entry.raw))
            now = self._fingerprint(path)
            if now is not None and not is_same(entry, TreeEntry.of_large(now)) and not self._is_converted(path, entry):
                found[path] = now
        return found

    def _is_converted(self, path: bytes, entry: TreeEntry | None) -> bool:
        """Whether git would make the same blob of a file, though its bytes are others."""
        if entry is None or entry.oid is None or entry.mode == "120000":
            return False
        is_executable = bool(os.lstat(self._top + path).st_mode & 0o100)
        try:
            oid = self._private.git("hash-object", "--", os.fsdecode(path)).decode().strip()
        except GitTimedOut:
            raise
        except GitFailed:
            return False
        return oid == entry.oid and is_executable == (entry.mode == "100755")

    def _new(self, ignored: Sequence[bytes], rules: RulesThen) -> dict[bytes, Large]:
        """Of the files that are hidden now, those that were neither hidden nor there."""
        chosen = self._shown_by(ignored, rules)
        if len(chosen) > MOST_LISTED:
            self._is_cut = True
            chosen = chosen[:MOST_LISTED]
        then = self._entries_then(chosen)
        new = [path for path in chosen if then[path] is None and path_text(path) not in self._then.notes.large]
        return {path: entry for path in new if (entry := self._fingerprint(path)) is not None}

    def _shown_by(self, ignored: Sequence[bytes], rules: RulesThen) -> list[bytes]:
        """The files among what is hidden that the rules of then would show, in the order of their names."""
        pending = sorted(set(ignored), reverse=True)
        seen: set[bytes] = set()
        found: list[bytes] = []
        while pending:
            entry = pending.pop()
            path = entry.rstrip(b"/")
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > MOST_ENTRIES or self._private.deadline.left() <= 0:
                self._is_cut = True
                break
            is_folder = entry.endswith(b"/")
            text = os.fsdecode(path)
            if is_ours(path) or rules.ignores(self._then.prefix + text, is_folder=is_folder):
                continue
            if self._is_of_tool(entry):
                continue
            if not is_folder:
                found.append(path)
            elif not self._is_looked_into(path) and not is_own_worktree(self._top, path):
                pending += sorted(self._below(path), reverse=True)
        return sorted(found)

    def _below(self, folder: bytes) -> list[bytes]:
        try:
            with os.scandir(self._top + folder) as listing:
                return [
                    folder + b"/" + entry.name + (b"/" if entry.is_dir(follow_symlinks=False) else b"")
                    for entry in listing
                ]
        except OSError:
            self._is_cut |= os.path.isdir(self._top + folder)  # noqa: PTH112
            return []

    def _is_of_tool(self, entry: bytes) -> bool:
        """Whether an entry is, or is in, a folder of a tool. Those are counted."""
        at = entry.find(b"/")
        while at >= 0:
            folder = entry[:at]
            text = os.fsdecode(folder)
            if path_text(folder) in self._folders:
                return True
            if self._tools.ignores(text, text.rpartition("/")[2], True):
                if count := self._files_in(folder):
                    self._folders[path_text(folder)] = count
                return True
            at = entry.find(b"/", at + 1)
        name = os.fsdecode(entry).rpartition("/")[2]
        if entry.endswith(b"/") or not self._tools.ignores(os.fsdecode(entry), name, False):
            return False
        self._files[path_text(entry)] = 1
        return True

    def _files_in(self, folder: bytes) -> int:
        count = 0
        for _, _, files in os.walk(self._top + folder):
            count += len(files)
            if count >= MOST_COUNTED:
                break
        return count

    def _is_file(self, path: bytes) -> bool:
        try:
            mode = os.lstat(self._top + path).st_mode
        except OSError:
            return False
        parts = path.split(b"/")[:-1]
        is_elsewhere = any(os.path.islink(self._top + b"/".join(parts[: n + 1])) for n in range(len(parts)))  # noqa: PTH114
        return (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not is_elsewhere

    def _is_looked_into(self, path: bytes) -> bool:
        parts = path.split(b"/")
        return any(b"/".join(parts[:depth]) in self._looked_into for depth in range(1, len(parts) + 1))


def told_hidden(notes: Notes) -> list[str]:
    """What is hidden and not listed file by file, in sentences."""
    found = []
    if notes.hidden_folders:
        words = []
        for folder, count in sorted(notes.hidden_folders.items())[:NAMED]:
            words.append(f"{folder} ({count}{' or more' * (count >= MOST_COUNTED)})")
        more = f" and {len(notes.hidden_folders) - NAMED} more" if len(notes.hidden_folders) > NAMED else ""
        said = "ignored since the task began, and only counted, since tools make such files"
        found.append(f"{said}: {', '.join(words)}{more}")
    if notes.is_hidden_cut:
        found.append("more files may have gone out of sight than could be looked at; they are not listed")
    return found


def _text(rules: bytes) -> str:
    return rules.decode("utf-8", "surrogateescape")


def _decoded(kept: str) -> str:
    return _text(kept.encode("latin-1"))
