"""Forecasts a plan: which rounds would run, how long it would take, what determines that, and what can never run. Pure:
steps in, a forecast out; no store is read and nothing is changed.

One simulation answers both questions. With each step's own duration it tells when the last one ends; with the same
duration for all it gives the rounds. The steps come from `steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from handrail.domain.work.plan import find_cycle

LOOKED_AT = 50
"""Ready steps tried for one free slot. If all of them conflict with something running, the slot stays empty for now."""
CIRCLES = 20
"""Cycles that are named individually."""
NAMED = 6
"""Steps of a cycle that its sentence names."""

Apart = Callable[[str, str], bool]
"""Whether two steps must not run at the same time."""


class ForecastStep(NamedTuple):
    """One thing still to be done."""

    id: str
    name: str
    needs: tuple[str, ...] = ()
    """Ids of the unfinished steps it waits for."""
    work_ms: int = 0
    """How long it takes from now."""
    rank: tuple[Any, ...] = ()
    """Of two ready steps the lower rank goes first. The id breaks ties."""
    status: str = "pending"
    under_way: bool = False
    """True if it is already being worked on: it needs no free slot."""
    held: str = ""
    """Why it will not run by itself, in words; empty if it will."""


class StepSpan(NamedTuple):
    """When a step starts and ends, in milliseconds from now or in rounds."""

    begins: int
    ends: int


class PlanForecast(NamedTuple):
    """The forecast for a plan."""

    waves: list[list[ForecastStep]]
    """Rounds: the steps of each can start together once the previous rounds are done."""
    spans: Mapping[str, StepSpan]
    ends_ms: int
    work_ms: int
    """The total work, done one step after the other."""
    path: list[ForecastStep]
    """The critical path: the chain of steps that no number of workers can shorten."""
    path_ms: int
    stuck: Mapping[str, str]
    """Steps that never run, and why."""


def foresee(steps: Sequence[ForecastStep], at_once: int, apart: Apart = lambda _one, _other: False) -> PlanForecast:
    """What would run, with at most `at_once` steps at the same time."""
    stuck = stuck_steps(steps)
    able = [step for step in steps if step.id not in stuck]
    by_id = {step.id: step for step in able}
    rounds = go_through(able, at_once, apart, equal=True)
    waves: dict[int, list[ForecastStep]] = {}
    for key, span in rounds.items():
        waves.setdefault(span.begins, []).append(by_id[key])
    spans = go_through(able, at_once, apart)
    path = longest_path(able)
    return PlanForecast(
        waves=[waves[number] for number in sorted(waves)],
        spans=spans,
        ends_ms=max((span.ends for span in spans.values()), default=0),
        work_ms=sum(step.work_ms for step in able),
        path=path,
        path_ms=sum(step.work_ms for step in path),
        stuck=stuck,
    )


def go_through(
    steps: Sequence[ForecastStep], at_once: int, apart: Apart, *, equal: bool = False
) -> dict[str, StepSpan]:
    """When each step runs, in starting order: as soon as its needs are done, a slot is free, and nothing it must be
    kept apart from is running. The steps need only each other, without cycles."""
    by_id = {step.id: step for step in steps}
    waiting = {step.id: len(set(step.needs)) for step in steps}
    dependents = _dependents(steps)
    spans: dict[str, StepSpan] = {}
    running: list[tuple[int, str]] = []
    ready = [(step.rank, step.id) for step in steps if not waiting[step.id]]
    heapify(ready)

    def begin(key: str, now: int) -> None:
        ends = now + (1 if equal else max(0, by_id[key].work_ms))
        spans[key] = StepSpan(now, ends)
        heappush(running, (ends, key))

    now = 0
    for _, key in sorted(ready):
        if by_id[key].under_way:
            begin(key, now)
    ready = [entry for entry in ready if entry[1] not in spans]
    heapify(ready)
    while ready or running:
        aside: list[tuple[tuple[Any, ...], str]] = []
        while ready and len(running) < max(1, at_once) and len(aside) < LOOKED_AT:
            entry = heappop(ready)
            if any(apart(entry[1], other) for _, other in running):
                aside.append(entry)
            else:
                begin(entry[1], now)
        for entry in aside:
            heappush(ready, entry)
        now = running[0][0]
        while running and running[0][0] == now:
            _, done = heappop(running)
            for key in dependents.get(done, ()):
                waiting[key] -= 1
                if not waiting[key]:
                    heappush(ready, (by_id[key].rank, key))
    return spans


def longest_path(steps: Sequence[ForecastStep]) -> list[ForecastStep]:
    """The chain of steps, each waiting for the one before, that takes longest; among equals, the one with more steps,
    then the one that comes first in `steps`."""
    by_id = {step.id: step for step in steps}
    before: dict[str, str | None] = {}
    length: dict[str, tuple[int, int, int]] = {}
    place = {step.id: number for number, step in enumerate(steps)}
    for step in in_order(steps):
        last = max(step.needs, key=length.__getitem__, default=None)
        ms, count, _ = length[last] if last is not None else (0, 0, 0)
        before[step.id], length[step.id] = last, (ms + step.work_ms, count + 1, -place[step.id])
    end = max(length, key=length.__getitem__, default=None)
    path: list[ForecastStep] = []
    while end is not None:
        path.append(by_id[end])
        end = before[end]
    return path[::-1]


def in_order(steps: Sequence[ForecastStep]) -> list[ForecastStep]:
    """The steps, each after those it waits for; steps in or behind a cycle are left out."""
    by_id = {step.id: step for step in steps}
    waiting = {step.id: len(set(step.needs)) for step in steps}
    dependents = _dependents(steps)
    level = [key for key, count in waiting.items() if not count]
    found: list[ForecastStep] = []
    for key in level:
        found.append(by_id[key])
        for other in dependents.get(key, ()):
            waiting[other] -= 1
            if not waiting[other]:
                level.append(other)
    return found


# -- what can never run -----------------------------------------------------------------------------------------------


def stuck_steps(steps: Sequence[ForecastStep]) -> dict[str, str]:
    """The steps that never run, and why: each is held, is in a cycle, or waits for such a step."""
    by_id = {step.id: step for step in steps}
    dependents = _dependents(steps)
    stuck = {step.id: step.held for step in steps if step.held}
    _mark_waiting(dependents, by_id, list(stuck), stuck)
    able = {step.id for step in in_order([step for step in steps if step.id not in stuck])}
    for _ in range(CIRCLES):
        left = {step.id: step.needs for step in steps if step.id not in able and step.id not in stuck}
        circle = find_cycle(left)
        if not circle:
            break
        names = [by_id[key].name for key in circle]
        shown = names if len(names) <= NAMED else [*names[: NAMED - 1], "…", names[-1]]
        members = circle[:-1]
        stuck |= dict.fromkeys(members, f"it waits for itself: {' → '.join(shown)}")
        _mark_waiting(dependents, by_id, members, stuck)
    for step in steps:
        if step.id not in able and step.id not in stuck:
            stuck[step.id] = "it is in or behind a circle of steps that wait for each other"
    return stuck


def _mark_waiting(
    dependents: Mapping[str, Sequence[str]],
    by_id: Mapping[str, ForecastStep],
    causes: Iterable[str],
    stuck: dict[str, str],
) -> None:
    """Marks everything that waits behind these, nearest first, with the root cause of its waiting."""
    level = [(key, key) for key in causes]
    for key, cause in level:
        for other in dependents.get(key, ()):
            if other not in stuck:
                between = "" if key == cause else f', over "{by_id[key].name}"'
                stuck[other] = f'it waits for "{by_id[cause].name}", which cannot run{between}'
                level.append((other, cause))


def _dependents(steps: Iterable[ForecastStep]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for step in steps:
        for need in dict.fromkeys(step.needs):
            found.setdefault(need, []).append(step.id)
    return found
