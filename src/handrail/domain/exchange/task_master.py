"""Reads Task Master's `tasks.json`: the old form with a single list, and the one with tags, of which one is read.

Reading only. Subtasks become parts of their task; their ids are local there ("2") and global here ("5.2").
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, kind_in_words, unreadable
from handrail.domain.exchange.foreign_tasks import (
    CUT_DESCRIPTIONS,
    ENTRIES_MAX,
    ENTRY_MAX,
    UNKNOWN_STATUSES,
    Draft,
    ForeignRecord,
    assemble,
    counted,
    draft_task,
    entries,
    fitted,
    milliseconds,
    note,
    plain_title,
    reference,
    remark_on,
    several,
    unpaused,
    with_sections,
)
from handrail.domain.exchange.plan_document import PlanDocument, PlanNote
from handrail.kernel.wording import did_you_mean

SYSTEM = "task-master"
USUAL_TAG = "master"
STATUSES = {
    "pending": "pending",
    "in-progress": "in_progress",
    "review": "in_progress",  # the work is done but not finished: someone still has to review it
    "done": "completed",
    "completed": "completed",  # newer versions write both words
    "deferred": "paused",  # not now: it must not be offered as the next thing to do
    "cancelled": "skipped",
    "blocked": "paused",  # or pending, if it says what blocks it; then it shows as blocked by that
}
PRIORITIES = {"critical": 200, "high": 100, "medium": 0, "low": -100}
"""Medium is the default, as 0 is here."""
COMPLEXITIES = {"simple": "low", "moderate": "medium", "complex": "high", "very-complex": "high"}
LOW_SCORE, MEDIUM_SCORE = 3, 6
"""Scores range from 1 to 10; these are the highest that count as low and as medium."""
_ADDED = re.compile(r"<info added on ([^>\n]{1,40})>")
_DERIVED = ("updated", "taskCount", "completedCount", "totalTasks")
"""What a tag's metadata says that follows from its tasks."""
_SAID_OF_EVERY_TAG = ("Tasks for {tag} context", "Tasks live here by default")
"""What Task Master itself writes as the description of a tag. It says nothing about the work."""


class _Reading(msgspec.Struct):
    """What is collected while reading."""

    drafts: list[Draft] = []
    remarks: list[str] = []
    unknown: list[str] = []
    cut: list[str] = []
    blocked: set[str] = set()


def read(text: str, name: str, part: str | None = None) -> PlanDocument:
    """The plan in a `tasks.json`. `part` names a tag; without it the usual tag is read, or else the first that has
    tasks. The tag is part of the source, because ids are meaningful only within it."""
    source = ForeignJson(text)
    data = source.one()
    reading = _Reading(remarks=source.remarks())
    tag, holder = _chosen(data, part, reading.remarks)
    for number, task in enumerate(holder["tasks"], start=1):
        _collect(task, f"{tag}: task {number}" if tag else f"task {number}", None, reading)
    _resolve(reading.drafts)
    tasks = assemble(reading.drafts, reading.remarks)
    tasks = unpaused(tasks, reading.blocked)
    reading.remarks += remark_on(UNKNOWN_STATUSES, reading.unknown)
    reading.remarks += remark_on(CUT_DESCRIPTIONS, reading.cut)
    description, created, unplaced = _about_the_tag(tag or USUAL_TAG, holder)
    unplaced += [key for key in _said_beside(holder, data) if key not in unplaced]
    reading.remarks += remark_on("left out of what is said about all tasks", unplaced)
    is_usual = tag in ("", USUAL_TAG)
    return PlanDocument(
        name=name if is_usual else plain_title(tag) or name,
        source_ref=None if is_usual else f"#{tag}",
        description=description,
        created_at=created,
        tasks=tasks,
        remarks=reading.remarks,
    )


