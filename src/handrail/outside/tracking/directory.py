"""The tracker of directories without git: snapshots of kind `checksum`, each a manifest kept in the project's state
folder. Contents are not kept, so there are no patches. Implements `handrail.domain.journal.ports.Tracker`.

    plain-KEY/latest           the last manifest: files it knows need not be read again
    plain-KEY/kept/ID.manifest a snapshot's
    plain-KEY/clock            touched to read the file system's clock

What changed between two manifests of one directory. Pure. Contents are known by hash only, which sets the limits:

* added, modified and deleted are exact if both sides were read;
* a rename is recognised by equal content; if the file was also edited, it is a deletion and an addition;
* lines are counted for files that were added or deleted. A modified file has no count, since its old lines are gone;
* about what one side did not see, nothing is claimed, and a warning says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from handrail.domain.journal.entry import Change, Changes, ExternalChange, FileChange, Overlap, Rename
from handrail.domain.journal.paths import path_text
from handrail.domain.journal.ports import OtherTask, Snapshot
from handrail.kernel.clock import Clock
from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.ids import Ids
from handrail.kernel.limits import MANIFEST_FILE_BYTES
from handrail.outside.atomic_files import write_whole
from handrail.outside.tracking.ignore_rules import is_ignored
from handrail.outside.tracking.manifest import (
    BINARY,
    FileManifest,
    ManifestBounds,
    ManifestEntry,
    ManifestReading,
    from_bytes,
    read_manifest,
    to_bytes,
)
from handrail.outside.tracking.state import disk_use
from handrail.regular_files import read_regular

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


GONE = "the snapshot that this began with is no longer kept, so its changes are not known"


class DirectoryTracker:
    """Watches directories by what their files contain."""

    def __init__(self, state: Path, *, clock: Clock, ids: Ids, bounds: ManifestBounds | None = None) -> None:
        self._state = state
        self._clock = clock
        self._ids = ids
        self._bounds = bounds or ManifestBounds(time.monotonic)

    def snapshot(self, root: str, *, like: Snapshot | None = None) -> Snapshot:
        """The state of exactly this directory, or of the one that `like` was taken of."""
        top = os.path.realpath(like.root if like is not None else root)
        check_place(top)
        folder = self._folder(top)
        identity = self._ids.new("snap")
        with _writing(folder):
            (folder / "kept").mkdir(mode=0o700, parents=True, exist_ok=True)
            began_ns = _time_there(folder)
        began = self._manifest_of(like) if like is not None else None
        looked = self._take_manifest(folder, top, began_ns, began)
        with _writing(folder):
            self._keep(folder, identity, looked)
        manifest = looked.manifest
        flags = {"degraded": manifest.out_of_time or manifest.unseen, "unreadable": manifest.unreadable}
        return Snapshot(
            id=identity,
            kind="checksum",
            root=top,
            tree=manifest.tree,
            taken_at=self._clock.now_ms(),
            flags=[flag for flag, holds in flags.items() if holds],
            data={"state": folder.name, "began_ns": began_ns, "files": len(manifest.files), "read": looked.read},
        )

    def changes(self, before: Snapshot, after: Snapshot, *, others: Sequence[OtherTask] = ()) -> Changes:
        """What changed between two snapshots. Changes that somebody else made at the same time cannot be told apart."""
        old, new = self._manifest_of(before), self._manifest_of(after)
        if old is None or new is None:
            return Changes(own=[], warnings=[GONE], partial=True)
        found = changes_between(old, new, began_ns=before.data.get("began_ns", 0))
        return self._with_overlaps(found, before, after, others) if others else found

    def patch(self, before: Snapshot, after: Snapshot, paths: Sequence[str] | None = None) -> Iterator[bytes]:  # noqa: ARG002
        """Always refused: what files contained before is not kept."""
        raise PlaceUnusable(
            f"{before.root} is no git repository, and what its files contained before is not kept",
            hint="`git init` there before the next task, and patches can be made",
        )

    def forget(self, snapshot: Snapshot) -> None:
        self._file(snapshot).unlink(missing_ok=True)

    def prune(self, older_than_ms: int, keep: Collection[str]) -> int:
        freed = 0
        for folder in self._folders():
            used = disk_use(str(folder))
            for file in folder.glob("kept/*.manifest"):
                with contextlib.suppress(OSError):
                    if file.stem not in keep and file.stat().st_mtime * 1000 < older_than_ms:
                        file.unlink()
            if not any(folder.glob("kept/*.manifest")):
                shutil.rmtree(folder, ignore_errors=True)
            freed += max(0, used - disk_use(str(folder)))
        return freed

    def disk_use(self) -> int:
        return sum(disk_use(str(folder)) for folder in self._folders())

    def _take_manifest(self, folder: Path, top: str, began_ns: int, began: FileManifest | None) -> ManifestReading:
        previous = _read_manifest(folder / "latest") or FileManifest({})
        state = os.path.realpath(self._state)
        try:
            return read_manifest(top, previous, now_ns=began_ns, state=state, bounds=self._bounds, began=began)
        except (FileNotFoundError, NotADirectoryError):
            raise PlaceUnusable(f"{top} is no directory", hint="name the directory the work is done in") from None

    def _keep(self, folder: Path, identity: str, looked: ManifestReading) -> None:
        """Writes the manifest once: if hard links work, the last one and the snapshot's are two names of one file."""
        latest, kept = folder / "latest", folder / "kept" / f"{identity}.manifest"
        if not looked.is_new and _try_link(latest, kept):
            os.utime(kept)  # `prune` goes by this time
            return
        content = to_bytes(looked.manifest)
        write_whole(kept, content)
        beside = folder / "kept" / f"{identity}.latest"
        if _try_link(kept, beside):
            beside.replace(latest)
        else:
            write_whole(latest, content)

    def _with_overlaps(self, found: Changes, before: Snapshot, after: Snapshot, others: Sequence[OtherTask]) -> Changes:
        """Adds which paths changed while another task was open too: from the later beginning to the earlier end."""
        own = {change.path for change in found.own}
        tasks: dict[str, list[str]] = {}
        lost = []
        for other in others:
            first = max(before, other.started, key=lambda snapshot: snapshot.taken_at)
            last = min(after, other.ended or after, key=lambda snapshot: snapshot.taken_at)
            start, end = self._manifest_of(first), self._manifest_of(last)
            if start is None or end is None:
                lost.append(
                    f"what {other.task_id} changed at the same time is not known: its snapshot is no longer kept"
                )
                continue
            for path in own & changed_paths(start, end):
                tasks.setdefault(path, []).append(other.task_id)
        overlaps = [Overlap(path=path, tasks=tasks[path]) for path in sorted(tasks)]
        return Changes(
            own=found.own,
            renamed=found.renamed,
            external=found.external,
            overlaps=overlaps,
            warnings=[*found.warnings, *lost],
            partial=found.partial or bool(lost),
        )

    def _folder(self, top: str) -> Path:
        return self._state / f"plain-{hashlib.sha256(os.fsencode(top)).hexdigest()[:20]}"

    def _folders(self) -> list[Path]:
        return sorted(self._state.glob("plain-*"))

    def _file(self, snapshot: Snapshot) -> Path:
        folder = self._state / Path(str(snapshot.data.get("state", "plain"))).name
        return folder / "kept" / f"{Path(snapshot.id).name}.manifest"

    def _manifest_of(self, snapshot: Snapshot) -> FileManifest | None:
        return _read_manifest(self._file(snapshot))


