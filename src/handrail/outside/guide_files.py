"""The guides in people's folders, as they are at each call: the next one sees an edit, a new file, a removal.

Not a watcher: every call asks each folder and file for its stamp, and lists and reads again only what changed. A guide
that cannot be followed is never dropped: it becomes a `BrokenGuide` with its file, place and reason.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from handrail.domain.guides.definition import (
    Composition,
    Guide,
    GuideProblem,
    Matcher,
    Rule,
    parse_guide,
    path_text,
    valid_id,
)
from handrail.domain.guides.shelf import BrokenGuide, LoadedGuide, Position
from handrail.kernel.late import late_module
from handrail.kernel.limits import GUIDE_FILE_BYTES, GUIDE_FILES
from handrail.known_types import make_known
from handrail.outside.user_files import (
    BUNDLED,
    Flaw,
    UserFolder,
    bundled_folder,
    foreign_tree,
    listed_in,
    nearest_first,
    shown,
)
from handrail.regular_files import read_with_facts, reason_of

if TYPE_CHECKING:
    from handrail.outside import documents
else:
    documents = late_module("handrail.outside.documents")

UNSETTLED_NS = 2_000_000_000
"""A file this fresh is read again by the next call: its clock may be too coarse to show a second edit."""

Stamp = tuple[int, int, int, int]


class _Flaw(msgspec.Struct, frozen=True):
    """Why a file yields no guide."""

    id: str
    reason: str
    position: Position | None = None
    path: str = ""


class _Reading(msgspec.Struct, frozen=True):
    """What a file said when it had this stamp."""

    stamp: Stamp
    settled: bool
    found: Guide | _Flaw
    id_position: Position | None = None


class _Listing(msgspec.Struct, frozen=True):
    """What one folder holds: files by name, each with its stamp or why it has none, and the folder's own problems."""

    files: tuple[tuple[str, Stamp | str], ...] = ()
    problems: tuple[str, ...] = ()


class _Glance(msgspec.Struct, frozen=True):
    """The stamps of every folder and file, or the errno if there is none: enough to notice a change."""

    paths: tuple[str, ...]
    stamps: tuple[Stamp | int, ...]
    settled: bool
    """False while something is so fresh that its stamp may hide a second change."""

    def still_holds(self) -> bool:
        return self.settled and tuple(map(_stamp_at, self.paths)) == self.stamps


class _Shelf(msgspec.Struct, frozen=True):
    """Everything as of one look at the folders."""

    glance: _Glance
    readings: dict[str, _Reading]
    guides: tuple[LoadedGuide, ...]
    problems: tuple[BrokenGuide, ...]
    by_id: dict[str, LoadedGuide | BrokenGuide]


def standard_sources(*, home: Path, project: Path | None, storage_path: str | None) -> tuple[UserFolder, ...]:
    """Where guides come from, lowest priority first. Relative entries of `storage_path` start at the project."""
    tree = foreign_tree(project, home) if project is not None else None
    sources = [
        UserFolder(BUNDLED, bundled_folder("guides")),
        UserFolder("user", home / ".handrail" / "guides"),
    ]
    for entry in filter(None, (storage_path or "").split(os.pathsep)):
        folder = home / entry[2:] if entry.startswith(("~/", "~\\")) else (project or Path()) / entry
        is_theirs = tree is not None and folder.is_relative_to(tree)
        sources.append(UserFolder("WORKFLOW_STORAGE_PATH", folder, tree if is_theirs else None))
    if project is not None:
        sources.append(UserFolder("project", project / ".handrail" / "guides", tree))
        sources.append(UserFolder("project", project / "workflows", tree))
    return tuple(sources)


