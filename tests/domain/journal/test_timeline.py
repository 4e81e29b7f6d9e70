"""The timeline has every moment once, in order, whatever an agent does and however often it tries."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.gates.gate import Gate, close_review
from handrail.domain.journal.journal import Beginning, Ending, Intent, OutcomeClaims, begin, complete, note
from handrail.domain.journal.ports import Snapshot
from handrail.domain.journal.timeline import TimelineMoment, task_timeline, workflow_timeline
from handrail.domain.pipeline.ownership import check_task
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import move_task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query, UnitOfWork, where
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store

AGENT = Actor("agent", "mcp")


class Work:
    """A workflow in memory, and what was done to it."""

    def __init__(self) -> None:
        self.clock = FixedClock(1_000_000)
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())
        self.expected: list[tuple[str, str]] = [("created", "Do it")]
        self.began: dict[str, list[str]] = {}
        workflow = Workflow(
            id="wf_1",
            name="Work",
            status="ready",
            source_type="prompt",
            source_ref=None,
            source_content="Do it",
            repository_path=None,
            plan=None,
            max_parallel_tasks=1,
            auto_create_workspaces=False,
            created_at=self.clock.now_ms(),
            updated_at=self.clock.now_ms(),
        )
        self.store.run(AGENT, lambda unit: unit.record("workflow.created", workflow))

    def do(self, action: str, name: str) -> None:
        """Does something to the task of this name, if it can be done; with a word nobody used before."""
        self.clock.advance(1000)
        word = f"{action} {self.clock.now_ms()}"
        for kind in self.store.run(AGENT, lambda unit: self._done(unit, action, name, word)):
            self.expected.append((kind, word))
            if kind == "began":
                self.began.setdefault(name, []).append(word)

    def _done(self, unit: UnitOfWork, action: str, name: str, word: str) -> list[str]:
        found = unit.select(Task, where(workflow_id="wf_1", name=name))
        task = found[0] if found else None
        is_open = task is not None and task.status == "in_progress"
        if action == "begin" and (task is None or task.status == "failed"):
            return self._began(unit, name, word)
        if task is None or not is_open or action == "begin":
            return []
        if action in ("complete", "fail"):
            status = "success" if action == "complete" else "failed"
            complete(unit, task, Ending(None, None, []), OutcomeClaims(status, {"summary": word}, {}, []), check_task)
            return ["ended"]
        if action == "skip the journal":
            move_task(unit, task, "completed", outcome=word, may_finish=check_task)
            return ["ended"]
        if action == "close":
            return self._closed(unit, word)
        return self._noted(unit, task, action, word)

    @staticmethod
    def _began(unit: UnitOfWork, name: str, word: str) -> list[str]:
        snapshot = Snapshot(id=unit.new_id("snap"), kind="git", root="/tree", taken_at=unit.now_ms())
        workflow = unit.get(Workflow, "wf_1")
        assert workflow is not None
        begin(unit, workflow, Beginning(snapshot), Intent(name, word, [], None), None)
        return ["began"]

    @staticmethod
    def _noted(unit: UnitOfWork, task: Task, action: str, word: str) -> list[str]:
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            "milestone": ("progress", {"milestone": True, "progress": 50}),
            "decision": ("decision", {"question": word}),
            "issue": ("error", {"type": "other"}),
        }
        kind, detail = kinds["issue" if action == "review" else action]
        note(unit, task, kind, word, detail, review=word if action == "review" else None)
        return ["issue", "asked"] if action == "review" else [action]

    @staticmethod
    def _closed(unit: UnitOfWork, word: str) -> list[str]:
        waiting = unit.select(Gate, Query((("status", "open"),), ("created_at",), 1))
        for gate in waiting:
            close_review(unit, gate, Actor("ann", "cli"), word, None)
        return ["answered"] * len(waiting)

    def moments(self, limit: int = 1000) -> list[TimelineMoment]:
        def look(unit: UnitOfWork) -> list[TimelineMoment]:
            workflow = unit.get(Workflow, "wf_1")
            assert workflow is not None
            return workflow_timeline(unit, workflow, limit).moments

        return self.store.run(AGENT, look)


actions = st.sampled_from(
    ["begin", "begin", "milestone", "decision", "issue", "review", "close", "complete", "fail", "skip the journal"]
)


def told(moments: list[TimelineMoment]) -> list[tuple[str, str]]:
    return [(moment.kind, moment.text) for moment in moments]


def expected(work: Work) -> list[tuple[str, str]]:
    """What was done. A task begins once; what takes it up again is a note on it."""
    firsts = {words[0] for words in work.began.values()}
    return [
        (kind, word) if kind != "began" or word in firsts else ("note", f"Taken up again: {word}")
        for kind, word in work.expected
    ]


@given(st.lists(st.tuples(actions, st.sampled_from(["a", "b"])), max_size=30))
def test_every_moment_is_told_once_and_in_order(done: list[tuple[str, str]]) -> None:
    work = Work()
    for action, name in done:
        work.do(action, name)
    moments = work.moments()
    assert told(moments) == expected(work)
    assert told(work.moments(limit=5)) == told(moments)[-5:]


@given(st.lists(st.tuples(actions, st.sampled_from(["a", "b"])), max_size=20))
def test_a_tasks_timeline_is_its_part_of_the_workflows(done: list[tuple[str, str]]) -> None:
    work = Work()
    for action, name in done:
        work.do(action, name)
    whole = work.moments()

    def parts(unit: UnitOfWork) -> dict[str, list[TimelineMoment]]:
        return {task.id: task_timeline(unit, task, 1000).moments for task in unit.select(Task, Query())}

    for key, own in work.store.run(AGENT, parts).items():
        assert own == [moment for moment in whole if moment.task_id == key]
