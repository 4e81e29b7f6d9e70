"""The tracker of git working trees: snapshots of kind `git`. Implements `handrail.domain.journal.ports.Tracker`.

Whatever cannot be read or done in time is flagged and warned about; a partial answer is still an answer, and never
silently an empty one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from handrail.domain.journal.entry import Changes, ExternalChange, FileChange, Overlap, Rename
from handrail.domain.journal.paths import path_bytes, path_text
from handrail.domain.journal.ports import OtherTask, Snapshot
from handrail.kernel.clock import Clock
from handrail.kernel.ids import Ids
from handrail.outside.tracking import nested_repositories
from handrail.outside.tracking.comparison import Compared, Comparison, Point, net_pairs
from handrail.outside.tracking.difference import EMPTY_TREE, LineCounts, Pair, is_same
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import Deadline, GitFailed, GitTimedOut
from handrail.outside.tracking.large_files import Limits
from handrail.outside.tracking.out_of_sight import RulesThen, TaskBeginning, told_hidden
from handrail.outside.tracking.patch import named_only, patch_between, patch_of
from handrail.outside.tracking.private_index import PrivateIndex
from handrail.outside.tracking.prune import prune
from handrail.outside.tracking.snapshot import Taken, take
from handrail.outside.tracking.state import Busy, IgnoreSources, Notes, StateFolder, TreeState


class _Began(NamedTuple):
    """What a task began with: the tree, and the repositories inside it."""

    beginning: TaskBeginning
    inside: dict[str, Snapshot]


LAST_RESORT_S = 3.0
"""Extra time beyond the limit to find out at least where HEAD is."""


class GitTracker:
    """Watches git working trees."""

    def __init__(self, state: Path, *, clock: Clock, ids: Ids, limits: Limits | None = None) -> None:
        self._state = StateFolder(state)
        self._clock = clock
        self._ids = ids
        self._limits = limits or Limits()

    def snapshot(self, root: str, *, like: Snapshot | None = None) -> Snapshot:
        """`root` must be in a repository, or have been in one when `like` was taken."""
        top = like.root if like is not None else root
        return self.tried(top, like=like) or self._snapshot_of_lost(top)

    def tried(self, root: str, *, like: Snapshot | None = None) -> Snapshot | None:
        """None if there is no usable repository."""
        deadline = Deadline(self._limits.seconds)
        repository = discover(root, deadline)
        if repository is None:
            return None
        return self._take(repository, deadline, 0, self._beginning(repository, like))

    def _beginning(self, repository: GitRepository, like: Snapshot | None) -> _Began | None:
        """What a task began with in a repository; None if that is not known well enough to look for what was hidden
        since."""
        if like is None or like.tree is None:
            return None
        notes = self._state.of(repository.top, repository.git_dir).notes(like.id)
        inside = nested_repositories.snapshots_inside(like)
        return _Began(TaskBeginning(like.id, like.tree, notes), inside) if notes is not None else None

    def _take(self, repository: GitRepository, deadline: Deadline, depth: int, began: _Began | None = None) -> Snapshot:
        state = self._state.of(repository.top, repository.git_dir)
        private = PrivateIndex(repository, state, deadline)
        identity = self._ids.new("snap")
        try:
            with state.locked(deadline):
                state.prepare(repository.top)
                taken = self._take_or_rebuild(private, began)
                state.keep(identity, taken.notes)
        except (Busy, GitFailed, OSError) as problem:
            return self._degraded(repository, state, identity, problem)
        flags = list(taken.flags)
        inside = {}
        found = nested_repositories.repositories(repository, taken.nested, deadline, limit=self._limits.nested)
        if depth < self._limits.depth:
            for path, repository_inside in found.items():
                known = self._beginning_inside(repository_inside, path, taken, began)
                inside[path_text(path)] = self._take(repository_inside, deadline, depth + 1, known)
                flags += [
                    f"{flag} in {path_text(path)}" for flag in inside[path_text(path)].flags if flag == "degraded"
                ]
        refused = nested_repositories.unusable(repository, taken.nested[: self._limits.nested], found)
        flags += [f"nested_unusable:{path_text(path)}" for path in refused]
        left_out = len(taken.nested) - len(inside)
        if left_out > 0 and (depth >= self._limits.depth or len(taken.nested) > self._limits.nested):
            flags.append(f"nested_left_out:{left_out}")
        return Snapshot(
            id=identity,
            kind="git",
            root=repository.top,
            commit=taken.commit,
            tree=taken.tree,
            branch=taken.branch,
            taken_at=self._clock.now_ms(),
            flags=flags,
            data=_data(state, inside),
        )

    def _beginning_inside(
        self, repository: GitRepository, path: bytes, taken: Taken, began: _Began | None
    ) -> _Began | None:
        """The same for a repository inside. If there was none, its own rules are as new as it is."""
        if began is None:
            return None
        if (like := began.inside.get(path_text(path))) is not None:
            return self._beginning(repository, like)
        outer = taken.rules_then or RulesThen({}, IgnoreSources())
        prefix = f"{began.beginning.prefix}{os.fsdecode(path)}/"
        return _Began(TaskBeginning("", EMPTY_TREE[repository.algorithm], Notes(), outer, prefix), {})

    def _take_or_rebuild(self, private: PrivateIndex, began: _Began | None) -> Taken:
        """Takes a snapshot. If git cannot use the private index, it is rebuilt once."""
        asked = (began.beginning, [path_bytes(text) for text in began.inside]) if began is not None else ()
        try:
            return take(private, self._limits, *asked)
        except GitTimedOut:
            raise
        except GitFailed:
            private.begin()
            taken = take(private, self._limits, *asked)
            return taken._replace(flags=[*taken.flags, "begun_anew"])

    def _degraded(self, repository: GitRepository, state: TreeState, identity: str, problem: Exception) -> Snapshot:
        """A snapshot with nothing but HEAD."""
        commit = None
        try:
            asked = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
            commit = repository.run(*asked, deadline=Deadline(LAST_RESORT_S), allowed=(0, 1)).decode().strip() or None
        except (GitFailed, OSError):
            pass
        return Snapshot(
            id=identity,
            kind="git",
            root=repository.top,
            commit=commit,
            taken_at=self._clock.now_ms(),
            flags=["degraded", f"because:{str(problem)[:200]}"],
            data=_data(state, {}),
        )

    def _snapshot_of_lost(self, top: str) -> Snapshot:
        """For a repository that is gone or can no longer be used."""
        flags = ["degraded", "because:the repository is gone or cannot be used"]
        return Snapshot(id=self._ids.new("snap"), kind="git", root=top, taken_at=self._clock.now_ms(), flags=flags)

    def changes(self, before: Snapshot, after: Snapshot, *, others: Sequence[OtherTask] = ()) -> Changes:
        deadline = Deadline(self._limits.seconds)
        try:
            found = self._changes(before, after, deadline)
            return self._with_overlaps(found, before, after, others, deadline)
        except (GitFailed, Busy, OSError) as problem:
            return Changes(own=[], warnings=[f"the changes could not be determined: {problem}"], partial=True)

    def _changes(self, before: Snapshot, after: Snapshot, deadline: Deadline) -> Changes:
        private = self._private(after, deadline) or self._private(before, deadline)
        if private is None:
            warning = f"{after.root} is no repository any more; its changes are not known"
            return Changes(own=[], warnings=[warning], partial=True)
        warnings = [warning for snapshot in (before, after) for warning in _shortcomings(snapshot)]
        with private.state.locked(deadline):
            points = (self._point(private, before, warnings), self._point(private, after, warnings))
            compared = Comparison(private, *points).compare()
        found = _as_changes(compared, warnings)
        for text in sorted(
            {*nested_repositories.snapshots_inside(before), *nested_repositories.snapshots_inside(after)}
        ):
            inside, accounted = self._inside(private, text, (before, after), deadline)
            settled = {nested_repositories.prefixed(text, path) for path in accounted}
            outer = [change for change in found.own if change.path not in settled]
            found = _with_nested_changes(msgspec.structs.replace(found, own=outer), text, inside)
        return found

    def _inside(
        self, private: PrivateIndex, text: str, ends: tuple[Snapshot, Snapshot], deadline: Deadline
    ) -> tuple[Changes, set[str]]:
        """What changed in a repository inside this one, with its paths; and the paths for which that replaces the outer
        repository's account."""
        old, new = (
            nested_repositories.snapshots_inside(ends[0]).get(text),
            nested_repositories.snapshots_inside(ends[1]).get(text),
        )
        if old is not None and new is not None:
            return self._changes(old, new, deadline), set()
        only = new or old
        assert only is not None
        inner = nested_repositories.files_of(private, self._state, only)
        outer = tuple(end.tree or end.commit or EMPTY_TREE[private.repository.algorithm] for end in ends)
        sides = (outer[0], outer[1])
        found, names = nested_repositories.appeared_or_gone(private, inner, path_bytes(text), sides, is_new=old is None)
        doubts = _shortcomings(only)
        notes = self._state.named(only.data["state"]).notes(only.id) if new is not None else None
        hidden = told_hidden(notes) if notes is not None else []
        is_partial = found.partial or bool(doubts) or (notes is not None and notes.is_hidden_cut)
        return msgspec.structs.replace(found, warnings=found.warnings + doubts + hidden, partial=is_partial), names

    def _private(self, snapshot: Snapshot, deadline: Deadline) -> PrivateIndex | None:
        repository = discover(snapshot.root, deadline)
        if repository is None:
            return None
        state = self._state.of(repository.top, repository.git_dir)
        state.prepare(repository.top)
        return PrivateIndex(repository, state, deadline)

    @staticmethod
    def _point(private: PrivateIndex, snapshot: Snapshot, warnings: list[str]) -> Point:
        notes = private.state.notes(snapshot.id)
        if notes is None:
            notes = Notes()
            if snapshot.tree is not None:
                warnings.append("a snapshot's notes are no longer kept; where changes came from is told roughly")
        tree = snapshot.tree or snapshot.commit or EMPTY_TREE[private.repository.algorithm]
        return Point.of(snapshot.id, snapshot.commit, snapshot.branch, tree, notes)

    def _with_overlaps(
        self, found: Changes, before: Snapshot, after: Snapshot, others: Sequence[OtherTask], deadline: Deadline
    ) -> Changes:
        """Names the tasks that were open while a path changed, by splitting the time at each of their snapshots."""
        if not others:
            return found
        ends = [end for task in others for end in (task.started, task.ended) if end is not None and end.kind == "git"]
        inner = [end for end in ends if before.taken_at < end.taken_at < after.taken_at and end.root == before.root]
        cuts = sorted([before, *inner, after], key=lambda end: (end.taken_at, end.id))
        own = {change.path for change in found.own}
        tasks: dict[str, set[str]] = {}
        for start, end in itertools.pairwise(cuts):
            open_then = {
                task.task_id
                for task in others
                if task.started.taken_at <= start.taken_at
                and (task.ended is None or task.ended.taken_at >= end.taken_at)
            }
            for path in own & self._paths_between(start, end, deadline) if open_then else ():
                tasks.setdefault(path, set()).update(open_then)
        overlaps = [Overlap(path=path, tasks=sorted(tasks[path])) for path in sorted(tasks)]
        return msgspec.structs.replace(found, overlaps=overlaps)

    def _paths_between(self, start: Snapshot, end: Snapshot, deadline: Deadline) -> set[str]:
        private = self._private(end, deadline)
        if private is None:
            return set()
        warnings: list[str] = []
        points = (self._point(private, start, warnings), self._point(private, end, warnings))
        found = {path_text(path) for path in net_pairs(private, *points, warnings)}
        inside = {*nested_repositories.snapshots_inside(start)} & {*nested_repositories.snapshots_inside(end)}
        for text in inside:
            below = self._paths_between(
                nested_repositories.snapshots_inside(start)[text],
                nested_repositories.snapshots_inside(end)[text],
                deadline,
            )
            found |= {nested_repositories.prefixed(text, path) for path in below}
        return found

    def patch(self, before: Snapshot, after: Snapshot, paths: Sequence[str] | None = None) -> Iterator[bytes]:
        return self._patch(before, after, None if paths is None else {path_bytes(path) for path in paths}, b"")

    def _patch(self, before: Snapshot, after: Snapshot, paths: set[bytes] | None, prefix: bytes) -> Iterator[bytes]:
        deadline = Deadline(self._limits.seconds)
        private = self._private(after, deadline)
        if private is None:
            return
        with private.state.locked(deadline):
            points = (self._point(private, before, []), self._point(private, after, []))
            compared = Comparison(private, *points).compare()
        own = {path for path in compared.own if paths is None or prefix + path in paths}
        yield from patch_of(private, compared, points[1].tree, own, prefix)
        inner = nested_repositories.snapshots_inside(before), nested_repositories.snapshots_inside(after)
        for text in sorted({*inner[0], *inner[1]}):
            old, new = inner[0].get(text), inner[1].get(text)
            below = prefix + path_bytes(text) + b"/"
            if old is not None and new is not None:
                yield from self._patch(old, new, paths, below)
                continue
            changes, _ = self._inside(private, text, (before, after), deadline)
            chosen = {path_bytes(change.path): change for change in changes.own}
            wanted = {path: change for path, change in chosen.items() if paths is None or below + path in paths}
            yield from self._patch_of_new(new, {path for path in wanted if wanted[path].change == "added"}, below)
            yield from named_only(
                below + path for path in sorted(wanted) if new is None or wanted[path].change != "added"
            )

    def _patch_of_new(self, new: Snapshot | None, added: set[bytes], prefix: bytes) -> Iterator[bytes]:
        """The patch of a repository that was not there before: all its files are added."""
        deadline = Deadline(self._limits.seconds)
        private = self._private(new, deadline) if new is not None and added else None
        if new is None or private is None:
            return
        point = self._point(private, new, [])
        empty = EMPTY_TREE[private.repository.algorithm]
        inner = nested_repositories.snapshots_inside(new)
        below = {path for path in added if any(path.startswith(path_bytes(text) + b"/") for text in inner)}
        large = added & point.large.keys()
        yield from patch_between(private, (empty, point.tree), sorted(added - below - large), prefix)
        yield from named_only(prefix + path for path in sorted(large))
        for text, snapshot in sorted(inner.items()):
            start = path_bytes(text) + b"/"
            own = {path.removeprefix(start) for path in below if path.startswith(start)}
            yield from self._patch_of_new(snapshot, own, prefix + start)

    def forget(self, snapshot: Snapshot) -> None:
        if "state" in snapshot.data:
            self._state.named(snapshot.data["state"]).forget(snapshot.id)
        for inside in nested_repositories.snapshots_inside(snapshot).values():
            self.forget(inside)

    def prune(self, older_than_ms: int, keep: Collection[str]) -> int:
        return prune(self._state, older_than_ms, keep, self._limits.seconds)

    def disk_use(self) -> int:
        return self._state.disk_use()


