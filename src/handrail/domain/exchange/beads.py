"""Reads beads issues: JSON Lines as written by `bd export`, or the array from `bd list --json`.

Reading only. Deleted issues, memories, messages and templates are not work and are left out, with a remark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, kind_in_words, unreadable
from handrail.domain.exchange.foreign_tasks import (
    CUT_DESCRIPTIONS,
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
    reference,
    remark_on,
    several,
    unpaused,
    with_sections,
)
from handrail.domain.exchange.plan_document import PlanDocument, PlanNote
from handrail.domain.work.task import FINISHED

SYSTEM = "beads"
STATUSES = {
    "open": "pending",
    "in_progress": "in_progress",
    "hooked": "in_progress",  # on a worker's hook
    "blocked": "paused",  # or pending, if it says what blocks it; then it shows as blocked by that
    "deferred": "paused",  # put on ice: it must not be offered as the next thing to do
    "pinned": "paused",  # stays open permanently and is not meant to be done
    "closed": "completed",
}
DELETED = "tombstone"
PRIORITIES = {0: 200, 1: 100, 2: 0, 3: -100, 4: -200}
"""P0 is the most urgent; P2 is the default, as 0 is here."""
BLOCKING = ("blocks", "conditional-blocks", "waits-for", "")
"""The edges that hold work back; those without a type are from before types existed. All others say what belongs
together, and are only kept."""
PARENT = "parent-child"
DUPLICATE = "duplicates"
_YES = (True, 1)
"""A backup consists of database rows, in which truth is a number."""
_NO_TIME = 2**63
"""Issues without a creation time come last, in file order."""
NO_WORK = ("message", "event", "agent", "role", "rig", "slot")
"""Issue types that beads uses internally."""
GATE = "gate"
"""Waits for something external, such as a CI run or a person: other issues wait for it, but nobody works on it."""


class _Reading(msgspec.Struct):
    """What is collected while reading."""

    remarks: list[str]
    drafts: list[Draft] = []
    gone: dict[str, str] = {}
    blocked: set[str] = set()
    unknown: list[str] = []
    conditional: list[str] = []
    parents: list[str] = []
    cut: list[str] = []


def read(text: str, name: str) -> PlanDocument:
    """The plan in an export, oldest issue first."""
    source = ForeignJson(text)
    issues, others = _issues(source)
    reading = _Reading(remarks=source.remarks() + others)
    for issue in issues.values():
        reason = _left_out(issue)
        if reason:
            reading.gone[str(reference(issue.get("id")))] = reason
    for key, issue in issues.items():
        if key not in reading.gone:
            reading.drafts.append(_draft(key, ForeignRecord(issue), reading))
    reading.drafts.sort(key=lambda draft: draft.task.created_at or _NO_TIME)
    _add_remarks(reading)
    tasks = unpaused(assemble(reading.drafts, reading.remarks, gone=reading.gone), reading.blocked)
    return PlanDocument(name=name, tasks=tasks, remarks=reading.remarks)


def _issues(source: ForeignJson) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Issues by id, and remarks about anything else in the file. As in beads, a later line about an issue replaces the
    earlier one."""
    found: dict[str, dict[str, Any]] = {}
    again: list[str] = []
    others: Counter[str] = Counter()
    for where, value in _records(source):
        if not isinstance(value, dict):
            raise unreadable(f"{where} holds {kind_in_words(value)}", hint="each issue is an object with id and title")
        kind = value.get("_type", "issue")
        if kind != "issue":
            others[kind if isinstance(kind, str) else "unknown"] += 1
            continue
        key = reference(value.get("id"))
        if key is None or "title" not in value:  # other beads files contain ids too
            missing = "id" if key is None else "title"
            raise unreadable(f"{where} has no {missing}", hint="each issue is an object with id and title: bd export")
        if key in found:
            again.append(key)
        found[key] = value
    remarks = [f"left out, since it is no issue: {several([f'{count} × {kind}' for kind, count in others.items()])}"]
    remarks = remarks if others else []
    if found and all("content_hash" in issue and "dependencies" not in issue for issue in found.values()):
        remarks.append(
            "this is a backup, which keeps dependencies in another file; `bd export` writes them with the issues"
        )
    if again:
        remarks.append(f"issues that appear more than once; the last entry counts: {several(again)}")
    return found, remarks


def _records(source: ForeignJson) -> Iterator[tuple[str, Any]]:
    if not source.starts_with("["):
        for number, value in source.lines():
            yield f"line {number}", value
        return
    for value in source.values():
        for number, issue in enumerate(value if isinstance(value, list) else [value], start=1):
            yield f"issue {number}", issue


def _left_out(issue: dict[str, Any]) -> str:
    """Why this is not a task; empty if it is one."""
    if issue.get("status") == DELETED or issue.get("deleted_at"):
        return "deleted"
    if issue.get("issue_type") in NO_WORK:
        return str(issue["issue_type"])
    if issue.get("is_template") in _YES:
        return "template"
    return "ephemeral" if issue.get("ephemeral") in _YES else ""


