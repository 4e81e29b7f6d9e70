"""The port to the working copy: exact snapshots, and what lies between two of them. No I/O here.

Behind it are git repositories and plain folders. A snapshot is small enough for a row of the database; what it refers
to is kept by the tracker until it is forgotten or pruned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from handrail.domain.journal.changes import Changes

__all__ = ["Changes", "Checks", "OtherTask", "Snapshot", "SnapshotKind", "Tracker"]

SnapshotKind = Literal["git", "checksum"]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The exact state of a working copy at one moment."""

    id: str
    """Nobody else's: what `forget` and `prune` go by."""
    kind: SnapshotKind
    root: str
    commit: str | None = None
    """HEAD; None outside git and in a repository without commits."""
    tree: str | None = None
    """The hash of everything that is in sight; None where it could not be determined in time (flag `degraded`)."""
    branch: str | None = None
    taken_at: int
    flags: list[str] = []
    """What was remarkable, and every way in which the answer is less than exact: `degraded`, `unreadable`, …"""
    data: dict[str, Any] = {}
    """The tracker's own notes."""

    @property
    def shown_id(self) -> str:
        """What people see as `snapshot_id`: the commit, else the hash of the tree or manifest."""
        return self.commit or self.tree or self.id


class OtherTask(msgspec.Struct, frozen=True, kw_only=True):
    """Another task in the same tree, by its boundaries. Parents and subtasks of the asking task are not meant: what a
    subtask changes is its parent's change too."""

    task_id: str
    started: Snapshot
    ended: Snapshot | None = None


class Tracker(Protocol):
    """Watches working copies. Every call is synchronous and bounded in time; none writes anything into the user's
    repository."""

    def snapshot(self, root: str, *, like: Snapshot | None = None) -> Snapshot:
        """The state of the working copy that `root` lies in. `like` is the snapshot it will be compared with: whether
        it is read as a git repository is settled when a task begins."""
        ...

    def changes(self, before: Snapshot, after: Snapshot, *, others: Sequence[OtherTask] = ()) -> Changes:
        """What lies between two snapshots of one kind and root. `others` are tasks that were open in the same tree at
        any time in between."""
        ...

    def patch(self, before: Snapshot, after: Snapshot, paths: Sequence[str] | None = None) -> Iterator[bytes]:
        """The task's own part as a patch that `git apply` takes; `paths` chooses among its files."""
        ...

    def forget(self, snapshot: Snapshot) -> None:
        """Gives back what only this snapshot needed; asking about it later is answered in part."""
        ...

    def prune(self, older_than_ms: int, keep: Collection[str]) -> int:
        """Forgets every snapshot taken before that time whose id is not among `keep`; the bytes it freed."""
        ...

    def disk_use(self) -> int:
        """Bytes that all snapshots take."""
        ...


class Checks(Protocol):
    """The project's own checks: its tests, its linters."""

    def run(self, directory: str) -> list[dict[str, Any]]:
        """Runs every check in a working copy and says how each ended."""
        ...
