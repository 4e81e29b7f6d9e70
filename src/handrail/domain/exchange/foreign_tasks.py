"""One record of another tool's file: values that fit a field of ours are taken, everything else is kept.

A field of an unexpected type is not taken, so it is kept as well. Knows no tool's fields.

Turns drafts of tasks that refer to each other by the source's ids into tasks that do so by name.

What a plan of ours cannot express is left out with a remark: references to nothing, and edges between a task and the
tasks it is part of. Real cycles stay: the import refuses them and shows the path.

Names for tasks that come from elsewhere: one line, at most 200 characters, unique.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.domain.exchange.markdown_lines import DEEPER, indent_of, without_indent
from handrail.domain.exchange.plan_document import PlannedTask, PlanNote, TaskOrigin
from handrail.domain.work.task import FINISHED
from handrail.kernel.wording import on_one_line, shortened

TEXT_MAX = 200_000
"""Characters of a description (`PlanTask`)."""
ENTRY_MAX = 4000
ENTRIES_MAX = 500
SUMMARY_MAX = 200
NAMED_MAX = 5
UNKNOWN_STATUSES = "unknown statuses count as pending"
CUT_DESCRIPTIONS = "long descriptions were cut; the whole text is kept"
SHOWN_MAX = 100
_MARKED = re.compile(r"[ \t]*(?:[-*+•]|[0-9]{1,3}[.)])\s+(\[[ xX]\]\s+)?")


class ForeignRecord:
    """A record whose fields are taken one by one."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._left = dict(fields)

    def get(self, key: str) -> Any:
        """The raw value, which remains among what is kept."""
        return self._left.get(key)

    def take(self, key: str) -> Any:
        """The raw value, which is then no longer kept."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str:
        """The text, taken; empty if it is not text."""
        value = self._left.get(key)
        return str(self._left.pop(key)) if isinstance(value, str) else ""

    def texts(self, key: str) -> list[str]:
        """The list of texts, taken; empty if it is not one."""
        value = self._left.get(key)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            return []
        return list(self._left.pop(key))

    def records(self, key: str) -> list[dict[str, Any]]:
        """The objects in a list, which remains among what is kept."""
        value = self._left.get(key)
        return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []

    def time(self, *keys: str) -> int | None:
        """The first of these that is a time, in milliseconds since 1970. Taken only if no precision is lost."""
        for key in keys:
            at = milliseconds(self._left.get(key))
            if at is not None:
                if _whole_milliseconds(str(self._left[key])):
                    del self._left[key]
                return at
        return None

    def keep(self, key: str, value: Any) -> None:
        """Keeps a value as the source has it."""
        self._left[key] = value

    @property
    def left(self) -> dict[str, Any]:
        """What is kept, without empty values, which say nothing."""
        return {key: value for key, value in self._left.items() if value is not None and value not in ("", [], {})}


def milliseconds(value: object) -> int | None:
    """A time as tools write it: ISO 8601, with or without a zone. The year 1 and the start of 1970 mean none."""
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        at = datetime.fromisoformat(value)
        moment = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000 + 0.5)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment > 0 else None


def _whole_milliseconds(said: str) -> bool:
    digits = re.search(r"\.([0-9]+)", said)
    return digits is None or not digits.group(1)[3:].strip("0")


def reference(value: object) -> str | None:
    """An id as the source may write it, number or text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return (str(value).strip() or None) if isinstance(value, int | str) else None


def with_sections(first: str, *sections: tuple[str, str]) -> str:
    """A description made of several texts, those after the first under headings."""
    parts = [first] if first.strip() else []
    parts += [f"## {heading}\n\n{text}" for heading, text in sections if text.strip()]
    return "\n\n".join(parts)


def fitted(text: str, record: ForeignRecord, key: str, cut: list[str], name: str) -> str:
    """A description within our limit. A longer one is cut, and the full text is kept in the record."""
    if len(text) <= TEXT_MAX:
        return text
    record.keep(key, text)
    cut.append(name)
    return text[: TEXT_MAX - 1] + "…"


