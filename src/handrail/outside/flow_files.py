"""The flows in people's folders, read anew at each call: the next one sees an edit, a new file, a removal.

Not a watcher and no cache: a flow is asked for when a run begins, and seldom otherwise. What cannot be followed is
never dropped: it comes out as a `BrokenFlow` with its file, place and reason, and no weaker file takes its place.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import handrail
from handrail.domain.pipeline.flow import Flow, Phase, read_flow
from handrail.domain.pipeline.flow_shelf import BrokenFlow, LoadedFlow
from handrail.kernel.errors import InvalidFlow, NotFound
from handrail.kernel.nearest import did_you_mean
from handrail.known_types import make_known
from handrail.validator_words import explained, path_of

SUFFIXES = (".yaml", ".yml", ".json")
FOLDER = Path(".handrail") / "flows"
FILE_BYTES = 256 * 1024
"""One flow file. Sixty phases of a few lines each are far below it."""
FILES = 200
"""Flow files read from one folder to list them."""
MOST_EXTENDS = 10
"""How many flows may stand one upon the other."""
BUNDLED = "bundled"
"""The name of the folder that comes with Handrail."""

# Plain text, not compiled here: only a broken file needs it.
_STEP = r"(\w+)|\[(\d+)\]"


class FlowSource(msgspec.Struct, frozen=True):
    """A folder of flow files and the name people know it by."""

    label: str
    folder: Path


def standard_flows(*, home: Path, project: Path) -> tuple[FlowSource, ...]:
    """Where flows come from, nearest first."""
    return (
        FlowSource("project", project / FOLDER),
        FlowSource("user", home / FOLDER),
        FlowSource(BUNDLED, Path(handrail.__file__).parent / "flows"),
    )


class FlowFiles:
    """The shelf over folders of files. Implements `handrail.domain.pipeline.flow_shelf.FlowShelf`."""

    def __init__(self, sources: Sequence[FlowSource]) -> None:
        nearest_first: dict[str, FlowSource] = {}
        for source in sources:
            nearest_first.setdefault(os.path.realpath(source.folder), source)
        self._sources = tuple(nearest_first.values())

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(entry.name for entry in self.entries() if isinstance(entry, LoadedFlow)))

    def problems(self) -> tuple[BrokenFlow, ...]:
        return tuple(entry for entry in self.entries() if isinstance(entry, BrokenFlow))

    def find(self, name: str) -> Flow:
        """The flow with this name, from the nearest folder that has a file for it, sound or not."""
        entry = self.entry(name)
        if isinstance(entry, BrokenFlow):
            raise refused(entry)
        return entry.flow

    def entry(self, name: str) -> LoadedFlow | BrokenFlow:
        """What has this name. Raises NotFound where nothing has."""
        return self._entry(name, ())

    def entries(self) -> tuple[LoadedFlow | BrokenFlow, ...]:
        """Everything there is, the nearest folder first; of files with one name only the nearest."""
        found: list[LoadedFlow | BrokenFlow] = []
        taken: set[str] = set()
        for source in self._sources:
            names, problem = _names_in(source)
            if problem is not None:
                found.append(problem)
                break  # as for `find`: what lies in it might have the name of any that follow
            if len(names) > FILES:
                reason = f"from {names[FILES]} on its files are not listed: there are more than {FILES}"
                found.append(BrokenFlow("", source.label, str(source.folder), reason))
            stems: dict[str, str] = {}
            for name in names[:FILES]:
                stem = Path(name).stem
                if stem in stems:
                    reason = f"{stems[stem]} in this folder already has the name {stem}; rename one of them"
                    found.append(BrokenFlow("", source.label, str(source.folder / name), reason))
                    continue
                stems[stem] = name
                if stem not in taken:
                    found.append(self._read(source.label, source.folder / name, ()))
            taken |= stems.keys()
        return tuple(found)

    def bundled(self, name: str) -> Flow | None:
        """The flow of this name as it comes with Handrail, whatever other folders have in its place or below it."""
        try:
            return FlowFiles([source for source in self._sources if source.label == BUNDLED]).find(name)
        except NotFound:
            return None

    def checked(self, file: Path) -> LoadedFlow | BrokenFlow:
        """One file, wherever it lies. What it extends is found by name, as always."""
        return self._read("file", file, ())

    def _entry(self, name: str, extended_by: tuple[str, ...]) -> LoadedFlow | BrokenFlow:
        found: LoadedFlow | BrokenFlow | None = None
        shadows: list[str] = []
        for source in self._sources:
            names, problem = _names_in(source)
            if problem is not None and found is None:
                return problem  # what lies in it might have been meant, and is not to be replaced
            file = next((source.folder / one for one in names if Path(one).stem == name), None)
            if file is not None and found is None:
                found = self._read(source.label, file, extended_by)
            elif file is not None:
                shadows.append(str(file))
        if found is None:
            files = [one for source in self._sources for one in _names_in(source)[0]]
            known = sorted({Path(one).stem for one in files if _shown(one) == one})
            raise NotFound(
                f"there is no flow {name[:100]}{did_you_mean(name[:100], known)}",
                hint=f"flows: {', '.join(known[:50])}; `handrail flow new` writes another",
            )
        return msgspec.structs.replace(found, shadows=tuple(shadows)) if isinstance(found, LoadedFlow) else found

    def _read(self, label: str, file: Path, extended_by: tuple[str, ...]) -> LoadedFlow | BrokenFlow:
        shown = _shown(str(file))
        if shown != str(file):
            return BrokenFlow("", label, shown, "the file's name is not UTF-8; rename it")
        try:
            flow = _parsed(file, _text(file), lambda base: self._base(base, (*extended_by, file.stem)))
        except _Flaw as flaw:
            return BrokenFlow(file.stem, label, f"{shown}{flaw.place}", flaw.reason, flaw.phase)
        return LoadedFlow(flow, label, shown)

    def _base(self, name: str, extended_by: tuple[str, ...]) -> Flow | None:
        """The flow that another one extends."""
        if name in extended_by:
            way = " → ".join((*extended_by[extended_by.index(name) :], name))
            raise InvalidFlow(
                f"flows extend each other in a circle: {way}",
                hint="let one of them have phases of its own; a flow cannot extend one of its own name",
            )
        if len(extended_by) > MOST_EXTENDS:
            raise InvalidFlow(f"more than {MOST_EXTENDS} flows extend one another", hint="extend the first of them")
        try:
            entry = self._entry(name, extended_by)
        except NotFound:
            return None
        if isinstance(entry, BrokenFlow):
            raise InvalidFlow(f"it extends {name}, which cannot be followed: {entry.where}: {entry.reason}")
        return entry.flow


def refused(entry: BrokenFlow) -> InvalidFlow:
    """The refusal of a flow whose file has a mistake."""
    return InvalidFlow(
        f"{entry.where}: {entry.reason}",
        hint="mend the file, then ask again; docs/flows.md has the format",
        **({"phase": entry.phase} if entry.phase else {}),
    )


def is_flow_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def _names_in(source: FlowSource) -> tuple[list[str], BrokenFlow | None]:
    """The flow files of a folder by name, and what is wrong with the folder."""
    try:
        with os.scandir(source.folder) as listing:
            names = sorted(entry.name for entry in listing if is_flow_name(entry.name))
    except FileNotFoundError:
        return [], None
    except OSError as error:
        reason = f"the folder cannot be read: {error.strerror}"
        return [], BrokenFlow("", source.label, str(source.folder), reason)
    return [name for name in names if _is_there(source.folder / name)], None


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _is_there(file: Path) -> bool:
    """Whether this is a file, readable or not. A folder is none, and neither is what is gone since it was listed."""
    try:
        return not stat.S_ISDIR(file.stat().st_mode)
    except FileNotFoundError:
        return file.is_symlink()
    except OSError:
        return True


class _Flaw(Exception):  # noqa: N818 - it describes the file, it is not a failure of the program
    """Why a file gives no flow, and where that stands: `:line:column`, or nothing."""

    def __init__(self, reason: str, place: str = "", phase: str | None = None) -> None:
        self.reason = reason
        self.place = place
        self.phase = phase
        super().__init__(reason)


def _text(file: Path) -> str:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise _Flaw("this is not a regular file")
        with file.open("rb") as stream:
            raw = stream.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise _Flaw("the file is a symbolic link to nothing" if file.is_symlink() else "it is not there") from None
    except OSError as error:
        raise _Flaw(f"the file cannot be read: {error.strerror}") from None
    if len(raw) > FILE_BYTES:
        raise _Flaw(f"the file is larger than {FILE_BYTES} bytes")
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise _Flaw("the file is not UTF-8; save it as UTF-8") from None


def _parsed(file: Path, text: str, find: Callable[[str], Flow | None]) -> Flow:
    # Not needed before a flow is: every start would pay for what only the first run uses.
    from handrail.outside.documents import read_json, read_yaml  # noqa: PLC0415
    from handrail.outside.positions import Unreadable, locate, position_at  # noqa: PLC0415

    try:
        document = read_json(text) if file.suffix.lower() == ".json" else read_yaml(text)
    except Unreadable as problem:
        if problem.offset is None:
            raise _Flaw(problem.reason) from None
        position = position_at(text, problem.offset)
        raise _Flaw(problem.reason, f":{position.line}:{position.column}") from None

    def at(path: tuple[str | int, ...]) -> str:
        position = locate(text, document.spots, path)
        return f":{position.line}:{position.column}"

    make_known(Flow)
    try:
        written = msgspec.convert(document.data, Flow)
    except msgspec.ValidationError as problem:
        reason, path = _explain(str(problem))
        phase = _phase_at(document.data, path)
        raise _Flaw(f"phase {phase}: {reason}" if phase else reason, at(path), phase) from None
    if written.name != file.stem:
        reason = f"the file is called {file.stem} and the flow in it {written.name}; give both one name"
        raise _Flaw(reason, at(("name",)))
    try:
        return read_flow(document.data, find)
    except InvalidFlow as problem:
        phase = problem.details.get("phase")
        raise _Flaw(problem.message, at(_path_of(written, phase, problem.message)), phase) from None


def _explain(problem: str) -> tuple[str, tuple[str | int, ...]]:
    """A validator's words as people's, and the path of what they are about."""
    steps = re.findall(_STEP, path_of(problem))
    path: tuple[str | int, ...] = tuple(int(number) if number else key for key, number in steps)
    known = Phase if path[:1] == ("phases",) else Flow
    return explained(problem, kind="key", names=known.__struct_fields__, whole="the flow"), path


def _phase_at(data: Any, path: tuple[str | int, ...]) -> str | None:
    """The id of the phase that a path leads into, or its place in the list where it has none."""
    if len(path) < 2 or path[0] != "phases" or not isinstance(path[1], int):
        return None
    phase = data["phases"][path[1]]
    named = phase.get("id") if isinstance(phase, dict) else None
    return named if isinstance(named, str) and named else f"number {path[1] + 1}"


def _path_of(flow: Flow, phase: str | None, message: str) -> tuple[str | int, ...]:
    """Where in the file a mistake stands that was found in the flow as a whole."""
    if phase is not None:
        places = [place for place, one in enumerate(flow.phases) if one.id == phase]
        return ("phases", places[-1]) if places else ("skip",)
    if message.startswith("the description "):
        return ("description",)
    return ("skip",) if " skips " in message else ("extends",) if flow.extends is not None else ()
