"""The tracker of whatever a task works in: git if there is a usable repository, otherwise the plain directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from handrail.domain.journal.entry import Changes
from handrail.domain.journal.ports import OtherTask, Snapshot, Tracker
from handrail.kernel.clock import Clock
from handrail.kernel.ids import Ids
from handrail.outside.tracking.directory import DirectoryTracker
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.large_files import Limits


class WorkingCopies:
    """Chooses when a task begins, and keeps to the choice until it ends: a repository may be created meanwhile."""

    def __init__(self, state: Path, *, clock: Clock, ids: Ids, limits: Limits | None = None) -> None:
        self._state = state
        self._clock = clock
        self._git = GitTracker(state, clock=clock, ids=ids, limits=limits)
        self._plain = DirectoryTracker(state, clock=clock, ids=ids)

    def snapshot(self, root: str, *, like: Snapshot | None = None) -> Snapshot:
        self._make_folder()
        if like is not None:
            return self._tracker_for(like).snapshot(root, like=like)
        return self._git.tried(root) or self._plain.snapshot(root)

    def changes(self, before: Snapshot, after: Snapshot, *, others: Sequence[OtherTask] = ()) -> Changes:
        if before.kind != after.kind:
            warning = "the folder became a repository, or was one: the two snapshots cannot be compared"
            return Changes(own=[], warnings=[warning], partial=True)
        return self._tracker_for(before).changes(before, after, others=others)

    def patch(self, before: Snapshot, after: Snapshot, paths: Sequence[str] | None = None) -> Iterator[bytes]:
        return self._tracker_for(before).patch(before, after, paths)

    def forget(self, snapshot: Snapshot) -> None:
        self._tracker_for(snapshot).forget(snapshot)

    def prune(self, older_than_ms: int, keep: Collection[str]) -> int:
        return self._git.prune(older_than_ms, keep) + self._plain.prune(older_than_ms, keep)

    def disk_use(self) -> int:
        return self._git.disk_use() + self._plain.disk_use()

    def is_due(self, every_ms: int) -> bool:
        """Whether to prune: true once per `every_ms`, no matter who asks. False until there is a first snapshot."""
        marker = self._state / "pruned"
        try:
            if self._clock.now_ms() - marker.stat().st_mtime_ns // 1_000_000 < every_ms:
                return False
            os.utime(marker)
        except OSError:
            return False
        return True

    def _make_folder(self) -> None:
        """Creates the state folder, with a .gitignore so that git leaves it alone wherever the database is."""
        with contextlib.suppress(OSError):  # the next write into it will report the problem
            self._state.mkdir(parents=True, exist_ok=True)
            for name, text in ((".gitignore", "*\n"), ("pruned", "")):
                with contextlib.suppress(FileExistsError), (self._state / name).open("x", encoding="utf-8") as file:
                    file.write(text)

    def _tracker_for(self, snapshot: Snapshot) -> Tracker:
        return self._git if snapshot.kind == "git" else self._plain
