"""What one task changed, for every surface that shows it: read from its journal, or computed now if it is still open.

Snapshots belong to the tracker; how a patch is displayed is up to the surface. Looking at a working copy takes time, so
a server does not do it inside a unit of work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.journal import snapshot_of
from handrail.domain.journal.ports import Snapshot, Tracker
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NotFound, PlaceUnusable
from handrail.kernel.late import late_module
from handrail.kernel.wording import printable_line
from handrail.operation import Call

if TYPE_CHECKING:
    from handrail.outside import tracking
    from handrail.outside.tracking import git_process, state
else:
    tracking = late_module("handrail.outside.tracking")
    git_process = late_module("handrail.outside.tracking.git_process")
    state = late_module("handrail.outside.tracking.state")


class Journalled(NamedTuple):
    """A task with its journal entry, and the tracker for its working copy."""

    task: Task
    entry: JournalEntry
    tracker: Tracker


class Difference(NamedTuple):
    """The difference between two snapshots, and whether the second is current."""

    before: Snapshot
    after: Snapshot
    report: dict[str, Any]
    is_open: bool

    @property
    def warnings(self) -> list[str]:
        """What a reader should know before relying on it."""
        found: list[str] = self.report.get("verification", self.report).get("warnings", [])
        return found

    @property
    def nothing(self) -> str:
        """What to say if no file is listed."""
        if self.report.get("partial"):
            return "What it changed is not known."
        return "It has changed nothing so far." if self.is_open else "It changed nothing."


def journalled(call: Call, task: Task) -> Journalled:
    """The task with its entry; refused if it has none."""
    entry = call.work.get(JournalEntry, task.id)
    if entry is None:
        raise NotFound(
            f'no snapshot was taken when "{printable_line(task.name)}" began, so nobody knows exactly what it changed',
            hint="a task that is begun with start_task has one",
        )
    return Journalled(task, entry, tracker_of(call, workflow_of(call.work, task)))


def tracker_of(call: Call, workflow: Workflow) -> Tracker:
    """The tracker with the snapshots of a workflow's tasks: in a shared store, its own repository's."""
    if not call.here.shared or workflow.repository_path in (None, call.here.repository):
        return call.world.tracker()
    assert workflow.repository_path is not None, "just looked at"
    return tracking.tracker_at(Path(workflow.repository_path))


def difference(meant: Journalled) -> Difference:
    """What the task changed, from its report, or so far if it is open. In that case the caller must `forget` the second
    snapshot in the end."""
    entry = meant.entry
    before = snapshot_of(entry.before)
    if entry.after is not None:
        report = entry.report
        assert report is not None, "a task that ended has its report"
        return Difference(before, snapshot_of(entry.after), report, is_open=False)
    if not Path(entry.directory).is_dir():
        raise PlaceUnusable(
            f"the working copy {printable_line(entry.directory)} is not there any more, and the task never ended",
            hint="what it changed is not known; its notes are: `handrail journal`",
        )
    after = meant.tracker.snapshot(entry.directory, like=before)
    changes = msgspec.to_builtins(meant.tracker.changes(before, after))
    report = {"files": changes.pop("own"), **changes}
    if meant.task.is_finished:
        report["warnings"] = [*changes["warnings"], "it ended without complete_task: this is what changed up to now"]
    return Difference(before, after, report, is_open=True)


def patch_of(tracker: Tracker, found: Difference, paths: Sequence[str]) -> Iterator[bytes]:
    """The patch of these files; refused if the snapshots it is made from are gone."""
    try:
        yield from tracker.patch(found.before, found.after, paths)
    except state.Busy:
        raise PlaceUnusable(
            f"another snapshot of {printable_line(found.before.root)} is being taken for too long", hint="try again"
        ) from None
    except git_process.GitFailed:
        raise given_up(len(paths)) from None


def never_kept(files: int) -> NotFound:
    """The refusal for a patch of files that are known by name and fingerprint alone."""
    return NotFound(
        f"no patch: of {files} changed {'file' if files == 1 else 'files'} no content was kept",
        hint="too large, under a filter that is not run, or in a repository that is gone; --stat and --json name them",
    )


def given_up(files: int) -> NotFound:
    """The refusal for a patch whose snapshots were dropped."""
    return NotFound(
        f"what this patch would be made from is not kept any more; {files} {'file' if files == 1 else 'files'} changed",
        hint="--stat and --json still tell which; snapshot_days and snapshot_count say how long it is kept",
    )
