"""The templates in people's folders, reread at each call: the next one sees an edit, a new file, a removal.

Not a watcher and no cache: templates are few and rarely asked for. A template that cannot be used is never dropped: it
becomes a `BrokenTemplate` with its file, place and reason, and no lower-priority file takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.work.plan import MOST_TASKS, Name, PlanTask, Text
from handrail.domain.work.templates import (
    MOST_VARIABLES,
    Blueprint,
    BrokenTemplate,
    FileTemplate,
    Variable,
    read_blueprint,
)
from handrail.kernel.errors import InvalidTemplate
from handrail.kernel.limits import TEMPLATE_FILE_BYTES, TEMPLATE_FILES
from handrail.known_types import make_known
from handrail.outside.user_files import (
    Flaw,
    UserFile,
    UserFolder,
    in_words,
    names_in,
    nearest_first,
    path_in,
    shown,
    standard_folders,
)

# Plain text, not compiled here: only a broken file needs it.
_NO_TEXT = r"Expected `str(?: \| null)?`, got `(?:int|float|bool|null)`"


class WrittenTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A template as written in a file."""

    tasks: Annotated[list[PlanTask], Meta(min_length=1, max_length=MOST_TASKS)]
    name: Name | None = None
    description: Text | None = None
    variables: Annotated[list[Variable], Meta(max_length=MOST_VARIABLES)] = []


def standard_templates(*, home: Path, project: Path) -> tuple[UserFolder, ...]:
    """Where templates come from, nearest first."""
    return standard_folders("templates", home=home, project=project)


class TemplateFiles:
    """The shelf over folders of files. Implements `handrail.domain.work.templates.TemplateShelf`."""

    def __init__(self, sources: Sequence[UserFolder]) -> None:
        self._sources = nearest_first(sources)

    def entries(self) -> tuple[FileTemplate | BrokenTemplate, ...]:
        found: list[FileTemplate | BrokenTemplate] = []
        taken: set[str] = set()
        for source in self._sources:
            here = _entries_of(source)
            found += [entry for entry in here if not entry.stem or entry.stem not in taken]
            taken |= {entry.stem for entry in here}
        return tuple(found)


def _entries_of(source: UserFolder) -> list[FileTemplate | BrokenTemplate]:
    try:
        names = names_in(source)
    except Flaw as flaw:
        return [BrokenTemplate("", source.label, str(source.folder), flaw.reason)]
    found: list[FileTemplate | BrokenTemplate] = []
    first: dict[str, str] = {}
    for name in names[:TEMPLATE_FILES]:
        entry = _entry(source, name)
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


def _entry(source: UserFolder, name: str) -> FileTemplate | BrokenTemplate:
    """The template in one file, or why there is none."""
    file = source.folder / name
    try:
        written = UserFile(file, TEMPLATE_FILE_BYTES, source.tree)
        blueprint = _read(file.stem, written)
    except Flaw as flaw:
        stem = file.stem if shown(name) == name else ""
        return BrokenTemplate(stem, source.label, f"{shown(file)}{flaw.place}", flaw.reason)
    return FileTemplate(file.stem, source.label, str(file), written.changed_ms, blueprint)


def _read(stem: str, written: UserFile) -> Blueprint:
    make_known(WrittenTemplate)
    try:
        template = msgspec.convert(_with_sequences(written.data), WrittenTemplate)
    except msgspec.ValidationError as problem:
        raise _explained(str(problem), written) from None
    try:
        return read_blueprint(template.name or stem, template.description, template.tasks, template.variables)
    except InvalidTemplate as problem:
        raise Flaw(f"{problem.message}; {problem.hint}") from None


def _with_sequences(data: Any) -> Any:
    """The same data with a sequence number for each task that has none: its place in the list."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, list):
        return data
    numbered = [
        {"sequence": number, **task} if isinstance(task, dict) else task for number, task in enumerate(tasks, 1)
    ]
    return {**data, "tasks": numbered}


def _explained(problem: str, written: UserFile) -> Flaw:
    """A validator's complaint in plain words, with its place."""
    path = path_in(problem)
    part = {"tasks": PlanTask, "variables": Variable}.get(str(path[0]) if path else "", WrittenTemplate)
    quotes = "; put it in quotes" if re.match(_NO_TEXT, problem) else ""
    return Flaw(in_words(problem, part, "the template") + quotes, written.at(path))
