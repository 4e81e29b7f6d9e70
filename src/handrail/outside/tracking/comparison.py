"""From two snapshots to what the task did: separates each path's change from what came in from elsewhere.

For every path that differs there is a *basis*: what it would be if only merges, pulls, switches and the like had
happened. The task's own part lies between the basis and the end, the external part between the beginning and the basis;
a path may have both. The basis of all paths together is a tree, and the patch of a task is the difference from that
tree.

Earlier edits that a pull or switch carried over: merged into what it brought, as git does with `--autostash` and
`checkout --merge`. The merged content is the basis for whatever the task changed on top.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from handrail.domain.journal.entry import Cause, Origin
from handrail.domain.journal.paths import path_bytes, path_text
from handrail.outside.tracking import difference
from handrail.outside.tracking.conversion import conversions, differing_by_git_alone
from handrail.outside.tracking.difference import (
    EMPTY_TREE,
    Detail,
    Entries,
    Pairs,
    TreeEntry,
    TreeQuery,
    differing,
    differing_indexes,
    is_same,
    with_large,
)
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.history import NO_HISTORY, Ends, History, look_back
from handrail.outside.tracking.out_of_sight import told_hidden
from handrail.outside.tracking.own_files import is_ours
from handrail.outside.tracking.private_index import ARGUMENTS, PrivateIndex
from handrail.outside.tracking.state import Notes

FILES = 50
"""How many files are merged for one comparison; beyond that, a carried-over edit counts as the task's."""


class Carrying:
    """Merges earlier edits into what came in."""

    def __init__(self, private: PrivateIndex) -> None:
        self._private = private
        self._left = FILES

    def merged(self, edited: TreeEntry | None, base: TreeEntry | None, arrived: TreeEntry | None) -> TreeEntry | None:
        """The edited file with the arrived change merged in; None if the two conflict."""
        if self._left <= 0 or edited is None or base is None or arrived is None:
            return None
        if not all(entry.is_stored and entry.mode.startswith("100") for entry in (edited, base, arrived)):
            return None
        self._left -= 1
        try:
            with tempfile.TemporaryDirectory(prefix="merge-", dir=self._private.state.folder) as folder:
                files = []
                for name, entry in (("edited", edited), ("base", base), ("arrived", arrived)):
                    file = Path(folder, name)
                    file.write_bytes(self._private.git("cat-file", "blob", entry.oid or ""))
                    files.append(str(file))
                content = self._private.git("merge-file", "-p", "-q", *files)
            oid = self._private.git("hash-object", "-w", "--stdin", given=content).decode().strip()
        except GitTimedOut:
            raise
        except GitFailed:
            return None
        return TreeEntry(arrived.mode if edited.mode == base.mode else edited.mode, oid)


REVEAL_MARGIN_NS = 10_000_000


class Point(NamedTuple):
    """One snapshot, as the comparison needs it."""

    id: str
    commit: str | None
    branch: str | None
    tree: str
    notes: Notes
    large: Entries

    @classmethod
    def of(cls, snapshot_id: str, commit: str | None, branch: str | None, tree: str, notes: Notes) -> Point:
        large: Entries = {path_bytes(text): TreeEntry.of_large(entry) for text, entry in notes.large.items()}
        return cls(snapshot_id, commit, branch, tree, notes, large)


class Compared(NamedTuple):
    """The result of comparing two snapshots."""

    own: Pairs
    external: Pairs
    causes: dict[bytes, Cause]
    origins: dict[bytes, Origin]
    dirty_before: set[bytes]
    detail: Detail
    basis: str
    """The tree that the task's own part starts from."""
    commits: list[str]
    warnings: list[str]
    partial: bool


