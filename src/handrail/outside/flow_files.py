"""The flows in people's folders, reread at each call: the next one sees an edit, a new file, a removal.

Not a watcher and no cache: a flow is asked for when a run begins, and rarely otherwise. A flow that cannot be followed
is never dropped: it becomes a `BrokenFlow` with its file, place and reason, and no lower-priority file takes its place.

Everything that is wrong in a flow file at once, as long as each mistake is in one place: an unknown key, a value of the
wrong type, a word outside its enum. Mistakes between phases are found one at a time, by reading the flow, once the
phases themselves can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from handrail.domain.pipeline.flow import Flow, Kind, Phase, read_flow
from handrail.domain.pipeline.flow_shelf import BrokenFlow, LoadedFlow
from handrail.kernel.errors import InvalidFlow, NotFound
from handrail.kernel.wording import did_you_mean
from handrail.known_types import make_known
from handrail.outside.user_files import (
    BUNDLED,
    Flaw,
    UserFile,
    UserFolder,
    WrittenPath,
    in_words,
    names_in,
    nearest_first,
    path_in,
    shown,
    standard_folders,
    tree_around,
)
from handrail.validator_words import explained

FOLDER = Path(".handrail") / "flows"
FILE_BYTES = 256 * 1024
"""The largest flow file. Sixty phases of a few lines each are far below it."""
FILES = 200
"""How many flow files of one folder are listed."""
MOST_EXTENDS = 10
"""How long a chain of flows that extend one another may be."""


def standard_flows(*, home: Path, project: Path) -> tuple[UserFolder, ...]:
    """Where flows come from, nearest first."""
    return standard_folders("flows", home=home, project=project)


class FlowFiles:
    """The shelf over folders of files. Implements `handrail.domain.pipeline.flow_shelf.FlowShelf`."""

    def __init__(self, sources: Sequence[UserFolder]) -> None:
        self._sources = nearest_first(sources)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(entry.name for entry in self.entries() if isinstance(entry, LoadedFlow)))

    def problems(self) -> tuple[BrokenFlow, ...]:
        return tuple(entry for entry in self.entries() if isinstance(entry, BrokenFlow))

    def find(self, name: str) -> Flow:
        """The flow with this name, from the nearest folder that has a file for it, valid or not."""
        entry = self.entry(name)
        if isinstance(entry, BrokenFlow):
            raise refused(entry)
        return entry.flow

    def entry(self, name: str) -> LoadedFlow | BrokenFlow:
        """The flow with this name. Raises NotFound if there is none."""
        return self._entry(name, ())

    def entries(self) -> tuple[LoadedFlow | BrokenFlow, ...]:
        """All flows, nearest folder first; of files with the same name only the nearest."""
        found: list[LoadedFlow | BrokenFlow] = []
        taken: set[str] = set()
        for source in self._sources:
            names, problem = _names_in(source)
            if problem is not None:
                found.append(problem)
                break  # as in `find`: this folder might contain any of the names that follow
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
                    found.append(self._read(source, source.folder / name, ()))
            taken |= stems.keys()
        return tuple(found)

    def bundled(self, name: str) -> Flow | None:
        """The flow of this name as it comes with Handrail, no matter what other folders have in its place."""
        try:
            return FlowFiles([source for source in self._sources if source.label == BUNDLED]).find(name)
        except NotFound:
            return None

    def checked(self, file: Path) -> LoadedFlow | BrokenFlow:
        """One file, wherever it is. What it extends is found by name, as always."""
        return self._read(UserFolder("file", file.parent, self.tree_of(file)), file, ())

    def tree_of(self, file: Path) -> Path | None:
        """The tree that a file's links may not lead out of."""
        return tree_around(file, (source.tree for source in self._sources))

    def _entry(self, name: str, extended_by: tuple[str, ...]) -> LoadedFlow | BrokenFlow:
        found: LoadedFlow | BrokenFlow | None = None
        shadows: list[str] = []
        for source in self._sources:
            names, problem = _names_in(source)
            if problem is not None and found is None:
                return problem  # its content might have been meant, and must not be replaced
            file = next((source.folder / one for one in names if Path(one).stem == name), None)
            if file is not None and found is None:
                found = self._read(source, file, extended_by)
            elif file is not None:
                shadows.append(str(file))
        if found is None:
            files = [one for source in self._sources for one in _names_in(source)[0]]
            known = sorted({Path(one).stem for one in files if shown(one) == one})
            raise NotFound(
                f"there is no flow {name[:100]}{did_you_mean(name[:100], known)}",
                hint=f"flows: {', '.join(known[:50])}; `handrail flow new` writes another",
            )
        return msgspec.structs.replace(found, shadows=tuple(shadows)) if isinstance(found, LoadedFlow) else found

    def _read(self, source: UserFolder, file: Path, extended_by: tuple[str, ...]) -> LoadedFlow | BrokenFlow:
        try:
            written = UserFile(file, FILE_BYTES, source.tree)
            flow = _parsed(file, written, lambda base: self._base(base, (*extended_by, file.stem)))
        except Flaw as flaw:
            stem = file.stem if shown(file.stem) == file.stem else ""
            return BrokenFlow(stem, source.label, f"{shown(file)}{flaw.place}", flaw.reason, flaw.phase)
        return LoadedFlow(flow, source.label, str(file))

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
    """The refusal for a flow whose file has a mistake."""
    return InvalidFlow(
        f"{entry.where}: {entry.reason}",
        hint="fix the file, then ask again; docs/flows.md has the format",
        **({"phase": entry.phase} if entry.phase else {}),
    )