class GuideFiles:
    """The shelf over folders of files. A later source overrides an earlier one with the same id, broken or not."""

    def __init__(
        self,
        sources: Sequence[UserFolder],
        *,
        matcher: Matcher,
        server_version: str,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        # A folder given twice counts once, with its highest priority; otherwise its files would replace themselves.
        self.sources = nearest_first(sources[::-1])[::-1]
        self.matcher = matcher
        self._server_version = server_version
        self._now_ns = now_ns
        self._shelf: _Shelf | None = None

    def guides(self) -> tuple[LoadedGuide, ...]:
        """Every guide that can be followed, by id."""
        return self._current_shelf().guides

    def problems(self) -> tuple[BrokenGuide, ...]:
        """Every file or folder that cannot be used, by path."""
        return self._current_shelf().problems

    def find(self, guide_id: str) -> LoadedGuide | BrokenGuide | None:
        """The guide with this id. A broken file is never skipped in favour of an older good one."""
        return self._current_shelf().by_id.get(guide_id)

    def _current_shelf(self) -> _Shelf:
        before = self._shelf
        if before is not None and before.glance.still_holds():
            return before
        now = self._now_ns()
        # A folder's own stamp changes when a name in it is added or removed. All stamps are taken before the content
        # they stand for is read, so that a change in between is seen by the next look.
        folders = tuple(str(source.folder) for source in self.sources)
        folder_stamps = tuple(map(_stamp_at, folders))
        listings = tuple(map(_list, self.sources))
        files = tuple(
            str(s.folder / name) for s, found in zip(self.sources, listings, strict=True) for name, _ in found.files
        )
        file_stamps = tuple(map(_stamp_at, files))
        old = before.readings if before is not None else {}
        readings: dict[str, _Reading] = {}
        for source, listing in zip(self.sources, listings, strict=True):
            for name, stamp in listing.files:
                file = source.folder / name
                known = old.get(str(file))
                if known is not None and known.settled and known.stamp == stamp:
                    readings[str(file)] = known
                elif isinstance(stamp, tuple) and (fresh := self._read(file, source.tree)) is not None:
                    readings[str(file)] = fresh
        settled = all(one.settled for one in readings.values()) and all(_is_settled(at, now) for at in folder_stamps)
        glance = _Glance(folders + files, folder_stamps + file_stamps, settled)
        # A single assignment, so that a call in another thread sees the old shelf or the new one, never a mixture.
        self._shelf = _arrange(self.sources, listings, readings, glance)
        return self._shelf

    def _read(self, file: Path, tree: Path | None) -> _Reading | None:
        """What the file says now; None if it is gone since the folder was listed."""
        now = self._now_ns()
        try:
            raw, info = read_with_facts(file, GUIDE_FILE_BYTES + 1, within=tree)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = f"the file cannot be read: {reason_of(error)}"
            return _Reading((0, 0, 0, 0), settled=False, found=_Flaw(file.stem, reason))
        stamp = _stamp_of(info)
        found, id_position = self._parse(file, raw)
        return _Reading(stamp, _is_settled(stamp, now), found, id_position)

    def _parse(self, file: Path, raw: bytes) -> tuple[Guide | _Flaw, Position | None]:
        """The guide in `raw` and the position of its id, or the flaw."""
        if len(raw) > GUIDE_FILE_BYTES:
            return _Flaw(file.stem, f"the file is larger than {GUIDE_FILE_BYTES} bytes; a guide is far smaller"), None
        raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode()
            reason = f"the file is not UTF-8: byte 0x{raw[error.start]:02X} is no character; save it as UTF-8"
            return _Flaw(file.stem, reason, documents.position_at(before, len(before))), None
        try:
            document = documents.read_document(text, file.suffix)
        except documents.Unreadable as problem:
            position = None if problem.offset is None else documents.position_at(text, problem.offset)
            return _Flaw(file.stem, problem.reason, position, path_text(problem.path)), None
        make_known(Guide, Composition, Rule)
        try:
            guide = parse_guide(document.data, matcher=self.matcher, server_version=self._server_version)
        except GuideProblem as problem:
            own = document.data.get("id") if isinstance(document.data, dict) else None
            position = documents.locate(text, document.spots, problem.path)
            found = own if isinstance(own, str) and valid_id(own) else file.stem
            return _Flaw(found, problem.reason, position, path_text(problem.path)), None
        return guide, documents.locate(text, document.spots, ("id",))


def _list(source: UserFolder) -> _Listing:
    try:
        names = listed_in(source)
    except Flaw as flaw:
        return _Listing(problems=(flaw.reason,))
    problems: list[str] = []
    if len(names) > GUIDE_FILES:
        first = names[GUIDE_FILES]
        problems.append(
            f"{len(names)} guide files are here; from {first} on they are not read (at most {GUIDE_FILES} are)"
        )
    files: list[tuple[str, Stamp | str]] = []
    for name in names[:GUIDE_FILES]:
        stamp = _stamp(os.path.join(source.folder, name))  # noqa: PTH118 - runs at every call for every file: Path is too slow
        if stamp is not None and shown(name) != name:
            problems.append(f"the name of the file {shown(name)} is not UTF-8; rename it")
        elif stamp is not None:
            files.append((name, stamp))
    return _Listing(tuple(files), tuple(problems))


def _stamp(path: str) -> Stamp | str | None:
    """The file's stamp, or why it has none; None if it is gone or a folder."""
    try:
        info = os.stat(path)  # noqa: PTH116 - as above; DirEntry.stat() has no inode on Windows
    except FileNotFoundError:
        return "the file is a symbolic link to nothing" if os.path.islink(path) else None  # noqa: PTH114 - as above
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "the file is a symbolic link that leads back to itself"
        return f"the file cannot be read: {error.strerror}"
    if stat.S_ISDIR(info.st_mode):
        return None
    return _stamp_of(info) if stat.S_ISREG(info.st_mode) else "this is not a regular file"


def _stamp_of(info: os.stat_result) -> Stamp:
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def _stamp_at(path: str) -> Stamp | int:
    try:
        return _stamp_of(os.stat(path))  # noqa: PTH116 - runs at every call for every file: a Path is too slow
    except OSError as error:
        return error.errno or 0


def _is_settled(stamp: Stamp | int, now: int) -> bool:
    return isinstance(stamp, int) or all(abs(now - moment) > UNSETTLED_NS for moment in stamp[:2])


def _arrange(
    sources: Sequence[UserFolder], listings: tuple[_Listing, ...], readings: dict[str, _Reading], glance: _Glance
) -> _Shelf:
    """Decides which entry has which id: within a folder the first by name, among folders the last."""
    problems: list[BrokenGuide] = []
    chains: dict[str, list[LoadedGuide | BrokenGuide]] = {}
    for source, listing in zip(sources, listings, strict=True):
        problems.extend(BrokenGuide("", source.folder, source.label, None, "", text) for text in listing.problems)
        taken: dict[str, str] = {}
        for name, stamp in listing.files:
            entry = _entry(source, name, stamp, readings.get(str(source.folder / name)), taken)
            if isinstance(entry, BrokenGuide):
                problems.append(entry)
            if entry is None or _id_of(entry) in taken:
                continue
            taken[_id_of(entry)] = name
            chains.setdefault(_id_of(entry), []).append(entry)
    by_id = {guide_id: _winner(chain) for guide_id, chain in sorted(chains.items())}
    guides = tuple(entry for entry in by_id.values() if isinstance(entry, LoadedGuide))
    return _Shelf(glance, readings, guides, tuple(sorted(problems, key=lambda one: str(one.file))), by_id)


def _entry(
    source: UserFolder, name: str, stamp: Stamp | str, reading: _Reading | None, taken: dict[str, str]
) -> LoadedGuide | BrokenGuide | None:
    file = source.folder / name
    if isinstance(stamp, str):
        return BrokenGuide(file.stem, file, source.label, None, "", stamp)
    if reading is None:
        return None
    found = reading.found
    if isinstance(found, _Flaw):
        return BrokenGuide(found.id, file, source.label, found.position, found.path, found.reason)
    if found.id in taken:
        reason = f"{taken[found.id]} in this folder already has the id {found.id}; give one of them another"
        return BrokenGuide(found.id, file, source.label, reading.id_position, "id", reason)
    return LoadedGuide(found, file, source.label)


def _id_of(entry: LoadedGuide | BrokenGuide) -> str:
    return entry.guide.id if isinstance(entry, LoadedGuide) else entry.id


def _winner(chain: list[LoadedGuide | BrokenGuide]) -> LoadedGuide | BrokenGuide:
    last = chain[-1]
    if isinstance(last, BrokenGuide):
        return last
    return msgspec.structs.replace(last, shadows=tuple(entry.file for entry in chain[:-1]))