def net_pairs(private: PrivateIndex, before: Point, after: Point, warnings: list[str]) -> Pairs:
    """Every path that differs between two snapshots, no matter who changed it."""
    try:
        pairs = differing(private, before.tree, after.tree)
    except GitTimedOut:
        raise
    except GitFailed:  # the trees were in the user's repository and are gone: the kept indexes still have the names
        kept = (private.state.kept_index(before.id), private.state.kept_index(after.id))
        if not all(os.path.exists(index) for index in kept):  # noqa: PTH110
            raise
        pairs = differing_indexes(private, *kept)
        warnings.append("history was rewritten and pruned since the task began; lines are not counted")
    pairs = with_large(private, pairs, (before.tree, after.tree), (before.large, after.large))
    raw = (before.notes.raw, after.notes.raw)
    return {path: pair for path, pair in pairs.items() if not is_ours(path) and not _has_same_bytes(path, pair, raw)}


def _has_same_bytes(path: bytes, pair: difference.Pair, raw: tuple[dict[str, str], dict[str, str]]) -> bool:
    """Whether git sees a difference only because it converted the same bytes on one side, or differently."""
    old, new = pair
    if not any(raw) or old is None or new is None or old.mode != new.mode:
        return False
    text = path_text(path)
    found = raw[0].get(text, old.raw or old.oid), raw[1].get(text, new.raw or new.oid)
    return found[0] is not None and found[0] == found[1]


def _with_raw(path: bytes, entry: TreeEntry | None, point: Point) -> TreeEntry | None:
    """An entry with the id of its bytes, if git converts them: a commit may have them as they are."""
    return entry if entry is None else entry._replace(raw=point.notes.raw.get(path_text(path), entry.raw))