def _names_in(source: UserFolder) -> tuple[list[str], BrokenFlow | None]:
    """The flow files of a folder by name, and what is wrong with the folder."""
    try:
        return names_in(source), None
    except Flaw as flaw:
        return [], BrokenFlow("", source.label, str(source.folder), flaw.reason)


def _parsed(file: Path, written: UserFile, find: Callable[[str], Flow | None]) -> Flow:
    make_known(Flow)
    try:
        flow = msgspec.convert(written.data, Flow)
    except msgspec.ValidationError as problem:
        path = path_in(str(problem))
        phase = _phase_at(written.data, path)
        reason = in_words(str(problem), Phase if path[:1] == ("phases",) else Flow, "the flow")
        raise Flaw(f"phase {phase}: {reason}" if phase else reason, written.at(path), phase) from None
    if flow.name != file.stem:
        reason = f"the file is called {file.stem} and the flow in it {flow.name}; give both one name"
        raise Flaw(reason, written.at(("name",)))
    try:
        return read_flow(written.data, find)
    except InvalidFlow as problem:
        phase = problem.details.get("phase")
        raise Flaw(problem.message, written.at(_path_of(flow, phase, problem.message)), phase) from None


def _phase_at(data: Any, path: WrittenPath) -> str | None:
    """The id of the phase that a path leads into, or its place in the list if it has none."""
    if len(path) < 2 or path[0] != "phases" or not isinstance(path[1], int):
        return None
    phase = data["phases"][path[1]]
    named = phase.get("id") if isinstance(phase, dict) else None
    return named if isinstance(named, str) and named else f"number {path[1] + 1}"


def _path_of(flow: Flow, phase: str | None, message: str) -> WrittenPath:
    """Where in the file a mistake is that was found in the flow as a whole."""
    if phase is not None:
        places = [place for place, one in enumerate(flow.phases) if one.id == phase]
        return ("phases", places[-1]) if places else ("skip",)
    if message.startswith("the description "):
        return ("description",)
    return ("skip",) if " skips " in message else ("extends",) if flow.extends is not None else ()


FEW = 50
"""How many mistakes of one file are reported."""
_PLACE = re.compile(r":\d+:\d+\Z")
_WHOLE_PHASE = {"id": "a", "label": "A", "kind": "agent"}
_WHOLE_FLOW = {"name": "a"}
_WORD = re.compile(r"Invalid enum value '(?P<word>.*)'", re.DOTALL)


def mistakes_in(broken: BrokenFlow, flows: FlowFiles) -> list[BrokenFlow]:
    """Every mistake that can be reported on its own, or else the one already known."""
    file = Path(_PLACE.sub("", broken.where))
    try:
        written = UserFile(file, FILE_BYTES, flows.tree_of(file))
    except Flaw:
        return [broken]
    make_known(Flow)
    found = []
    for phase, path, reason in _mistakes(written.data):
        told = f"phase {phase}: {reason}" if phase is not None else reason
        found.append(BrokenFlow(broken.name, broken.source, f"{file}{written.at(path)}", told, phase))
    if not any(one.phase == broken.phase for one in found):
        found.insert(0, broken)
    return found[:FEW]


def _mistakes(data: Any) -> Iterator[tuple[str | None, WrittenPath, str]]:
    """For each mistake: its phase, where it is, and what it is."""
    if not _is_plain(data):
        return
    top = {key: value for key, value in data.items() if key != "phases"}
    for path, reason in _mistakes_in_members(top, Flow, _WHOLE_FLOW):
        yield None, path, reason
    phases = data.get("phases")
    for place, phase in enumerate(phases if isinstance(phases, list) else ()):
        if _is_plain(phase):
            named = phase["id"] if isinstance(phase.get("id"), str) and phase["id"] else f"number {place + 1}"
            for path, reason in _mistakes_in_members(phase, Phase, _WHOLE_PHASE):
                yield named, ("phases", place, *path), reason


def _is_plain(data: Any) -> bool:
    return isinstance(data, dict) and all(isinstance(key, str) for key in data)


def _mistakes_in_members(
    given: Mapping[str, Any], kind: type, whole: Mapping[str, Any]
) -> Iterator[tuple[WrittenPath, str]]:
    """What is wrong with each member by itself, beside others that are right; then what is missing."""
    names = kind.__struct_fields__  # type: ignore[attr-defined]
    for key, value in given.items():
        if (problem := _problem({**whole, key: value}, kind)) is not None:
            yield (key,), _words(problem, names)
    for key in whole:
        if key not in given:
            yield (), f"{key} is required"


def _problem(document: Mapping[str, Any], kind: type) -> str | None:
    convert: Callable[[Any, Any], Any] = msgspec.convert
    try:
        convert(document, kind)
    except msgspec.ValidationError as problem:
        return str(problem)
    return None


def _words(problem: str, names: tuple[str, ...]) -> str:
    """A validator's message in plain words; for an unknown word, with the known ones."""
    wrong = _WORD.match(problem)
    if wrong is not None and problem.endswith("`$.kind`"):
        word, kinds = wrong["word"][:100], get_args(Kind)
        return f"there is no kind {word} (kinds: {', '.join(kinds)}){did_you_mean(word, kinds)}"
    return explained(problem, kind="key", names=names, whole="the flow")