def check_place(top: str) -> None:
    """Raises PlaceUnusable for directories that are nobody's project: what is below is not one task's work, and reading
    all of it would take hours."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - no Path: `~` may be unset
    if home == top or home.startswith(f"{top.rstrip('/')}/"):
        where = "your home folder" if home == top else "the whole disk" if top == "/" else "above your home folder"
        raise PlaceUnusable(f"{top} is {where}, not a project", hint="start in the directory the work is done in")
    if not os.path.isdir(top):  # noqa: PTH112 - unlike Path's, it never raises
        raise PlaceUnusable(f"{top} is no directory", hint="name the directory the work is done in")
    if not os.access(top, os.R_OK | os.X_OK):
        raise PlaceUnusable(f"{top} cannot be read", hint="make it readable, or name another directory")


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Reports any OSError as a problem with the place."""
    try:
        yield
    except OSError as problem:
        raise PlaceUnusable(
            f"{folder} cannot be written: {problem.strerror}", hint="free some space, or make it writable"
        ) from None


def _time_there(folder: Path) -> int:
    """The time by the clock that stamps files here, which may be another machine's."""
    clock = folder / "clock"
    clock.write_bytes(b"")
    os.utime(clock)
    return clock.stat().st_mtime_ns


def _read_manifest(file: Path) -> FileManifest | None:
    try:
        return from_bytes(read_regular(file, MANIFEST_FILE_BYTES))
    except OSError:
        return None


def _try_link(file: Path, name: Path) -> bool:
    try:
        name.hardlink_to(file)
    except OSError:
        return False
    return True