def _draft(key: str, record: ForeignRecord, reading: _Reading) -> Draft:
    for field in ("id", "_type", "dependency_count", "dependent_count", "comment_count", "notes_preview"):
        record.take(field)  # the id is stored separately; the rest can be recounted
    status = _status(key, record, reading)
    needs, parent = _edges(key, record, reading)
    changed = milliseconds(record.get("updated_at"))
    notes = _comments(record)
    working = note(record.text("notes"), at=changed)
    criteria = record.text("acceptance_criteria")
    acceptance = entries(criteria) if criteria.strip() else []
    description = with_sections(
        record.text("description"),
        ("Design", record.text("design")),
        ("Acceptance criteria", criteria if acceptance is None else ""),
    )
    reason = record.text("close_reason") if status in ("completed", "skipped") else ""
    return Draft(
        id=key,
        title=record.text("title"),
        system=SYSTEM,
        needs=needs,
        part_of=parent,
        task=draft_task(
            description=fitted(description, record, "description", reading.cut, key),
            status=status,
            priority=_priority(record.get("priority")),
            acceptance=acceptance or [],
            outcome=reason or None,
            created_at=record.time("created_at"),
            started_at=record.time("started_at"),
            finished_at=record.time("closed_at") if status in FINISHED else None,
            notes=[*notes, *([working] if working is not None else [])],
        ),
        fields=record.left,
    )


def _status(key: str, record: ForeignRecord, reading: _Reading) -> str:
    word = record.get("status") or "open"
    if not isinstance(word, str) or word not in STATUSES:
        reading.unknown.append(f"{key} ({str(word)[:40]})")
        return "pending"
    if word == "blocked":
        reading.blocked.add(key)
    if word == "closed" and any(edge.get("type") == DUPLICATE for edge in record.records("dependencies")):
        return "skipped"  # another issue replaces it
    is_for_doing = record.get("issue_type") != GATE and record.get("pinned") not in _YES
    return STATUSES[word] if is_for_doing or STATUSES[word] != "pending" else "paused"


def _priority(value: Any) -> int:
    """P0 to P4, as a number or in words: `1`, `"1"`, `"P1"`."""
    if isinstance(value, str):
        digit = value.strip().lower().removeprefix("p")
        value = int(digit) if digit in ("0", "1", "2", "3", "4") else None
    return PRIORITIES.get(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def _edges(key: str, record: ForeignRecord, reading: _Reading) -> tuple[list[str], str | None]:
    """What the issue waits for and what it is part of. The edges themselves are kept too: they say since when, by whom,
    and what else belongs together."""
    needs: list[str] = []
    parents: list[str] = []
    for edge in record.records("dependencies"):
        # `bd list --json` returns the other issue itself, with the type next to it.
        other = reference(edge.get("depends_on_id", edge.get("id")))
        kind = edge.get("type", edge.get("dependency_type", ""))
        if other is None or reference(edge.get("issue_id", key)) != key:
            continue
        if kind == PARENT:
            parents.append(other)
        elif kind in BLOCKING:
            needs.append(other)
            if kind == "conditional-blocks":
                reading.conditional.append(f"{key} needs {other}")
    named = reference(record.get("parent"))
    if named is not None and not parents:
        parents.append(named)
    parents = list(dict.fromkeys(parents))
    if len(parents) > 1:
        reading.parents.append(f"{key} ({', '.join(parents[1:4])})")
    if named is not None and parents[:1] == [named]:
        record.take("parent")
    return needs, parents[0] if parents else None


def _comments(record: ForeignRecord) -> list[PlanNote]:
    """The comments as notes, oldest first. They are taken only if all of them are well-formed."""
    found = []
    for comment in record.records("comments"):
        inner = ForeignRecord(comment)
        inner.take("issue_id")
        text, at = inner.text("text"), inner.time("created_at")
        said = note(text, at=at, **{key: value for key, value in inner.left.items() if key not in ("at", "text")})
        if said is not None:
            found.append(said)
    listed = record.get("comments")
    if isinstance(listed, list) and len(found) == len(listed):
        record.take("comments")
    return sorted(found, key=lambda one: one.at or 0)


def _add_remarks(reading: _Reading) -> None:
    for reason, count in Counter(reading.gone.values()).items():
        ids = [key for key, why in reading.gone.items() if why == reason]
        reading.remarks.append(f"left out ({reason}): {counted(count, 'issue')}, {several(ids)}")
    conditional = (
        "work that is to be done only if other work fails waits for its end here, and has to be skipped by hand"
    )
    reading.remarks += remark_on(UNKNOWN_STATUSES, reading.unknown)
    reading.remarks += remark_on(conditional, reading.conditional)
    reading.remarks += remark_on("a task has one parent here; others are only kept", reading.parents)
    reading.remarks += remark_on(CUT_DESCRIPTIONS, reading.cut)