def _chosen(data: Any, part: str | None, remarks: list[str]) -> tuple[str, dict[str, Any]]:
    """The tag to read and its content; the old form has no tag."""
    if not isinstance(data, dict):
        raise unreadable(f"it holds {kind_in_words(data)}", hint="a tasks.json is an object with tasks, or with tags")
    tags = {key: value for key, value in data.items() if isinstance(value, dict) and _lists_tasks(value)}
    if _lists_tasks(data):
        tags = {"": data, **tags}
    elif not tags:
        raise unreadable("no tasks are in it", hint='a tasks.json has a list "tasks", by itself or under a tag')
    if part is not None:
        if part not in tags and not (part == USUAL_TAG and "" in tags):
            shown = [tag for tag in tags if tag]
            raise unreadable(
                f'it has no tag "{part}"{did_you_mean(part, shown)}', hint=f"its tags: {', '.join(shown) or 'none'}"
            )
        chosen = part if part in tags else ""
    else:
        filled = [tag for tag in tags if tags[tag]["tasks"]] or list(tags)
        chosen = next((tag for tag in ("", USUAL_TAG) if tag in filled), filled[0])
    others = [f'"{tag}" ({counted(len(tags[tag]["tasks"]), "task")})' for tag in tags if tag and tag != chosen]
    if others:
        remarks.append(f'the tag "{chosen or USUAL_TAG}" was read; not read: {several(others)}')
    return chosen, tags[chosen]


def _lists_tasks(value: dict[str, Any]) -> bool:
    return isinstance(value.get("tasks"), list)


def _about_the_tag(tag: str, holder: dict[str, Any]) -> tuple[str, int | None, list[str]]:
    """What the tag's metadata says about it, when it was made, and the keys of what a plan has no place for."""
    metadata = holder.get("metadata")
    if not isinstance(metadata, dict):
        return "", None, ["metadata"] if metadata else []
    record = ForeignRecord(metadata)
    said = [record.text("projectName"), record.text("description")]
    usual = [sentence.format(tag=tag) for sentence in _SAID_OF_EVERY_TAG]
    about = "\n\n".join(text for text in said if text and text.strip().removesuffix(".") not in usual)
    created = record.time("created", "createdAt")
    return about, created, [key for key in record.left if key not in _DERIVED]