def entries(text: str) -> list[str] | None:
    """A text as a list: one entry per bullet, with what is nested in it, or the whole text as one. None if that exceeds
    our limits or would lose ticked boxes."""
    found: list[str] = []
    listed, begin = True, 0
    for line in text.splitlines():
        mark = _MARKED.match(line)
        indent = indent_of(line)
        if mark is not None and "x" in (mark.group(1) or "").lower():
            return None
        if mark is not None and found and indent >= begin + DEEPER:
            found[-1] += "\n" + without_indent(line, begin + DEEPER).rstrip()
        elif mark is not None:
            begin = min(begin, indent) if found else indent
            found.append(line[mark.end() :].strip())
        elif line.strip() and found and line.startswith((" ", "\t")):
            found[-1] += "\n" + line.strip()
        elif line.strip():
            listed = False
            break
    if not listed or not found:
        found = [text.strip()]
    found = [entry for entry in found if entry]
    fits = len(found) <= ENTRIES_MAX and all(len(entry) <= ENTRY_MAX for entry in found)
    return found if fits else None


def note(text: str, *, at: int | None, **detail: Any) -> PlanNote | None:
    """A remark of the source as a checkpoint: its first line as the summary, and the full text too if there is more."""
    lines = text.strip().splitlines()
    if not lines:
        return None
    summary = shortened(on_one_line(lines[0]), SUMMARY_MAX)
    said = {key: value for key, value in detail.items() if value not in (None, "", [], {})}
    if summary != text:
        said["text"] = text
    return PlanNote(summary=summary, detail=said, at=at)


def several(names: list[str]) -> str:
    """Names for a sentence: the first few, shortened if long, and how many more there are."""
    more = len(names) - NAMED_MAX
    shown = [shortened(name, SHOWN_MAX) for name in names[:NAMED_MAX]]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def remark_on(what: str, names: list[str]) -> list[str]:
    """A remark that names what it is about; none if there are no names."""
    return [f"{what}: {several(names)}"] if names else []


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


NAME_MAX = 200
"""Characters of a task's name (`PlanTask`)."""
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
"""Control characters, and those that reorder or hide text on a screen."""
_JOINERS = "\u200c\u200d"
"""Zero-width characters that Persian words and families of emoji consist of. They are kept inside a word; anywhere else
they say nothing, and would make two names that look the same."""


class Names:
    """The names given so far."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._tried: dict[tuple[str, str], int] = {}

    def name(self, title: str, source_id: str) -> str:
        """A name for this title. If it is taken, the source's id is appended, and a number if needed."""
        shown_id = plain_title(source_id)[:80]
        plain = plain_title(title) or shown_id or "task"
        found = _cut(plain, "")
        number = self._tried.get((plain, shown_id), 1)
        while found in self._given:
            found = _cut(plain, f" ({shown_id})" if number == 1 else f" ({shown_id}, {number})")
            number += 1
        self._tried[plain, shown_id] = number
        self._given.add(found)
        return found


def plain_title(title: str) -> str:
    """A title on one line: no control characters, single spaces, none at the ends, nothing invisible around words."""
    words = (word.strip(_JOINERS) for word in _UNPRINTED.sub(" ", title).split())
    return " ".join(word for word in words if word)


def _cut(plain: str, behind: str) -> str:
    room = NAME_MAX - len(behind)
    return (plain if len(plain) <= room else plain[: room - 1].rstrip() + "…") + behind


class Draft(msgspec.Struct, kw_only=True):
    """A task being read. `needs` and `part_of` are ids of the source."""

    id: str
    title: str
    task: PlannedTask
    system: str
    fields: dict[str, Any] = {}
    needs: list[str] = []
    part_of: str | None = None
    source: str = ""
    """Where ids like this one are assigned, if the file says so."""
    unresolved: dict[str, Any] = {}
    """Fields of the source that are kept only if one of `needs` is dropped."""


def draft_task(**fields: Any) -> PlannedTask:
    """A task that has not been named yet."""
    return PlannedTask(name="", **fields)


def assemble(drafts: list[Draft], remarks: list[str], *, gone: Mapping[str, str] | None = None) -> list[PlannedTask]:
    """The tasks, in order. `gone` maps ids that were left out on purpose to the reason."""
    by_id = _with_ids_of_their_own(drafts, remarks)
    needed = {draft.id: len(set(draft.needs)) for draft in drafts}
    _drop_dangling(drafts, by_id, gone or {}, remarks)
    _untangle(drafts, remarks)
    for draft in drafts:
        if len(draft.needs) < needed[draft.id]:
            draft.fields |= draft.unresolved
    names = Names()
    named = {draft.id: names.name(draft.title, draft.id) for draft in drafts}
    changed = [draft for draft in drafts if named[draft.id] != draft.title]
    for draft in changed:
        if draft.title:
            draft.fields["title"] = draft.title
    cut = [draft.id for draft in changed if len(plain_title(draft.title)) > len(named[draft.id])]
    again = [draft.id for draft in changed if len(plain_title(draft.title)) < len(named[draft.id])]
    if cut:
        remarks.append(f"titles too long for a name were cut: {several(cut)}; the whole title is kept")
    if again:
        remarks.append(f"titles that were missing or already taken have the id in the name: {several(again)}")
    return [
        msgspec.structs.replace(
            draft.task,
            name=named[draft.id],
            sequence=number,
            parent=named[draft.part_of] if draft.part_of is not None else None,
            depends_on=[named[need] for need in draft.needs],
            origin=TaskOrigin(system=draft.system, id=draft.id, fields=draft.fields, source=draft.source),
        )
        for number, draft in enumerate(drafts, start=1)
    ]


