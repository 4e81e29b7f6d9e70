"""A journal entry: what a task began with and, once it is done, what it changed. One for each journalled task.

The task itself, its states and its notes are records of `domain/work`; this is what the journal adds to them.

What changed in a working copy between two snapshots: the task's own part and, separately, everything else.

Plain records. How they are obtained is behind the port in `ports.py`. Paths are relative to the root of the working
copy, with `/`, in the text form of `paths.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of one task, under the task's id. A task that is begun again continues it from the first snapshot; what
    the entry said before stays in the ledger."""

    id: str
    workflow_id: str
    directory: str
    """Where the work is done: the root of the working copy."""
    areas: list[str]
    plan_step: str | None
    before: dict[str, Any]
    """The snapshot taken when it began."""
    after: dict[str, Any] | None
    report: dict[str, Any] | None
    """What changed since, and what was found out about it."""
    started_at: int
    completed_at: int | None

    @property
    def stream(self) -> str:
        return self.workflow_id


Change = Literal["added", "modified", "deleted"]
Origin = Literal["committed", "staged", "working_tree", "untracked"]
Cause = Literal["merge", "pull", "switch", "reset", "rebase", "other_task", "ignore_rules", "unknown"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file that the task changed, and where the change is now.

    `added` and `modified` are relative to what the task found, or to what a merge, pull or switch brought meanwhile.
    Line counts are None for binary files and for files too large to keep.
    """

    path: str
    change: Change
    origin: Origin
    lines_added: int | None = None
    lines_removed: int | None = None
    binary: bool = False
    was_dirty: bool = False
    """It already differed from the last commit when the task began."""


class Rename(msgspec.Struct, frozen=True, kw_only=True, rename={"from_path": "from", "to_path": "to"}):
    """A file that moved: its old path is also listed as deleted, its new one as added."""

    from_path: str
    to_path: str
    similarity: int = 100


class ExternalChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that changed during the task, but not by it.

    `ignore_rules`: the file was there all along, and ignore rules began or ceased to hide it. `unknown`: history
    moved, and nothing says how.
    """

    path: str
    change: Change
    cause: Cause


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """A path that changed while other tasks were open in the same tree: it counts for all of them."""

    path: str
    tasks: list[str]


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What this task did to the working copy. Every list is sorted by path."""

    own: list[FileChange]
    renamed: list[Rename] = []
    dirty_before: list[str] = []
    """What differed from the last commit when the task began, whether the task then touched it or not."""
    external: list[ExternalChange] = []
    overlaps: list[Overlap] = []
    commits: list[str] = []
    """Commits made in this working copy during the task and still part of its history, oldest first."""
    warnings: list[str] = []
    partial: bool = False
    """Something could not be examined; `warnings` says what."""


LETTERS = {"added": "A", "modified": "M", "deleted": "D"}


class FileTotals(NamedTuple):
    """How many files changed, and how many lines."""

    files: int
    lines_added: int
    lines_removed: int
    uncounted: int
    """Files whose lines were not counted: binary ones, and those too large to keep."""


def totals(files: Iterable[Mapping[str, Any]]) -> FileTotals:
    """The totals of a report's changes."""
    count = added = removed = uncounted = 0
    for change in files:
        count += 1
        added += change.get("lines_added") or 0
        removed += change.get("lines_removed") or 0
        uncounted += change.get("lines_added") is None
    return FileTotals(count, added, removed, uncounted)


def moves_once(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The changes of a report, with each moved file listed once, as `renamed` from its `old_path`. The report itself
    lists it twice, as deleted and as added."""
    moved = {rename["to"]: rename["from"] for rename in report.get("renamed", ())}
    left = set(moved.values())
    there = {change["path"]: change for change in report.get("files", ())}
    shown = []
    for path, change in there.items():
        if path in left and change["change"] == "deleted":
            continue
        old = moved.get(path)
        if old is None or old not in there:
            shown.append(change)
            continue
        # All its lines are added here and removed there: only the patch knows which of them differ.
        shown.append({**change, "lines_added": 0, "lines_removed": 0, "change": "renamed", "old_path": old})
    return shown


def totals_in_words(found: FileTotals) -> str:
    """The totals in words: `3 files, +120 −4`."""
    words = f"{found.files} {'file' if found.files == 1 else 'files'}"
    if found.files > found.uncounted:
        words += f", +{found.lines_added} −{found.lines_removed}"
    return f"{words} ({found.uncounted} without line counts)" if found.uncounted else words


def lines_in_words(change: Mapping[str, Any]) -> str:
    """The lines of one change: `+12 −3`, or why there is no count."""
    if change.get("lines_added") is None:
        return "binary" if change.get("binary") else "lines not counted"
    added, removed = change["lines_added"], change.get("lines_removed") or 0
    if not removed:
        return f"+{added}"
    return f"+{added} −{removed}" if added else f"−{removed}"
