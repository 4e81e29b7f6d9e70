"""The templates in people's folders, read anew at each call: the next one sees an edit, a new file, a removal.

Not a watcher and no cache: templates are few and seldom asked for. What cannot be used is never dropped: it comes out
as a `BrokenTemplate` with its file, place and reason, and no weaker file takes its place.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

import handrail
from handrail.domain.work.planning import MOST_TASKS, Name, PlanTask, Text
from handrail.domain.work.template_shelf import BrokenTemplate, FileTemplate
from handrail.domain.work.templating import MOST_VARIABLES, Blueprint, Variable, read_blueprint
from handrail.kernel.errors import InvalidTemplate
from handrail.kernel.limits import TEMPLATE_FILE_BYTES, TEMPLATE_FILES
from handrail.known_types import make_known
from handrail.validator_words import explained, path_of

SUFFIXES = (".json", ".yaml", ".yml")
FOLDER = Path(".handrail") / "templates"

# Plain texts, not compiled here: only a broken file needs them.
_STEP = r"(\w+)|\[(\d+)\]"
_NO_TEXT = r"Expected `str(?: \| null)?`, got `(?:int|float|bool|null)`"


class TemplateSource(msgspec.Struct, frozen=True):
    """A folder of template files and the name people know it by."""

    label: str
    folder: Path


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A template as a file has it."""

    tasks: Annotated[list[PlanTask], Meta(min_length=1, max_length=MOST_TASKS)]
    name: Name | None = None
    description: Text | None = None
    variables: Annotated[list[Variable], Meta(max_length=MOST_VARIABLES)] = []


def standard_templates(*, home: Path, project: Path) -> tuple[TemplateSource, ...]:
    """Where templates come from, nearest first."""
    return (
        TemplateSource("project", project / FOLDER),
        TemplateSource("user", home / FOLDER),
        TemplateSource("bundled", Path(handrail.__file__).parent / "templates"),
    )


class TemplateFiles:
    """The shelf over folders of files. Implements `handrail.domain.work.template_shelf.TemplateShelf`."""

    def __init__(self, sources: Sequence[TemplateSource]) -> None:
        nearest_first: dict[str, TemplateSource] = {}
        for source in sources:
            nearest_first.setdefault(os.path.realpath(source.folder), source)
        self._sources = tuple(nearest_first.values())

    def entries(self) -> tuple[FileTemplate | BrokenTemplate, ...]:
        found: list[FileTemplate | BrokenTemplate] = []
        taken: set[str] = set()
        for source in self._sources:
            here = _entries_of(source)
            found += [entry for entry in here if not entry.stem or entry.stem not in taken]
            taken |= {entry.stem for entry in here}
        return tuple(found)


def _entries_of(source: TemplateSource) -> list[FileTemplate | BrokenTemplate]:
    try:
        with os.scandir(source.folder) as listing:
            names = sorted(entry.name for entry in listing if _is_template_name(entry.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = f"the folder cannot be read: {error.strerror}"
        return [BrokenTemplate("", source.label, str(source.folder), reason)]
    found: list[FileTemplate | BrokenTemplate] = []
    first: dict[str, str] = {}
    for name in names[:TEMPLATE_FILES]:
        entry = _entry(source, name)
        if entry is None:
            continue
        if entry.stem in first:
            reason = f"{first[entry.stem]} in this folder already has the id {entry.id}; rename one of them"
            entry = BrokenTemplate("", source.label, str(source.folder / name), reason)
        else:
            first[entry.stem] = name
        found.append(entry)
    if len(names) > TEMPLATE_FILES:
        reason = f"from {names[TEMPLATE_FILES]} on its files are not read: there are more than {TEMPLATE_FILES}"
        found.append(BrokenTemplate("", source.label, str(source.folder), reason))
    return found


def _is_template_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def _entry(source: TemplateSource, name: str) -> FileTemplate | BrokenTemplate | None:
    """What one file gives; None for a folder, and for what is gone since it was listed."""
    file = source.folder / name
    shown = str(file).encode("utf-8", "backslashreplace").decode()
    if shown != str(file):
        return BrokenTemplate("", source.label, shown, "the file's name is not UTF-8; rename it")
    try:
        info = file.stat()
        if stat.S_ISDIR(info.st_mode):
            return None
        if not stat.S_ISREG(info.st_mode):
            return BrokenTemplate(file.stem, source.label, shown, "this is not a regular file")
        with file.open("rb") as stream:
            raw = stream.read(TEMPLATE_FILE_BYTES + 1)
    except FileNotFoundError:
        if not file.is_symlink():
            return None
        return BrokenTemplate(file.stem, source.label, shown, "the file is a symbolic link to nothing")
    except OSError as error:
        return BrokenTemplate(file.stem, source.label, shown, f"the file cannot be read: {error.strerror}")
    try:
        blueprint = _read(file, raw)
    except _Flaw as flaw:
        return BrokenTemplate(file.stem, source.label, f"{shown}{flaw.place}", flaw.reason)
    return FileTemplate(file.stem, source.label, shown, info.st_mtime_ns // 1_000_000, blueprint)


class _Flaw(Exception):  # noqa: N818 - it describes the file, it is not a failure of the program
    """Why a file gives no template, and where that stands: `:line:column`, or nothing."""

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(reason)


def _read(file: Path, raw: bytes) -> Blueprint:
    # Not needed before a template is: every start would pay for what only the first call uses.
    from handrail.outside.documents import read_json, read_yaml  # noqa: PLC0415
    from handrail.outside.positions import Unreadable, locate, position_at  # noqa: PLC0415

    if len(raw) > TEMPLATE_FILE_BYTES:
        raise _Flaw(f"the file is larger than {TEMPLATE_FILE_BYTES} bytes")
    try:
        text = raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        raise _Flaw("the file is not UTF-8; save it as UTF-8") from None
    try:
        document = read_json(text) if file.suffix.lower() == ".json" else read_yaml(text)
    except Unreadable as problem:
        if problem.offset is None:
            raise _Flaw(problem.reason) from None
        position = position_at(text, problem.offset)
        braces = "{{" in text[max(0, problem.offset - 1) : problem.offset + 2]
        quotes = "; a text that begins with {{ needs quotes around it" if braces else ""
        raise _Flaw(problem.reason + quotes, f":{position.line}:{position.column}") from None
    make_known(Written)
    try:
        written = msgspec.convert(_with_sequences(document.data), Written)
    except msgspec.ValidationError as problem:
        reason, path = _explain(str(problem))
        position = locate(text, document.spots, path)
        raise _Flaw(reason, f":{position.line}:{position.column}") from None
    try:
        return read_blueprint(written.name or file.stem, written.description, written.tasks, written.variables)
    except InvalidTemplate as problem:
        raise _Flaw(f"{problem.message}; {problem.hint}") from None


def _with_sequences(data: Any) -> Any:
    """The same with a place for each task that names none: its place in the list."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, list):
        return data
    numbered = [
        {"sequence": number, **task} if isinstance(task, dict) else task for number, task in enumerate(tasks, 1)
    ]
    return {**data, "tasks": numbered}


def _explain(problem: str) -> tuple[str, tuple[str | int, ...]]:
    """A validator's words as people's, and the path of what they are about."""
    steps = re.findall(_STEP, path_of(problem))
    path: tuple[str | int, ...] = tuple(int(number) if number else key for key, number in steps)
    part = {"tasks": PlanTask, "variables": Variable}.get(str(path[0]) if path else "", Written)
    words = explained(problem, kind="key", names=part.__struct_fields__, whole="the template")
    return words + ("; put it in quotes" if re.match(_NO_TEXT, problem) else ""), path
