"""Toolset `assist`: how a suggested plan is shown. Loaded when first used; the tool is declared in `assist.py`. The
domain decides what is similar and what can be reused.

Toolset `assist`: shows what led to an outcome. Loaded when first used; the tool is declared in `assist.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.knowledge.causes import Named, sentence_of, summary_of, trace
from handrail.domain.knowledge.plan_suggestions import (
    Fragment,
    PastTask,
    RankedPlan,
    described_plans,
    finished_workflows,
    fragment_of,
    is_known_task,
    ranked,
    seen_in,
    tasks_of_facts,
    tasks_of_workflow,
)
from handrail.domain.reply_size import within
from handrail.domain.work.task import task_name
from handrail.kernel.clock import spoken_time
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork
from handrail.kernel.wording import on_one_line, shortened

COMPARED = 10
"""How many similar plans are searched for recurring tasks."""
PLANS_ROOM = 4_000
"""Bytes for all fragments together."""
RATIONALE = 1_000
TEXT = 160
TROUBLES = 2
FILES = 5
NAMED = 8
NAME = 60
"""The longest name where it is only mentioned, in characters."""
SOURCE = 100
PREFERRED = 300


class _Found(NamedTuple):
    """A similar plan, with its tasks."""

    match: RankedPlan
    tasks: list[PastTask]
    fragment: Fragment


def suggest(
    unit: UnitOfWork,
    repository: str | None,
    goal: str,
    preferred: Sequence[str],
    exclude: Sequence[str],
    most: int,
) -> dict[str, Any]:
    """The members of the answer."""
    described = described_plans(unit, repository)
    plans = [*finished_workflows(unit, repository), *described.values()]
    found = [_found_plan(unit, repository, match, exclude) for match in ranked(goal, plans, preferred, COMPARED)]
    found = [one for one in found if one.fragment.tasks]
    often = seen_in([one.tasks for one in found])
    chosen = found[:most]
    room = PLANS_ROOM // max(1, len(chosen))
    fragments = [_shown_fragment(one, often, len(found), room) for one in chosen]
    applied = [name for name in preferred if any(name in _names(one.match) for one in chosen)]
    return {
        "summary": _summary(goal, plans, chosen, found),
        "fragments": tuple(fragments),
        "rationale": tuple(within(_rationale(chosen, often, len(found), unit.now_ms()), RATIONALE)) if chosen else (),
        "coverage": _coverage(unit, repository, chosen, fragments),
        "sources": tuple(
            {
                "id": one.match.plan.id[:SOURCE],
                "name": one.match.plan.name[:NAME],
                "kind": one.match.plan.kind,
                "score": round(one.match.score, 3),
            }
            for one in chosen
        ),
        "preferred_sources_applied": tuple(within([_cut(name) for name in applied], PREFERRED)),
        "preferred_sources_ignored": tuple(
            within([_cut(name) for name in preferred if name not in applied], PREFERRED)
        ),
    }


def _found_plan(unit: UnitOfWork, repository: str | None, match: RankedPlan, exclude: Sequence[str]) -> _Found:
    plan = match.plan
    is_workflow = plan.kind == "workflow"
    tasks = tasks_of_workflow(unit, plan.id) if is_workflow else tasks_of_facts(unit, repository, plan.name)
    return _Found(match, tasks, fragment_of(tasks, exclude))


def _names(match: RankedPlan) -> tuple[str, ...]:
    return (match.plan.id, match.plan.name, *match.plan.sources)


def _shown_fragment(one: _Found, often: Mapping[str, int], of: int, room: int) -> dict[str, Any]:
    """A fragment: as many of its tasks, in order, as there is room for. None waits for one that is not shown."""
    tasks: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for number, task in enumerate(one.fragment.tasks, 1):
        shown, note = _task(task, number), _note(task, often.get(task.name.casefold(), 1), of)
        room -= len(msgspec.json.encode(shown)) + len(msgspec.json.encode(note))
        if room < 0 and tasks:
            break
        tasks.append(shown)
        notes.append(note)
    plan = one.match.plan
    shown_fragment: dict[str, Any] = {
        "source": plan.id[:SOURCE],
        "name": plan.name[:NAME],
        "tasks": tasks,
        "tasks_total": len(one.fragment.tasks),
        "notes": notes,
    }
    if plan.kind == "workflow":
        shown_fragment["graph"] = f"sc://graphs/{plan.id}"
    return shown_fragment


def _task(task: PastTask, number: int) -> dict[str, Any]:
    """A task in the form that `workflow_set_plan` takes."""
    shown: dict[str, Any] = {
        "name": task.name[:200],
        "description": _cut(task.description),
        "sequence": number,
        "depends_on": list(task.depends_on),
    }
    if task.complexity is not None:
        shown["estimated_complexity"] = task.complexity
    if task.files:
        shown["files_likely_affected"] = [path for path in task.files if len(path) <= TEXT][:FILES]
    return shown


def _note(task: PastTask, times: int, of: int) -> dict[str, Any]:
    """What is known about a task from earlier work."""
    note: dict[str, Any] = {"task": task.name[:200]}
    if task.took_ms is not None:
        note["took_ms"] = task.took_ms
    if task.attempts > 1:
        note["attempts"] = task.attempts
    if of > 1:
        note["seen_in"] = f"{times} of {of}"
    if task.trouble:
        note["went_wrong"] = [_cut(text) for text in task.trouble[:TROUBLES]]
    return note


def _rationale(chosen: Sequence[_Found], often: Mapping[str, int], of: int, now: int) -> list[str]:
    """Why these, and what to look out for."""
    lines: list[str] = []
    for one in chosen:
        plan, words = one.match.plan, ", ".join(one.match.common)
        ago = f"completed {spoken_time(now - plan.at)} ago" if plan.kind == "workflow" else "described by facts"
        wanted = ", and is preferred" if one.match.is_preferred else ""
        lines.append(f'{plan.id[:SOURCE]} "{plan.name[:NAME]}" is about {words}; {ago}{wanted}')
        for task in one.fragment.tasks:
            if task.attempts > 1 or task.trouble:
                why = f": {_cut(task.trouble[0])}" if task.trouble else ""
                tries = f"took {task.attempts} attempts" if task.attempts > 1 else "had trouble"
                lines.append(f'"{task.name[:NAME]}" {tries} in {plan.id[:SOURCE]}{why}')
        if one.fragment.skipped:
            named = ", ".join(name[:NAME] for name in one.fragment.skipped[:3])
            lines.append(f"{named} was skipped in {plan.id[:SOURCE]}, and is left out")
        if one.fragment.circles:
            lines.append(f"{plan.id[:SOURCE]} goes in a circle; left out: {_cut(', '.join(one.fragment.circles[:3]))}")
    recurring = sorted((name for name, times in often.items() if times > 1), key=lambda name: (-often[name], name))
    lines += [f'"{name[:NAME]}" recurs in {often[name]} of {of} that are about the same' for name in recurring[:3]]
    return lines


def _coverage(
    unit: UnitOfWork, repository: str | None, chosen: Sequence[_Found], fragments: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """How much of what was found is in the suggestion, and which dependencies it lacks."""
    excluded = list(dict.fromkeys(name for one in chosen for name in one.fragment.excluded))
    outside = list(dict.fromkeys(name for one in chosen for name in one.fragment.unknown))[:NAMED]
    known = [name for name in outside if is_known_task(unit, repository, name)]
    return {
        "total_tasks": sum(len(one.tasks) for one in chosen),
        "suggested_tasks": sum(len(fragment["tasks"]) for fragment in fragments),
        "excluded_tasks": [name[:NAME] for name in excluded[:NAMED]],
        "missing_dependencies": [name[:NAME] for name in known],
        "unknown_dependencies": [name[:NAME] for name in outside if name not in known],
    }


def _summary(goal: str, plans: Sequence[Any], chosen: Sequence[_Found], found: Sequence[_Found]) -> str:
    if not chosen:
        if not plans:
            return "Nothing was finished here yet, and no facts describe a plan: there is nothing to suggest from."
        return f"Of {len(plans)} finished or described plans none is about {_cut(goal)!r}: say it in other words."
    best = chosen[0].match.plan
    more = f", one of {len(found)} that are about the same" if len(found) > 1 else ""
    closest = f'Closest is {best.id[:SOURCE]} "{best.name[:NAME]}"{more}'
    return f"{closest}; its tasks can be given to workflow_set_plan as they are."


def _cut(text: str) -> str:
    return shortened(on_one_line(text), TEXT)


CAUSES_ROOM = 4_800
"""Bytes for the events that are shown."""
EDGES = 40


def explain(unit: UnitOfWork, outcome_id: str, max_depth: int) -> dict[str, Any]:
    """What led to it, as the members of the answer."""
    named = functools.partial(task_name, unit)
    found = trace(unit, outcome_id, max_depth)
    outcome = _shown_event(found.outcome, found.task_id, named)
    shown, room = [], CAUSES_ROOM
    for one in sorted(found.ancestors, key=lambda one: (one.depth, -one.event.position)):
        entry = {**_shown_event(one.event, one.task_id, named), "depth": one.depth}
        room -= len(msgspec.json.encode(entry))
        if room < 0:
            break
        shown.append(entry)
    shown.sort(key=lambda entry: int(entry["seq"]))
    told = {entry["seq"] for entry in (*shown, outcome)}
    edges = [
        {"from": link.cause.position, "to": link.effect.position, "why": link.why}
        for link in found.links
        if {link.cause.position, link.effect.position} <= told
    ]
    return {
        "summary": summary_of(found, outcome["sentence"], named),
        "outcome": outcome,
        "ancestors": tuple(shown),
        "ancestors_total": len(found.ancestors),
        "edges": tuple(edges[-EDGES:]),
        "whole": found.is_whole and len(shown) == len(found.ancestors) and len(edges) <= EDGES,
    }


def _shown_event(event: Event, task_id: str | None, named: Named) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "seq": event.position,
        "ts": event.at_ms,
        "kind": event.kind,
        "by": event.actor,
        "sentence": sentence_of(event, task_id, named),
    }
    return {**shown, "task_id": task_id} if task_id is not None else shown