def unpaused(tasks: list[PlannedTask], blocked: Collection[str]) -> list[PlannedTask]:
    """The tasks, but those the source calls blocked become pending if they name a blocker: being blocked then shows,
    and ends, by itself. Without a visible reason they stay paused, so that nobody is offered them."""
    finished = {task.name for task in tasks if task.status in FINISHED}
    return [
        msgspec.structs.replace(task, status="pending")
        if task.origin is not None and task.origin.id in blocked and set(task.depends_on) - finished
        else task
        for task in tasks
    ]


def _with_ids_of_their_own(drafts: list[Draft], remarks: list[str]) -> dict[str, Draft]:
    """Drafts by id. A repeated id gets a number; references mean the first."""
    by_id: dict[str, Draft] = {}
    times: Counter[str] = Counter()
    for draft in drafts:
        said = draft.id
        times[said] += 1
        while draft.id in by_id:
            draft.fields["id"] = said
            draft.id = f"{said} ({times[said]})"
            times[said] += draft.id in by_id  # the source may have an id of that form itself
        by_id[draft.id] = draft
    again = [said for said, count in times.items() if count > 1]
    if again:
        remarks.append(f"ids that stand for several tasks: {several(again)}; references were taken to mean the first")
    return by_id


def _drop_dangling(
    drafts: list[Draft], by_id: Mapping[str, Draft], gone: Mapping[str, str], remarks: list[str]
) -> None:
    dangling: list[str] = []
    ended: list[str] = []

    def stands(draft: Draft, other: str, relation: str) -> bool:
        if other in by_id and other != draft.id:
            return True
        said = f"{draft.id} {relation} {other}"
        (ended if other in gone else dangling).append(said + (f" ({gone[other]})" if other in gone else ""))
        return False

    for draft in drafts:
        draft.needs = [need for need in dict.fromkeys(draft.needs) if stands(draft, need, "needs")]
        if draft.part_of is not None and not stands(draft, draft.part_of, "is part of"):
            draft.part_of = None
    if dangling:
        remarks.append(f"references to itself or to something not in this file were left out: {several(dangling)}")
    if ended:
        remarks.append(f"references to something that was left out were dropped: {several(ended)}")


def _untangle(drafts: list[Draft], remarks: list[str]) -> None:
    """Drops dependencies between a task and the tasks it is part of: a task ends after its parts anyway, and a part
    that waited for its parent would wait forever."""
    spans = _spans(drafts)
    dropped: list[str] = []
    for draft in drafts:
        kept = []
        for need in draft.needs:
            if _holds(spans, need, draft.id) or _holds(spans, draft.id, need):
                dropped.append(f"{draft.id} needs {need}")
            else:
                kept.append(need)
        draft.needs = kept
    if dropped:
        remarks.append(f"dependencies between a task and its own parts were left out: {several(dropped)}")


def _holds(spans: Mapping[str, tuple[int, int]], whole: str, part: str) -> bool:
    """Whether one task is part of another, at any depth."""
    outer, inner = spans.get(whole, (0, 0)), spans.get(part, (0, 0))
    return outer[0] < inner[0] and inner[1] < outer[1]


def _spans(drafts: list[Draft]) -> dict[str, tuple[int, int]]:
    """When a walk through the parts enters and leaves each task. Cycles of parents are skipped; the import reports
    them."""
    parts: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.part_of is not None:
            parts.setdefault(draft.part_of, []).append(draft.id)
    spans: dict[str, tuple[int, int]] = {}
    entered: dict[str, int] = {}
    clock = 0
    pending = [draft.id for draft in drafts if draft.part_of is None]
    while pending:
        clock += 1
        at = pending[-1]
        if at in entered:
            spans[at] = (entered[at], clock)
            pending.pop()
        else:
            entered[at] = clock
            pending += parts.get(at, ())
    return spans