def _data(state: TreeState, inside: dict[str, Snapshot]) -> dict[str, Any]:
    data: dict[str, Any] = {"state": state.name}
    if inside:
        data["nested"] = {text: msgspec.to_builtins(snapshot) for text, snapshot in inside.items()}
    return data


def _shortcomings(snapshot: Snapshot) -> list[str]:
    """What a snapshot could not see, as sentences."""
    found = []
    for flag in snapshot.flags:
        name, _, what = flag.partition(":")
        if name == "degraded":
            found.append("the working copy could not be read in time; only committed changes are told apart")
        elif name == "because":
            found.append(what)
        elif name == "unreadable":
            found.append(f"{what} cannot be read; whether it changed is not known")
        elif name == "nested_unusable":
            found.append(f"{what} is a repository that git refuses to read; what changed in it is not known")
        elif name == "nested_left_out":
            found.append(f"{what} repositories inside this one were not looked into")
    return found


def _as_changes(compared: Compared, warnings: list[str]) -> Changes:
    """The comparison as the port's `Changes`."""
    lines = compared.detail.lines
    own = []
    for path, pair in sorted(compared.own.items()):
        counted = lines.get(path)
        own.append(
            FileChange(
                path=path_text(path),
                change=_change(pair),
                origin=compared.origins[path],
                lines_added=counted.added if counted else None,
                lines_removed=counted.removed if counted else None,
                binary=counted == LineCounts(None, None),
                was_dirty=path in compared.dirty_before,
            )
        )
    renames = sorted((old, new, how) for old, new, how in compared.detail.renames if {old, new} <= compared.own.keys())
    external = [
        ExternalChange(path=path_text(path), change=_change(pair), cause=compared.causes[path])
        for path, pair in sorted(compared.external.items())
        if not is_same(*pair)
    ]
    return Changes(
        own=own,
        renamed=[Rename(from_path=path_text(old), to_path=path_text(new), similarity=how) for old, new, how in renames],
        dirty_before=[path_text(path) for path in sorted(compared.dirty_before)],
        external=external,
        commits=compared.commits,
        warnings=[*warnings, *compared.warnings],
        partial=compared.partial or bool(warnings),
    )