def _is_same_print(one: str, other: str) -> bool:
    """Whether two fingerprints are the same: older versions kept less of one."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _is_plain_link(committed: TreeEntry | None, found: TreeEntry | None) -> bool:
    """Whether a file is a link as git writes it where links are turned off."""
    if committed is None or found is None or committed.oid not in (found.oid, found.raw):
        return False
    return (committed.mode, found.mode) == ("120000", "100644")


class Comparison:
    """One comparison of two snapshots of the same tree."""

    def __init__(self, private: PrivateIndex, before: Point, after: Point) -> None:
        self._private = private
        self._before = before
        self._after = after
        self._warnings: list[str] = []
        self._partial = self._are_attributes_new = self._are_conversions_new = False
        self._carrying = Carrying(private)
        self._empty = EMPTY_TREE[private.repository.algorithm]

    def compare(self) -> Compared:
        before, after = self._before, self._after
        asked = [TreeQuery(self._private, point.commit or self._empty, point.tree) for point in (before, after)]
        try:
            net = net_pairs(self._private, before, after, self._warnings)
            dirty_before = self._dirty(before, asked[0])
            dirty_after = self._dirty(after, asked[1]) or {}
        finally:
            for question in asked:
                question.stop()
        self._look_at_rules(net)
        alike = self._alike(net)
        net = {path: pair for path, pair in net.items() if path not in alike}
        moved = self._committed_changes()
        ends = Ends(before.commit, after.commit, after.branch, before.notes, after.notes)
        history = look_back(self._private, ends) if moved is not None else NO_HISTORY
        self._warnings += history.warnings
        causes: dict[bytes, Cause] = {}
        bases: Entries = {}
        for path, pair in net.items():
            committed = dirty_after[path][0] if path in dirty_after else pair[1]
            bases[path] = self._basis(path, pair, committed, moved or {}, history)
            if not is_same(bases[path], pair[0]):
                causes[path] = history.causes.get(path, history.fallback)
        for path in self._alike({path: (bases[path], pair[1]) for path, pair in net.items() if path in causes}):
            bases[path] = net[path][1]
            alike.add(path)
        if alike:
            self._warnings.append(
                "the rules for line ends or $Id$ changed during the task: such a difference alone is no change"
            )
        for path in self._in_and_out_of_sight(net, dirty_before or {}):
            bases[path] = net[path][1]
            causes[path] = "ignore_rules"
        own: Pairs = {path: (bases[path], pair[1]) for path, pair in net.items() if not is_same(bases[path], pair[1])}
        external: Pairs = {path: (net[path][0], bases[path]) for path in causes}
        origins = {path: self._origin(path, pair[1], dirty_after, history) for path, pair in own.items()}
        basis = self._basis_tree(own, net, is_all=not external)
        return Compared(
            own,
            external,
            causes,
            origins,
            self._texts_or(dirty_before),
            self._detail(basis, own),
            basis,
            history.commits,
            self._warnings,
            self._partial,
        )

    def _texts_or(self, dirty: Pairs | None) -> set[bytes]:
        found = set(dirty) if dirty is not None else {path_bytes(text) for text in self._before.notes.dirty}
        return {path for path in found if not is_ours(path)}

    def _dirty(self, point: Point, asked: TreeQuery) -> Pairs | None:
        """What differed from the last commit; None if that can no longer be determined."""
        commit = point.commit or self._empty
        try:
            pairs = with_large(self._private, asked.pairs(), (commit, point.tree), ({}, point.large))
        except GitTimedOut:
            raise
        except GitFailed:
            return None
        if not self._private.repository.has_plain_links:
            return pairs
        return {path: pair for path, pair in pairs.items() if not _is_plain_link(*pair)}

    def _committed_changes(self) -> Pairs | None:
        """What differs between the commits of both ends; None if the older one is gone."""
        try:
            return differing(self._private, self._before.commit or self._empty, self._after.commit or self._empty)
        except GitTimedOut:
            raise
        except GitFailed:
            self._warnings.append("the commit the task began with is gone; all changes count as the task's own")
            return None

    def _basis(
        self, path: bytes, pair: difference.Pair, committed: TreeEntry | None, moved: Pairs, history: History
    ) -> TreeEntry | None:
        found, now = pair
        if path in history.own:
            first = history.own[path]
            committed_before = moved[path][0] if path in moved else committed
            if first == "as found":
                return found
            if is_same(first, committed_before):
                return history.merged.get(path, found)
            return first
        if path not in moved:
            return found
        if is_same(_with_raw(path, now, self._after), committed):
            return now
        was_committed = moved[path][0]
        if is_same(_with_raw(path, found, self._before), was_committed):
            return committed
        return self._carrying.merged(found, was_committed, committed) or committed

    def _look_at_rules(self, net: Pairs) -> None:
        """If the rules for conversions changed, git finds differences in files that nobody touched."""
        before, after = self._before.notes, self._after.notes
        self._are_attributes_new = bool(
            before.attributes and after.attributes and not _is_same_print(before.attributes, after.attributes)
        )
        in_tree = any(path == b".gitattributes" or path.endswith(b"/.gitattributes") for path in net)
        are_line_ends_new = bool(before.line_ends and after.line_ends and before.line_ends != after.line_ends)
        self._are_conversions_new = in_tree or self._are_attributes_new or are_line_ends_new
        if self._are_attributes_new:
            self._partial = True
            self._warnings.append(
                "filters or attributes outside the tree changed during the task: what they leave out is not seen"
            )

    def _alike(self, pairs: Pairs) -> set[bytes]:
        """The paths that differ in what git converts alone, if the rules for that changed."""
        if not self._are_conversions_new:
            return set()
        asked = {
            path: (old.oid, new.oid)
            for path, (old, new) in pairs.items()
            if old is not None and new is not None and old.mode == new.mode and old.is_stored and new.is_stored
            if old.oid is not None and new.oid is not None
        }
        alike = differing_by_git_alone(self._private, asked)
        if self._are_attributes_new:
            return set(alike)
        converted = self._converted(sorted(alike))
        return {path for path, ways in alike.items() if ways <= converted.get(path, set())}

    def _converted(self, paths: list[bytes]) -> dict[bytes, set[str]]:
        """Which of line ends and `$Id$` git changed in files, at either end."""
        found: dict[bytes, set[str]] = {}
        for point in (self._before, self._after):
            kept = self._private.state.kept_index(point.id)
            if paths and os.path.exists(kept):  # noqa: PTH110
                for path, ways in conversions(self._private, paths, kept, point.notes.line_ends).items():
                    found.setdefault(path, set()).update(ways)
        return found

    def _in_and_out_of_sight(self, net: Pairs, dirty_before: Pairs) -> list[bytes]:
        """Files that existed all the time and are now revealed or hidden by ignore rules."""
        before, after = self._before.notes, self._after.notes
        if not self._are_rules_new(net):
            return []
        self._warnings.append("ignore rules changed during the task: some files came into or went out of sight")
        self._warnings += told_hidden(after)
        self._partial |= after.is_hidden_cut
        gone = {entry.oid for entry, now in net.values() if entry is not None and now is None}
        latest = before.began_ns - REVEAL_MARGIN_NS
        untracked_now = [path for path, (found, _) in net.items() if found is None and self._mark(after, path) == "D"]
        shown = [path for path in untracked_now if self._changed_ns(path) < latest]
        shown = [path for path in shown if (entry := net[path][1]) is None or entry.oid not in gone]
        large = [path for path in self._before.large if path in dirty_before and dirty_before[path][0] is None]
        untracked = {path for path in net if self._mark(before, path) == "D"}.union(large)
        still_there = [path for path, (_, now) in net.items() if now is None and path in untracked]
        hidden = self._private.ignored([path for path in still_there if self._changed_ns(path) >= 0])
        return shown + hidden

    def _are_rules_new(self, net: Pairs) -> bool:
        """Whether ignore rules changed. If nobody looked at the end for what they hide, the answer is partial."""
        before, after = self._before.notes, self._after.notes
        if after.since and after.since == self._before.id:
            return after.are_rules_new
        in_tree = any(path == b".gitignore" or path.endswith(b"/.gitignore") for path in net)
        are_new = in_tree or (before.ignoring and after.ignoring and before.ignoring != after.ignoring)
        self._partial |= bool(are_new)
        return bool(are_new)

    @staticmethod
    def _mark(notes: Notes, path: bytes) -> str | None:
        return notes.unstaged.get(path_text(path))

    def _changed_ns(self, path: bytes) -> int:
        """When a file was last changed; -1 if it does not exist."""
        try:
            facts = os.lstat(os.fsencode(self._private.repository.top) + b"/" + path)
        except OSError:
            return -1
        return max(facts.st_mtime_ns, facts.st_ctime_ns)

    def _origin(self, path: bytes, now: TreeEntry | None, dirty_after: Pairs, history: History) -> Origin:
        if path not in dirty_after:
            return "committed" if path in history.own else "working_tree"
        mark = self._mark(self._after.notes, path)
        if path in self._after.large:
            if now is not None and now.oid is not None and mark is not None:
                return "staged"
            return "untracked" if dirty_after[path][0] is None else "working_tree"
        if mark is None:
            return "staged"
        return "untracked" if mark == "D" else "working_tree"

    def _basis_tree(self, own: Pairs, net: Pairs, *, is_all: bool) -> str:
        """The tree before the task's own part. It lacks files that are stored in no tree."""
        stored = {path: pair[0] for path, pair in own.items() if pair[0] is None or pair[0].is_stored}
        is_as_found = all(is_same(entry, net[path][0]) for path, entry in stored.items())
        if is_as_found and (is_all or len(stored) <= ARGUMENTS):
            return self._before.tree  # good enough, since only the task's own paths are looked at
        return difference.tree_with(self._private, self._after.tree, stored)

    def _detail(self, basis: str, own: Pairs) -> Detail:
        stored = [path for path, pair in own.items() if all(entry is None or entry.is_stored for entry in pair)]
        try:
            return difference.detail(self._private, basis, self._after.tree, stored)
        except GitTimedOut:
            raise
        except GitFailed:
            self._warnings.append("some old contents are not at hand; lines and renames are not told")
            return Detail({}, [])
