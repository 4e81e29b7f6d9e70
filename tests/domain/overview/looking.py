"""A unit of work that counts the questions it passes on, and short ways to look at a desk's store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from handrail.domain.gates.gate import ask_for_review
from handrail.domain.work.task import Task
from handrail.kernel.records import UnitOfWork
from tests.toolsets.plan.planned import TESTER, Desk

ResultT = TypeVar("ResultT")
QUESTIONS = ("get", "select", "count", "count_by", "newest", "events", "feed", "last_event")


class Counting:
    """Looks like the unit it wraps."""

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name in QUESTIONS:
            self.asked[name] += 1
        return getattr(self._unit, name)


def look(desk: Desk, reading: Callable[[Any], ResultT]) -> ResultT:
    return desk.store.run(TESTER, reading)


def counted(desk: Desk, reading: Callable[[Any], ResultT]) -> tuple[ResultT, Counter[str]]:
    """What was read, and how many questions of each kind it took."""

    def work(unit: Any) -> tuple[ResultT, Counter[str]]:
        counting = Counting(unit)
        return reading(counting), counting.asked

    return desk.store.run(TESTER, work)


def asked_to_review(desk: Desk, task_id: str, question: str = "Is it safe?") -> str:
    """A review of a task that is asked for; its id."""

    def work(unit: Any) -> str:
        gate = ask_for_review(unit, unit.get(Task, task_id), question)
        unit.record("checkpoint.added", gate)
        return gate.id

    return desk.store.run(TESTER, work)
