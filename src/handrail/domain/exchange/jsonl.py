"""Our own plan format: JSON Lines. One line for the whole, one per task, one per note; nothing of a document is left
out.

The same plan always gives the same bytes. The first line has the key `handrail`, whose value is the format version; the
line of a task begins with `task`, its name; that of a note with `note`, the name of its task.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, unreadable
from handrail.domain.exchange.foreign_tasks import several
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote
from handrail.kernel.limits import MESSAGE_DEPTH

VERSION = 1
HEAD = "handrail"
TASK = "task"
NOTE = "note"
MOST_LEVELS = MESSAGE_DEPTH + 32
"""Nesting depth of a line. What came in a message or from another tool's file has some levels more around it here, and
whatever is exported can be imported again."""

StructT = TypeVar("StructT", bound=msgspec.Struct)


def write(document: PlanDocument) -> str:
    """The document's lines."""
    return "".join(_line(line) for line in _lines(document))


def _lines(document: PlanDocument) -> Iterator[dict[str, Any]]:
    head = _nondefault_fields(msgspec.structs.replace(document, tasks=[]))
    yield {HEAD: VERSION, **head}
    for task in document.tasks:
        fields = _nondefault_fields(msgspec.structs.replace(task, notes=[]))
        yield {TASK: fields.pop("name"), "status": task.status, **fields}
        for note in task.notes:
            yield {NOTE: task.name, **_nondefault_fields(note)}


def _nondefault_fields(record: msgspec.Struct) -> dict[str, Any]:
    """The fields that differ from their defaults, in order."""
    values = ((name, getattr(record, name), default) for name, default in _fields(type(record)))
    return {name: _with_sorted_keys(value) for name, value, default in values if value != default}


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Each field of a record, with its default."""
    return tuple(
        (
            field.name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(kind)
    )


def _with_sorted_keys(value: Any) -> Any:
    """A value whose objects are sorted by key, because stores do not guarantee an order."""
    if isinstance(value, msgspec.Struct):
        return _nondefault_fields(value)
    if isinstance(value, dict):
        return {key: _with_sorted_keys(value[key]) for key in sorted(value)}
    return [_with_sorted_keys(entry) for entry in value] if isinstance(value, list) else value


def _line(fields: dict[str, Any]) -> str:
    return msgspec.json.encode(fields).decode() + "\n"


# -- reading ----------------------------------------------------------------------------------------------------------


def read(text: str, name: str) -> PlanDocument:
    """The document in these lines. `name` is used if it has none."""
    source = ForeignJson(text, MOST_LEVELS)
    lines = source.lines()
    number, head = next(lines)
    reading = _Reading()
    fields = _object(number, head)
    if fields.pop(HEAD, None) != VERSION:
        raise unreadable(
            f"line {number}: it does not say {HEAD}: {VERSION}",
            hint="the first line of a plan says its form; one of a later Handrail needs that Handrail",
        )
    fields = {"name": name, **{key: value for key, value in fields.items() if key != "tasks"}}
    whole = reading.taken(number, fields, PlanDocument, "")
    for number, line in lines:
        reading.add(number, _object(number, line))
    return msgspec.structs.replace(
        whole, tasks=reading.finished(), remarks=[*whole.remarks, *source.remarks(), *reading.remarks()]
    )


def _object(number: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise unreadable(f"line {number}: it is no object", hint="every line of a plan is one")
    return dict(value)


class _Reading:
    """What the lines said so far."""

    def __init__(self) -> None:
        self._tasks: dict[str, PlannedTask] = {}
        self._notes: dict[str, list[PlanNote]] = {}
        self._unknown: dict[str, None] = {}

    def add(self, number: int, fields: dict[str, Any]) -> None:
        if TASK in fields:
            fields.pop("notes", None)
            task = self.taken(number, {"name": fields.pop(TASK), **fields}, PlannedTask, TASK)
            if task.name in self._tasks:
                raise unreadable(f'line {number}: a second task "{task.name}"', hint="give each a name of its own")
            self._tasks[task.name] = task
            self._notes[task.name] = []
        elif NOTE in fields:
            name = fields.pop(NOTE)
            if not isinstance(name, str) or name not in self._notes:
                raise unreadable(
                    f"line {number}: a note on a task that no line before it has", hint="put it after its task's line"
                )
            self._notes[name].append(self.taken(number, fields, PlanNote, NOTE))
        else:
            raise unreadable(
                f"line {number}: it is neither a task nor a note",
                hint=f'such lines have a key "{TASK}" or "{NOTE}" with the name of the task',
            )

    def taken(self, number: int, fields: dict[str, Any], kind: type[StructT], what: str) -> StructT:
        for key in fields:
            if key not in kind.__struct_fields__:
                self._unknown[f"{what or HEAD}.{key}"] = None
        try:
            return msgspec.convert(fields, kind)
        except msgspec.ValidationError as problem:
            raise unreadable(f"line {number}: {problem}", hint="fix the line, or export the plan again") from None

    def finished(self) -> list[PlannedTask]:
        return [msgspec.structs.replace(task, notes=self._notes[name]) for name, task in self._tasks.items()]

    def remarks(self) -> list[str]:
        return [f"unknown fields were left out: {several(list(self._unknown))}"] if self._unknown else []
