"""Turns drafts of tasks that refer to each other by the source's ids into tasks that do so by name.

What a plan of ours cannot express is left out with a remark: references to nothing, and edges between a task and the
tasks it is part of. Real cycles stay: the import refuses them and shows the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_record import several
from handrail.domain.exchange.plan_document import PlannedTask, TaskOrigin
from handrail.domain.exchange.task_names import Names, plain_title
from handrail.domain.work.task import FINISHED


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
