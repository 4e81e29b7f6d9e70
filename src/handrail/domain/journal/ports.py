"""The port to the working copy: exact snapshots, and the differences between them. No I/O here.

Behind it are git repositories and plain folders. A snapshot is small enough for a database row; the tracker keeps what
it refers to until it is forgotten or pruned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from handrail.domain.journal.entry import Changes

SnapshotKind = Literal["git", "checksum"]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The exact state of a working copy at one moment."""

    id: str
    """Unique; identifies the snapshot to `forget` and `prune`."""
    kind: SnapshotKind
    root: str
    commit: str | None = None
    """HEAD; None outside git and in a repository without commits."""
    tree: str | None = None
    """The hash of everything not ignored; None if it could not be computed in time (flag `degraded`)."""
    branch: str | None = None
    taken_at: int
    flags: list[str] = []
    """Anything remarkable, and every way in which the snapshot is less than exact: `degraded`, `unreadable`, …"""
    data: dict[str, Any] = {}
    """The tracker's own notes."""

    @property
    def shown_id(self) -> str:
        """What is shown as `snapshot_id`: the commit, else the hash of the tree or manifest."""
        return self.commit or self.tree or self.id


class OtherTask(msgspec.Struct, frozen=True, kw_only=True):
    """Another task in the same tree, by its snapshots. Never a parent or subtask of the task in question: a subtask's
    changes count as its parent's too."""

    task_id: str
    started: Snapshot
    ended: Snapshot | None = None


class Tracker(Protocol):
    """Watches working copies. Every call is synchronous and bounded in time; none writes anything into the user's
    repository."""

    def snapshot(self, root: str, *, like: Snapshot | None = None) -> Snapshot:
        """The state of the working copy that contains `root`. `like` is the snapshot it will be compared with: whether
        the folder is treated as a git repository is settled when a task begins."""
        ...

    def changes(self, before: Snapshot, after: Snapshot, *, others: Sequence[OtherTask] = ()) -> Changes:
        """What changed between two snapshots of the same kind and root. `others` are tasks that were open in the same
        tree at any time in between."""
        ...

    def patch(self, before: Snapshot, after: Snapshot, paths: Sequence[str] | None = None) -> Iterator[bytes]:
        """The task's own part as a patch for `git apply`; `paths` selects among its files."""
        ...

    def forget(self, snapshot: Snapshot) -> None:
        """Frees what only this snapshot needed. Later questions about it get partial answers."""
        ...

    def prune(self, older_than_ms: int, keep: Collection[str]) -> int:
        """Forgets every snapshot taken before that time whose id is not in `keep`; returns the bytes freed."""
        ...

    def disk_use(self) -> int:
        """The bytes that all snapshots take up."""
        ...


class Checks(Protocol):
    """The checks of one project, run where the work was done."""

    def run(self, directory: str) -> list[dict[str, Any]]:
        """Runs each configured check: its name, command, exit code and the end of its output."""
        ...
