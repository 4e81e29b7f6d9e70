"""The audit of a crew's history complains about every kind of wrong history, and about none that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handrail.kernel.ledger import Change, Event
from tests.process.crew_audit import Life, audit, counts

WORKFLOW = "wf"
NEEDS = {"first": [], "second": ["first"]}
LEASE_MS = 100


class History:
    """A ledger and what its agents said, written step by step."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.lives: dict[str, Life] = {}
        self._marks = 0
        made = tuple(Change("task", name, {"name": name, "status": "pending"}, None) for name in NEEDS)
        self._add("setup", "workflow.extended", *made)

    def _add(self, actor: str, kind: str, *changes: Change, data: dict[str, Any] | None = None) -> None:
        seq = sum(event.stream == WORKFLOW for event in self.events) + 1
        place = len(self.events) + 1
        self.events.append(Event(WORKFLOW, seq, place, kind, actor, "test", place * 1000, data or {}, changes, ""))

    def _say(self, agent: str, **line: Any) -> None:
        self.lives[agent].said.append(line)

    def come(self, agent: str, *, lost: list[str] | None = None, lost_before: set[str] | None = None) -> Life:
        """A life of an agent begins."""
        place = len(self.events) + 1
        self.events.append(Event(agent, 1, place, "agent.registered", agent, "test", place * 1000, {}, (), ""))
        number = self.lives[agent].number + 1 if agent in self.lives else 1
        self.lives[agent] = Life(agent, number, agent, lost_before=lost_before or set())
        self._say(agent, here=agent, lost=lost or [])
        return self.lives[agent]

    def claim(
        self, agent: str, task: str, fence: int, *, taken_from: str | None = None, left_ms: int = -1, acked: bool = True
    ) -> None:
        at_ms = (len(self.events) + 1) * 1000
        before = {"expires_ms": at_ms + left_ms} if fence > 1 else None
        lease = Change("lease", task, {"holder": agent, "fence": fence}, before)
        data = {"agent_id": agent, "fence": fence, **({"taken_from": taken_from} if taken_from else {})}
        self._add(agent, "task.claimed", lease, data=data)
        if acked:
            self._say(agent, did="claim", task=task, fence=fence, mark=None, taken_from=taken_from)

    def start(self, agent: str, task: str) -> None:
        self._add(agent, "task.in_progress", Change("task", task, {"status": "in_progress"}, {"status": "pending"}))

    def note(self, agent: str, task: str, fence: int, *, acked: bool = True) -> str:
        mark = self._mark(agent, fence)
        row = {"task_id": task, "summary": mark}
        self._add(agent, "checkpoint.added", Change("checkpoint", f"cp {mark}", row, None))
        if acked:
            self._say(agent, did="checkpoint", task=task, fence=fence, mark=mark)
        return mark

    def finish(self, agent: str, task: str, fence: int, *, acked: bool = True) -> None:
        mark = self._mark(agent, fence)
        freed = Change("task", "second", {"unmet": 0}, {"unmet": 1})
        done = Change("task", task, {"status": "completed", "outcome": mark}, {"status": "in_progress"})
        self._add(agent, "task.completed", freed, done)
        if acked:
            self._say(agent, did="completed", task=task, fence=fence, mark=mark)

    def refuse(self, agent: str, task: str, mark: str, *, unknown: bool = False) -> None:
        code = "STORE_UNUSABLE" if unknown else "CLAIM_HELD"
        self._say(agent, refused=code, doing="checkpoint", task=task, mark=mark, fence=1, unknown=unknown)

    def _mark(self, agent: str, fence: int) -> str:
        self._marks += 1
        return f"{agent}/1/{fence}/{self._marks}"

    def do(self, agent: str, task: str, fence: int = 1) -> None:
        self.claim(agent, task, fence)
        self.start(agent, task)
        self.note(agent, task, fence)
        self.finish(agent, task, fence)

    def problems(self, *earlier: Life) -> list[str]:
        return audit(self.events, WORKFLOW, NEEDS, [*earlier, *self.lives.values()])


@pytest.fixture
def history() -> History:
    """Two agents have come."""
    begun = History()
    begun.come("ann")
    begun.come("ben")
    return begun


def test_a_history_in_which_nothing_happened_to_anybody_is_right(history: History) -> None:
    history.do("ann", "first")
    history.do("ben", "second")
    assert history.problems() == []


def test_a_takeover_after_the_lease_is_right_and_counted(history: History) -> None:
    history.claim("ann", "first", 1)
    history.start("ann", "first")
    history.note("ann", "first", 1)
    history.claim("ben", "first", 2, taken_from="ann")
    history.refuse("ann", "first", "ann/1/1/99")
    history.finish("ben", "first", 2)
    history.do("ann", "second")
    assert history.problems() == []
    came_to = counts(history.events, WORKFLOW, list(history.lives.values()))
    assert (came_to.tasks, came_to.claims, came_to.takeovers, came_to.held) == (2, 3, 1, 1)