def _change(pair: Pair) -> Any:
    if pair[0] is None:
        return "added"
    return "deleted" if pair[1] is None else "modified"


def _with_nested_changes(outer: Changes, text: str, inside: Changes) -> Changes:
    """Combines both; where both report a path, the repository that contains it knows better."""
    replace = msgspec.structs.replace
    own = {change.path: change for change in outer.own}
    own |= {
        path: replace(change, path=path)
        for change in inside.own
        for path in [nested_repositories.prefixed(text, change.path)]
    }
    renamed = [
        replace(
            rename,
            from_path=nested_repositories.prefixed(text, rename.from_path),
            to_path=nested_repositories.prefixed(text, rename.to_path),
        )
        for rename in inside.renamed
    ]
    external = [replace(change, path=nested_repositories.prefixed(text, change.path)) for change in inside.external]
    return Changes(
        own=sorted(own.values(), key=lambda change: path_bytes(change.path)),
        renamed=[*outer.renamed, *renamed],
        dirty_before=[*outer.dirty_before, *(nested_repositories.prefixed(text, path) for path in inside.dirty_before)],
        external=[*outer.external, *external],
        commits=[*outer.commits, *inside.commits],
        warnings=[*outer.warnings, *(f"{text}: {warning}" for warning in inside.warnings)],
        partial=outer.partial or inside.partial,
    )
