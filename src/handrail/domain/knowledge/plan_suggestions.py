"""A plan made of what was done before: fragments of finished workflows and of plans that facts describe, for a similar
goal. Pure and deterministic: what was done goes in, ranked fragments come out. `past_plans.py` does the reading.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.dry_run.forecast import ForecastStep, in_order
from handrail.domain.pipeline.lessons import PastRun, similar_runs, terms
from handrail.domain.work.plan import find_cycle

COMMON = 5
"""How many of the words in common are listed."""


class PastTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it was done, or as facts describe it."""

    name: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    complexity: str | None = None
    files: tuple[str, ...] = ()
    was_skipped: bool = False
    took_ms: int | None = None
    attempts: int = 0
    trouble: tuple[str, ...] = ()
    """What went wrong, in the task's own words."""


class PastPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was carried out, or that facts describe."""

    id: str
    name: str
    text: str
    """What it was about."""
    kind: str
    """`workflow` or `facts`."""
    at: int
    sources: tuple[str, ...] = ()
    """The names by which a caller may prefer it."""


class RankedPlan(NamedTuple):
    """A past plan with a similar subject, how similar, and by which words."""

    plan: PastPlan
    score: float
    common: tuple[str, ...]
    is_preferred: bool


class Fragment(NamedTuple):
    """Tasks in an order in which they can be done; each waits only for others in the fragment."""

    tasks: list[PastTask]
    skipped: list[str]
    excluded: list[str]
    unknown: list[str]
    """What tasks waited for that was not in the plan."""
    circles: list[str]
    """Dependencies that were left out because they closed a cycle."""


def ranked(goal: str, plans: Sequence[PastPlan], preferred: Collection[str], limit: int) -> list[RankedPlan]:
    """The plans most similar to the goal, preferred ones first."""
    runs = [PastRun(spec_name=plan.name, request=plan.text) for plan in plans]
    by_run = {id(run): plan for run, plan in zip(runs, plans, strict=True)}
    asked = set(terms(goal))
    wanted = set(preferred)
    found = []
    for similar in similar_runs(goal, runs, limit=len(runs)):
        plan = by_run[id(similar.run)]
        common = sorted(asked & set(terms(f"{plan.name} {plan.text}")))[:COMMON]
        is_preferred = not wanted.isdisjoint((plan.id, plan.name, *plan.sources))
        found.append(RankedPlan(plan, similar.score, tuple(common), is_preferred))
    found.sort(key=lambda one: not one.is_preferred)  # a stable sort: each half stays ordered by similarity
    return found[:limit]


def fragment_of(tasks: Sequence[PastTask], exclude: Collection[str]) -> Fragment:
    """The tasks that are worth doing again. Whatever waited for an omitted task waits for that task's dependencies."""
    left_out = {name.casefold() for name in exclude}
    by_name = {task.name: task for task in tasks}
    skipped = [task.name for task in tasks if task.was_skipped]
    excluded = [task.name for task in tasks if not task.was_skipped and task.name.casefold() in left_out]
    gone = {*skipped, *excluded}
    unknown = list(dict.fromkeys(need for task in tasks for need in task.depends_on if need not in by_name))
    needs = {task.name: _needs(task.name, by_name, gone) for task in tasks if task.name not in gone}
    circles = _without_circles(needs)
    steps = [ForecastStep(name, name, tuple(waits)) for name, waits in needs.items()]
    ordered = [msgspec.structs.replace(by_name[step.id], depends_on=tuple(needs[step.id])) for step in in_order(steps)]
    return Fragment(ordered, skipped, excluded, unknown, circles)


def _needs(name: str, by_name: Mapping[str, PastTask], gone: Collection[str]) -> list[str]:
    """What a task waits for once some tasks are omitted."""
    found: dict[str, None] = {}
    seen = {name}
    pending = list(by_name[name].depends_on)
    while pending:
        need = pending.pop(0)
        if need in seen or need not in by_name:
            continue
        seen.add(need)
        if need in gone:
            pending += by_name[need].depends_on
        else:
            found[need] = None
    return list(found)


def _without_circles(needs: dict[str, list[str]]) -> list[str]:
    """Removes one dependency of each cycle, and names those removed."""
    taken = []
    while circle := find_cycle(needs):
        waiting, need = circle[-2], circle[-1]
        needs[waiting].remove(need)
        taken.append(f"{waiting} → {need}")
    return taken


def seen_in(fragments: Sequence[Sequence[PastTask]]) -> dict[str, int]:
    """In how many plans a task of each name was done; case does not matter."""
    counts: dict[str, int] = {}
    for tasks in fragments:
        for name in {task.name.casefold() for task in tasks if not task.was_skipped}:
            counts[name] = counts.get(name, 0) + 1
    return counts