def _said_beside(holder: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """The keys of what stands beside the tasks, and beside the tags: a plan has no place for it."""
    beside = {key: value for key, value in holder.items() if key not in ("tasks", "metadata")}
    if holder is not data:
        beside |= {key: value for key, value in data.items() if value is not holder}
    return [
        key
        for key, value in beside.items()
        if value not in (None, "", [], {}) and not (isinstance(value, dict) and _lists_tasks(value))
    ]


def _collect(value: Any, where: str, parent: str | None, reading: _Reading) -> None:
    """Adds the draft of a task, followed by those of its subtasks."""
    if not isinstance(value, dict):
        raise unreadable(f"{where} is {kind_in_words(value)}", hint="a task is an object with id, title and status")
    own = reference(value.get("id"))
    if own is None:
        raise unreadable(f"{where} has no id", hint="give it the next free number")
    key = own if parent is None or own.startswith(f"{parent}.") else f"{parent}.{own}"
    record = ForeignRecord(value)
    if isinstance(value.get("id"), int | str):
        record.take("id")
    subtasks = record.get("subtasks")
    if isinstance(subtasks, list):
        record.take("subtasks")
    reading.drafts.append(_draft(record, key, parent, reading))
    for number, subtask in enumerate(subtasks if isinstance(subtasks, list) else (), start=1):
        _collect(subtask, f"subtask {number} of task {key}", key, reading)


def _draft(record: ForeignRecord, key: str, parent: str | None, reading: _Reading) -> Draft:
    title = record.text("title")
    word = record.get("status")
    said = str(word if word is not None else "pending").strip().lower().replace("_", "-")
    if said not in STATUSES:
        reading.unknown.append(f"{key} ({said[:40]})")
    if said == "blocked":
        reading.blocked.add(key)
    details, notes = _notes(record.text("details"))
    about = record.text("description")
    strategy, acceptance = _acceptance(record)
    description = with_sections(about, ("Details", details), ("Test strategy", strategy))
    priority = record.get("priority")
    dependencies = record.get("dependencies")
    return Draft(
        id=key,
        title=title,
        system=SYSTEM,
        part_of=parent,
        needs=_needs(record, reading, key),
        unresolved={"dependencies": dependencies},
        task=draft_task(
            description=fitted(description, record, "description", reading.cut, key),
            status=STATUSES.get(said, "pending"),
            priority=PRIORITIES.get(str(priority).strip().lower(), 0),
            estimated_complexity=_complexity(record.get("complexity")),
            files_likely_affected=_files(record),
            acceptance=acceptance,
            created_at=record.time("createdAt"),
            notes=notes,
        ),
        fields=record.left,
    )


def _acceptance(record: ForeignRecord) -> tuple[str, list[str]]:
    """What must hold when it is done: criteria and test strategy. A strategy too long for that is returned by
    itself."""
    criteria = record.texts("acceptanceCriteria")
    if not criteria and isinstance(record.get("acceptanceCriteria"), str):
        listed = entries(record.get("acceptanceCriteria"))
        if listed is not None:
            record.take("acceptanceCriteria")
            criteria = listed
    fitting = [entry for entry in criteria if entry.strip() and len(entry) <= ENTRY_MAX][: ENTRIES_MAX - 1]
    if len(fitting) < len(criteria):
        record.keep("acceptanceCriteria", criteria)
    strategy = record.text("testStrategy")
    if strategy.strip() and len(strategy) <= ENTRY_MAX:
        return "", [*fitting, strategy]
    return strategy, fitting


def _needs(record: ForeignRecord, reading: _Reading, key: str) -> list[str]:
    value = record.get("dependencies")
    if not isinstance(value, list):
        return []
    found = [reference(entry) for entry in value]
    if None in found:
        reading.remarks.append(f"task {key} has a dependency that is no id; it was left out, and is kept")
    else:
        record.take("dependencies")
    return [need for need in found if need is not None]


def _resolve(drafts: list[Draft]) -> None:
    """Resolves a subtask's plain number: it means the sibling subtask, or else the task with that number."""
    known = {draft.id for draft in drafts}
    for draft in drafts:
        if draft.part_of is not None:
            beside = [f"{draft.part_of}.{need}" for need in draft.needs]
            draft.needs = [
                local if "." not in need and (local in known or need not in known) else need
                for need, local in zip(draft.needs, beside, strict=True)
            ]


def _complexity(value: Any) -> str | None:
    if isinstance(value, str):
        return COMPLEXITIES.get(value.strip().lower())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value <= LOW_SCORE:
        return "low"
    return "medium" if value <= MEDIUM_SCORE else "high"


def _files(record: ForeignRecord) -> list[str]:
    """The files it creates or changes. Those it only reads, and the reasons, are only kept."""
    found = [file.get("path") for file in record.records("relevantFiles") if file.get("action") != "reference"]
    return [path for path in found if isinstance(path, str) and 0 < len(path) <= ENTRY_MAX][:ENTRIES_MAX]


def _notes(details: str) -> tuple[str, list[PlanNote]]:
    """The details without later additions, and those as notes with their times. If an addition is not closed, the rest
    stays as it is."""
    rest: list[str] = []
    notes: list[PlanNote] = []
    at = 0
    while (opened := _ADDED.search(details, at)) is not None:
        closing = f"</info added on {opened.group(1)}>"
        end = details.find(closing, opened.end())
        if end < 0:
            break
        found = note(details[opened.end() : end].strip(), at=milliseconds(opened.group(1)))
        if found is not None:
            notes.append(found)
        rest.append(details[at : opened.start()])
        at = end + len(closing)
    kept = "".join([*rest, details[at:]])
    return (kept.strip() if notes else kept), notes
