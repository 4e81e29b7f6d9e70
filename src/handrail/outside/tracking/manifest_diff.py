"""What changed between two manifests of one directory. Pure. Contents are known by hash only, which sets the limits:

* added, modified and deleted are exact if both sides were read;
* a rename is recognised by equal content; if the file was also edited, it is a deletion and an addition;
* lines are counted for files that were added or deleted. A modified file has no count, since its old lines are gone;
* about what one side did not see, nothing is claimed, and a warning says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from handrail.domain.journal.changes import Change, Changes, ExternalChange, FileChange, Rename
from handrail.domain.journal.paths import path_text
from handrail.outside.tracking.ignore_rules import is_ignored
from handrail.outside.tracking.manifest import BINARY, FileManifest, ManifestEntry

NAMED = 5
"""How many paths one warning names; the rest are counted."""


def changes_between(before: FileManifest, after: FileManifest, *, began_ns: int) -> Changes:
    """The net difference. `began_ns` is when the first manifest was made, by the file system's clock."""
    own: dict[str, tuple[Change, ManifestEntry | None, ManifestEntry | None]] = {}
    external: list[ExternalChange] = []
    doubtful: list[str] = []
    unseen = _Unseen([*before.unseen, *after.unseen])
    for path in sorted({*before.files, *after.files, *_hidden_since(before, after)}):
        old, new = before.files.get(path), after.files.get(path)
        if unseen.holds(path) or (old is not None and new is not None and old.same_content(new)):
            continue
        old_there, new_there = old or before.hidden.get(path), new or after.hidden.get(path)
        if old_there is not None and new_there is not None:
            if old_there.same_content(new_there):
                external.append(_moved_into_or_out_of_sight(path, "added" if old is None else "deleted"))
                continue
            own[path] = ("modified", old_there, new_there)
            if not (old_there.digest and new_there.digest):
                doubtful.append(path)
        elif new_there is None:
            own[path] = ("deleted", old, None)
        elif new is None:
            own[path] = ("added", None, new_there)
        elif _was_there_unseen(path, new, before, after, began_ns):
            external.append(_moved_into_or_out_of_sight(path, "added"))
        else:
            own[path] = ("added", None, new)
    return Changes(
        own=[_file_change(path, *found) for path, found in own.items()],
        renamed=_renames(own),
        external=external,
        warnings=_warnings(before, after, doubtful),
        partial=bool(unseen.folders or doubtful),
    )


def _hidden_since(before: FileManifest, after: FileManifest) -> set[str]:
    """Files that came into being and are hidden, though not by the rules that the first manifest was made by."""
    if before.ignore_files == after.ignore_files:
        return set()
    new = after.hidden.keys() - before.files.keys() - before.hidden.keys()
    return {path for path in new if not is_ignored(path, before.ignore_files)}


def changed_paths(before: FileManifest, after: FileManifest) -> set[str]:
    """The paths that differ, as texts."""
    return {
        path_text(os.fsencode(path))
        for path in {*before.files, *after.files}
        if (old := before.files.get(path)) is None
        or (new := after.files.get(path)) is None
        or not old.same_content(new)
    }


class _Unseen:
    """Directories about which nothing is known."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.folders = frozenset(folders)

    def holds(self, path: str) -> bool:
        if not self.folders:
            return False
        if "" in self.folders:
            return True
        end = path.find("/")
        while end >= 0:
            if path[:end] in self.folders:
                return True
            end = path.find("/", end + 1)
        return False


def _was_there_unseen(path: str, new: ManifestEntry, before: FileManifest, after: FileManifest, began_ns: int) -> bool:
    """Whether a newly visible file was there before, ignored: it is older than the task, and its path was ignored then.
    A file that was created meanwhile is the task's, wherever it is."""
    if before.ignore_files == after.ignore_files:
        return False
    _, mtime_ns, ctime_ns, _ = new.stamp
    return max(mtime_ns, ctime_ns) < began_ns and is_ignored(path, before.ignore_files)


def _moved_into_or_out_of_sight(path: str, change: Change) -> ExternalChange:
    return ExternalChange(path=path_text(os.fsencode(path)), change=change, cause="ignore_rules")


def _file_change(path: str, change: Change, old: ManifestEntry | None, new: ManifestEntry | None) -> FileChange:
    added, removed = _lines(old, new)
    return FileChange(
        path=path_text(os.fsencode(path)),
        change=change,
        origin="working_tree",
        lines_added=added,
        lines_removed=removed,
        binary=any(entry is not None and bool(entry.digest) and entry.lines == BINARY for entry in (old, new)),
    )


def _lines(old: ManifestEntry | None, new: ManifestEntry | None) -> tuple[int | None, int | None]:
    """Lines added and removed, if they can be known without the old content."""
    before, after = (0 if entry is None else entry.lines for entry in (old, new))
    if BINARY in (before, after):
        return None, None
    if before == 0 or after == 0:
        return after, before
    if old is not None and new is not None and old.digest == new.digest:  # only its mode changed
        return 0, 0
    return None, None


def _renames(own: dict[str, tuple[Change, ManifestEntry | None, ManifestEntry | None]]) -> list[Rename]:
    """Pairs deleted and added files with the same content, by file name first, then in the order of paths. Empty files
    are all alike and prove nothing."""
    gone: dict[tuple[int, bytes], list[str]] = {}
    for path, (change, old, _) in own.items():
        if change == "deleted" and old is not None and old.digest and old.stamp[0]:
            gone.setdefault((old.kind, old.digest), []).append(path)
    came: dict[tuple[int, bytes], list[str]] = {}
    for path, (change, _, new) in own.items():
        if change == "added" and new is not None and (new.kind, new.digest) in gone:
            came.setdefault((new.kind, new.digest), []).append(path)
    pairs = [pair for content, paths in came.items() for pair in _pair_by_name(gone[content], paths)]
    return [
        Rename(from_path=path_text(os.fsencode(old)), to_path=path_text(os.fsencode(new))) for old, new in sorted(pairs)
    ]


def _pair_by_name(gone: list[str], came: list[str]) -> list[tuple[str, str]]:
    by_name: dict[str, list[str]] = {}
    for path in reversed(gone):
        by_name.setdefault(_name(path), []).append(path)
    pairs, rest = [], []
    for path in came:
        if same_name := by_name.get(_name(path)):
            pairs.append((same_name.pop(), path))
        else:
            rest.append(path)
    taken = {old for old, _ in pairs}
    return pairs + list(zip((path for path in gone if path not in taken), rest, strict=False))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _warnings(before: FileManifest, after: FileManifest, doubtful: list[str]) -> list[str]:
    found = []
    if unseen := sorted({*before.unseen, *after.unseen}):
        why = "not in time, too many files, or not readable"
        found.append(f"{len(unseen)} directory(s) were not looked into ({why}): {_listed(unseen)}")
    if doubtful:
        found.append(f"{len(doubtful)} file(s) count as modified by size and times only: {_listed(doubtful)}")
    if after.unreadable:
        found.append(f"{len(after.unreadable)} file(s) cannot be read: {_listed(after.unreadable)}")
    if before.ignore_files != after.ignore_files:
        found.append("ignore rules changed during the task")
    return found


def _listed(paths: list[str]) -> str:
    shown = ", ".join(path_text(os.fsencode(path)) or "." for path in paths[:NAMED])
    return f"{shown} and {len(paths) - NAMED} more" if len(paths) > NAMED else shown