def test_one_who_claims_anew_what_it_had_itself_takes_it_from_nobody(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ann", "first", 2)
    history.finish("ann", "first", 2)
    history.do("ann", "second")
    assert history.problems() == []


def done_twice(history: History) -> None:
    history.do("ann", "first")
    history.finish("ann", "first", 1)
    history.do("ben", "second")


def never_done(history: History) -> None:
    history.do("ann", "first")


def two_under_one_fence(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 1, taken_from="ann")
    history.finish("ben", "first", 1)
    history.do("ben", "second")


def a_fence_left_out(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 3, taken_from="ann")
    history.finish("ben", "first", 3)
    history.do("ben", "second")


def taken_too_early(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 2, taken_from="ann", left_ms=7)
    history.finish("ben", "first", 2)
    history.do("ben", "second")


def taken_in_silence(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 2)
    history.finish("ben", "first", 2)
    history.do("ben", "second")


def the_former_holder_writes(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 2, taken_from="ann")
    history.note("ann", "first", 1)
    history.finish("ben", "first", 2)
    history.do("ben", "second")


def the_former_holder_completes(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ben", "first", 2, taken_from="ann")
    history.finish("ann", "first", 1)
    history.do("ben", "second")


def an_old_process_of_the_holder_writes(history: History) -> None:
    history.claim("ann", "first", 1)
    history.claim("ann", "first", 2)
    history.note("ann", "first", 1)
    history.finish("ann", "first", 2)
    history.do("ben", "second")


def somebody_writes_without_a_claim(history: History) -> None:
    history.note("ben", "first", 1)
    history.do("ann", "first")
    history.do("ben", "second")


def a_word_after_the_end(history: History) -> None:
    history.do("ann", "first")
    history.note("ann", "first", 1)
    history.do("ben", "second")


def claimed_too_early(history: History) -> None:
    history.claim("ben", "second", 1)
    history.do("ann", "first")
    history.finish("ben", "second", 1)


def an_acknowledged_write_is_lost(history: History) -> None:
    history.do("ann", "first")
    history.do("ben", "second")
    history._say("ann", did="checkpoint", task="first", fence=1, mark="ann/1/1/99")


def somebody_was_told_of_anothers_claim(history: History) -> None:
    history.do("ann", "first")
    history._say("ben", did="claim", task="first", fence=1, mark=None)
    history.do("ben", "second")


def a_refused_write_is_there(history: History) -> None:
    history.claim("ann", "first", 1)
    history.refuse("ann", "first", history.note("ann", "first", 1, acked=False))
    history.finish("ann", "first", 1)
    history.do("ben", "second")


def a_write_nobody_was_told_of(history: History) -> None:
    history.claim("ann", "first", 1)
    history.note("ann", "first", 1, acked=False)
    history.finish("ann", "first", 1)
    history.do("ben", "second")


def a_loss_that_is_kept_from_its_loser(history: History) -> None:
    history.do("ann", "first")
    history.do("ben", "second")
    history.come("ann", lost_before={"second"})


def an_event_of_no_task(history: History) -> None:
    history.do("ann", "first")
    history._add("ben", "task.something")
    history.do("ben", "second")


def a_gap(history: History) -> None:
    history.do("ann", "first")
    history.do("ben", "second")
    del history.events[3]


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (done_twice, "first (first) was completed 2 times"),
        (never_done, "second (second) was completed 0 times"),
        (two_under_one_fence, "is under fence 1, not 2"),
        (a_fence_left_out, "is under fence 3, not 2"),
        (taken_too_early, "took a claim that had 7 ms to run"),
        (taken_in_silence, "was taken from None, but ann had it"),
        (the_former_holder_writes, "checkpoint.added of first by ann while ben had it"),
        (the_former_holder_completes, "task.completed of first by ann while ben had it"),
        (an_old_process_of_the_holder_writes, "was meant for fence 1, and fence 2 was there"),
        (somebody_writes_without_a_claim, "by ben while nobody had it"),
        (a_word_after_the_end, "comes after the task was done"),
        (claimed_too_early, "task.claimed of second by ben before first was done"),
        (an_acknowledged_write_is_lost, "lost: ann was told of its checkpoint of first; it is there 0 times"),
        (somebody_was_told_of_anothers_claim, "lost: ben was told of its claim of first; it is there 0 times"),
        (a_refused_write_is_there, "(CLAIM_HELD), and it is there"),
        (a_write_nobody_was_told_of, "was never acknowledged, and its process lived on"),
        (a_loss_that_is_kept_from_its_loser, "was not told that it had lost second"),
        (an_event_of_no_task, "nobody knows which task it is about"),
        (a_gap, "stands where"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_wrong_history_is_found(history: History, wrong: Callable[[History], None], complaint: str) -> None:
    wrong(history)
    problems = history.problems()
    assert any(complaint in problem for problem in problems), problems


def test_a_plan_that_is_not_the_ledgers_is_found(history: History) -> None:
    assert audit(history.events, WORKFLOW, {"first": []}, []) == ["the plan has 1 tasks, the ledger 2"]


def test_the_last_write_before_a_kill_may_be_unheard(history: History) -> None:
    history.claim("ann", "first", 1)
    history.note("ann", "first", 1, acked=False)
    dead = history.lives["ann"]
    dead.killed = True
    history.claim("ben", "first", 2, taken_from="ann")
    history.finish("ben", "first", 2)
    history.come("ann", lost=["first"], lost_before={"first"})
    history.do("ann", "second")
    assert history.problems(dead) == []


def test_a_write_long_before_a_kill_may_not_be_unheard(history: History) -> None:
    history.claim("ann", "first", 1)
    history.note("ann", "first", 1, acked=False)
    history.finish("ann", "first", 1)
    history.lives["ann"].killed = True
    history.do("ben", "second")
    assert len(history.problems()) == 1


def test_one_kill_explains_one_unheard_write(history: History) -> None:
    history.claim("ann", "first", 1, acked=False)
    history.finish("ann", "first", 1, acked=False)
    history.lives["ann"].killed = True
    history.do("ben", "second")
    assert any("never acknowledged" in problem for problem in history.problems())


def test_a_write_whose_answer_was_lost_on_the_way_may_be_there(history: History) -> None:
    history.claim("ann", "first", 1)
    history.refuse("ann", "first", history.note("ann", "first", 1, acked=False), unknown=True)
    history.finish("ann", "first", 1)
    history.do("ben", "second")
    assert history.problems() == []
