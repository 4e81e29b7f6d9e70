"""Why things stand where they stand: the cause is found, the sentence says it, and what it offers is legal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.domain.gates.gate import Gate
from handrail.domain.overview.explanations import Explanation, explain_task, explain_workflow, why_before
from handrail.domain.pipeline.ownership import check_task
from handrail.domain.work.apply_plan import lay_plan
from handrail.domain.work.blockers import LOOKED_AT, behind, can_move, legal_moves
from handrail.domain.work.plan import PlanTask
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import FINISHED, TASK_MACHINE, Dependency, Task, dependency
from handrail.domain.work.transitions import move_task
from handrail.domain.work.workflow import Tally, Workflow, empty_tally
from handrail.kernel.clock import FixedClock, spoken_time
from handrail.kernel.errors import InvalidPlan, Refusal
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query, where
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.store.records import task as task_record
from tests.store.records import workflow as workflow_record

ACTOR = Actor("tester", "test")
MINUTE = 60_000


class Plan:
    """One workflow in a store, moved and asked about by the names of its tasks."""

    def __init__(self, *drafts: PlanTask, at_once: int = 3, engine: Engine | None = None) -> None:
        self.clock = FixedClock()
        self.ids = CountingIds()
        self.store = Store(engine or MemoryEngine(), clock=self.clock, ids=self.ids)
        now = self.clock.now_ms()
        begun = workflow_record("wf_1", max_parallel_tasks=at_once, created_at=now, updated_at=now)
        self.store.run(ACTOR, lambda unit: unit.record("workflow.created", begun))
        if drafts:
            self.store.run(ACTOR, lambda unit: self._lay(unit, drafts))

    @staticmethod
    def _lay(unit: Unit, drafts: tuple[PlanTask, ...]) -> None:
        edit = PlanEdit(unit, _workflow(unit))
        lay_plan(unit, edit, drafts)
        edit.record("workflow.planned", status="ready")

    def move(self, name: str, *statuses: str, error: str = "it broke", outcome: str = "well") -> None:
        for status in statuses:
            self._move(name, status, error, outcome)

    def _move(self, name: str, status: str, error: str, outcome: str) -> None:
        told: dict[str, Any] = {"error": error, "outcome": outcome, "may_finish": check_task}
        self.store.run(ACTOR, lambda unit: move_task(unit, _task(unit, name), status, **told))

    def touch(self, name: str) -> None:
        """A sign of life, as a checkpoint gives one."""

        def work(unit: Unit) -> None:
            edit = PlanEdit(unit, _workflow(unit))
            edit.change(_task(unit, name))
            edit.record("task.touched")

        self.store.run(ACTOR, work)

    def set_workflow(self, status: str) -> None:
        self.store.run(ACTOR, lambda unit: PlanEdit(unit, _workflow(unit)).record(f"workflow.{status}", status=status))

    def ask(self, question: str, task: str | None = None, kind: str = "decision") -> None:
        def work(unit: Unit) -> None:
            gate = Gate(
                id=unit.new_id("gate"),
                workflow_id="wf_1",
                task_id=_task(unit, task).id if task else None,
                status="open",
                question=question,
                options=["approve", "reject"],
                content_hash="",
                answer=None,
                feedback=None,
                answered_by=None,
                channel=None,
                created_at=unit.now_ms(),
                answered_at=None,
                kind=kind,
            )
            unit.record("gate.opened", gate)

        self.store.run(ACTOR, work)

    @contextlib.contextmanager
    def looking(self) -> Iterator[Unit]:
        """A unit that is never committed."""
        with self.store.engine.reading() as reader:
            yield Unit(reader, actor=ACTOR, now_ms=self.clock.now_ms(), ids=self.ids)

    def why(self, name: str | None = None) -> Explanation:
        with self.looking() as unit:
            return explain_workflow(unit, _workflow(unit)) if name is None else explain_task(unit, _task(unit, name))


def _workflow(unit: Unit) -> Workflow:
    found = unit.get(Workflow, "wf_1")
    assert found is not None
    return found


def _task(unit: Unit, name: str) -> Task:
    (found,) = unit.select(Task, where(name=name))
    return found


def draft(name: str, *needs: str, parent: str | None = None, **more: Any) -> PlanTask:
    return PlanTask(name, "", more.pop("sequence", 1), depends_on=list(needs), parent=parent, **more)


def chain() -> Plan:
    return Plan(draft("test"), draft("build", "test"), draft("deploy", "build"))


# -- one task ---------------------------------------------------------------------------------------------------------


def test_a_task_behind_a_failed_one_says_when_and_how_that_failed_and_what_to_do() -> None:
    plan = Plan(draft("test"), draft("deploy", "test"))
    plan.move("test", "in_progress", "failed", error="the proxy\n hangs")
    plan.clock.advance(3 * MINUTE)
    found = plan.why("deploy")
    assert found.sentence == (
        '"deploy" waits for "test", which failed 3 minutes ago ("the proxy hangs"): retry it or skip it.'
    )
    assert [cause.name for cause in found.causes] == ["test"]
    assert found.path == ("deploy", "test")


def test_the_cause_is_the_task_that_can_move_not_the_next_one() -> None:
    assert chain().why("deploy").sentence == (
        '"deploy" waits for "build", which waits for "test"; "test" is ready: start it.'
    )


def test_a_long_chain_is_told_in_short() -> None:
    plan = Plan(*(draft(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(7)))
    assert (
        plan.why("t6").sentence
        == '"t6" waits for "t5", the last of 6 tasks in a row; the first, "t0", is ready: start it.'
    )


def test_what_needs_somebody_is_named_before_what_moves_by_itself() -> None:
    plan = Plan(draft("a"), draft("b"), draft("c"), draft("d"), draft("e"), draft("all", "a", "b", "c", "d", "e"))
    plan.move("a", "in_progress")
    plan.move("b", "in_progress", "paused")
    plan.move("c", "in_progress", "failed")
    found = plan.why("all")
    assert [cause.name for cause in found.causes] == ["c", "b", "d", "e", "a"]
    assert found.sentence.endswith('it also waits for "b" (paused), "d" (ready), "e" (ready) and 1 more.')


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ((), '"a" is ready: start it.'),
        (("planning",), '"a" has been in planning for 2 minutes: start it when its plan is ready.'),
        (("in_progress",), '"a" has been in progress for 2 minutes; nothing blocks it.'),
        (("in_progress", "paused"), '"a" has been paused for 2 minutes: resume it.'),
        (("in_progress", "failed"), '"a" failed 2 minutes ago ("it broke"): retry it or skip it.'),
        (
            ("in_progress", "failed", "in_progress", "failed"),
            '"a" failed 2 minutes ago on attempt 2 ("it broke"): retry it or skip it.',
        ),
        (("in_progress", "completed"), '"a" was completed 2 minutes ago: "well".'),
        (("skipped",), '"a" was skipped 2 minutes ago: "well".'),
    ],
)
def test_every_state_has_its_sentence(statuses: tuple[str, ...], says: str) -> None:
    plan = Plan(draft("a"))
    plan.move("a", *statuses)
    plan.clock.advance(2 * MINUTE)
    assert plan.why("a").sentence == says


def test_what_ends_with_a_full_stop_gets_no_second_one() -> None:
    plan = Plan(draft("a"))
    plan.move("a", "in_progress", "completed", outcome="It is done.")
    assert plan.why("a").sentence == '"a" was completed a moment ago: "It is done."'


def test_a_running_task_tells_when_it_last_gave_a_sign() -> None:
    plan = Plan(draft("a"), draft("b", "a"))
    plan.move("a", "in_progress")
    plan.clock.advance(10 * MINUTE)
    plan.touch("a")
    plan.clock.advance(2 * MINUTE)
    assert plan.why("b").sentence == (
        '"b" waits for "a", which has been in progress for 12 minutes (last heard from 2 minutes ago); wait for it.'
    )


def test_a_ready_task_with_no_free_place_waits_for_one() -> None:
    plan = Plan(draft("a"), draft("b"), at_once=1)
    plan.move("a", "in_progress")
    assert plan.why("b").sentence == '"b" is ready, but the plan is for 1 task at a time and 1 is already running.'


def test_what_waits_for_a_task_without_a_free_place_is_not_told_to_start_it() -> None:
    plan = Plan(draft("a"), draft("b"), draft("c", "b"), at_once=1)
    plan.move("a", "in_progress")
    assert plan.why("c").sentence == (
        '"c" waits for "b", which is ready, but the plan is for 1 task at a time and 1 is already running.'
    )


def test_a_failed_task_without_a_free_place_can_be_skipped_but_not_retried_yet() -> None:
    plan = Plan(draft("a"), draft("b"), draft("c", "b"), at_once=1)
    plan.move("b", "in_progress", "failed")
    plan.move("a", "in_progress")
    full = "but the plan is for 1 task at a time and 1 is already running"
    then = "skip it, or retry it when a running one has ended"
    assert plan.why("c").sentence == f'"c" waits for "b", which failed a moment ago ("it broke"), {full}: {then}.'
    assert plan.why("b").sentence == f'"b" failed a moment ago ("it broke"), {full}: {then}.'


def test_a_finished_task_whose_end_is_unknown_was_ended_when_it_last_changed() -> None:
    plan = Plan(draft("a"))
    plan.move("a", "skipped", outcome="")

    def forget_the_end(unit: Unit) -> None:
        unit.record("task.changed", msgspec.structs.replace(_task(unit, "a"), finished_at=None))

    plan.store.run(ACTOR, forget_the_end)
    plan.clock.advance(5 * MINUTE)
    assert plan.why("a").sentence == '"a" was skipped 5 minutes ago.'


def test_a_task_waits_for_its_open_subtasks() -> None:
    plan = Plan(draft("whole"), draft("part", parent="whole"), draft("after", "whole"))
    assert plan.why("whole").sentence == '"whole" waits for its subtask "part", which is ready: start it.'
    assert plan.why("after").sentence == (
        '"after" waits for "whole", which waits for its subtask "part"; "part" is ready: start it.'
    )
    plan.move("whole", "in_progress")
    assert [cause.name for cause in plan.why("after").causes] == ["part"]
    plan.move("part", "skipped")
    assert [cause.name for cause in plan.why("after").causes] == ["whole"]


def test_a_failed_task_with_open_subtasks_can_be_retried_but_not_skipped() -> None:
    plan = Plan(draft("whole"), draft("part", parent="whole"))
    plan.move("whole", "in_progress", "failed")
    found = plan.why("whole")
    assert found.sentence.endswith(": retry it.")
    assert found.causes[0].moves == ("pending", "in_progress")


@pytest.mark.parametrize(("status", "words"), [("paused", "is paused and waits"), ("failed", "failed and waits")])
def test_what_was_begun_elsewhere_may_wait_as_well(status: str, words: str) -> None:
    """An import brings a task in any state: to resume it is refused while it waits."""
    plan = chain()

    def imported(unit: Unit) -> None:
        edit = PlanEdit(unit, _workflow(unit))
        edit.change(_task(unit, "build"), status=status)
        edit.record("task.imported")

    plan.store.run(ACTOR, imported)
    assert plan.why("build").sentence == f'"build" {words} for "test", which is ready: start it.'
    assert [cause.name for cause in plan.why("deploy").causes] == ["test"]
    assert plan.why().sentence == '"Ship it" is idle; "test" is ready: start it.'


def test_silent_work_that_nobody_claimed_is_not_to_be_released() -> None:
    plan = chain()
    plan.move("test", "in_progress")
    plan.clock.advance(60 * MINUTE)
    assert plan.why("test").sentence.endswith(": check whether it is still being worked on, or go on with it.")


def test_in_a_paused_workflow_resuming_comes_first() -> None:
    plan = chain()
    plan.move("test", "in_progress", "completed")
    plan.set_workflow("paused")
    assert plan.why("deploy").sentence == (
        '"deploy" waits for "build", which is ready, but workflow "Ship it" is paused: resume the workflow first.'
    )


def test_an_ended_workflow_holds_its_tasks_for_good() -> None:
    plan = chain()
    plan.set_workflow("abandoned")
    plan.clock.advance(5 * 60 * MINUTE)
    found = plan.why("deploy")
    assert found.sentence == '"deploy" will not move: workflow "Ship it" was abandoned 5 hours ago.'
    assert found.causes == ()


def test_a_question_to_a_person_is_a_cause() -> None:
    plan = chain()
    plan.move("test", "in_progress")
    plan.ask("Is the\nschema right?", "test")
    plan.clock.advance(4 * MINUTE)
    assert plan.why("deploy").sentence == (
        '"deploy" waits for "build", which waits for "test"; "test" waits for a person to answer '
        '"Is the schema right?" (asked 4 minutes ago).'
    )


def test_a_review_holds_nothing_up() -> None:
    plan = chain()
    plan.move("test", "in_progress")
    before = plan.why("deploy").sentence
    plan.ask("Look at the schema, please", "test", kind="review")
    assert plan.why("deploy").sentence == before


def test_long_texts_are_cut() -> None:
    plan = Plan(draft("n" * 200))
    plan.move("n" * 200, "in_progress", "failed", error="e" * 5000)
    assert len(plan.why("n" * 200).sentence) < 350


# -- one workflow -----------------------------------------------------------------------------------------------------


def test_a_workflow_without_tasks_needs_a_plan() -> None:
    assert Plan().why().sentence == '"Ship it" has no tasks: give it a plan.'


def test_a_workflow_in_which_nothing_runs_says_what_would_move_it() -> None:
    plan = Plan(draft("a"), draft("b"), draft("c", "a"))
    assert plan.why().sentence == '"Ship it" is idle; "a" is ready: start it; also "b" (ready).'
    plan.move("b", "in_progress", "failed")
    assert plan.why().sentence.startswith('"Ship it" is idle; "b" failed a moment ago')


def test_a_workflow_that_moves_says_so_and_what_does_not() -> None:
    plan = Plan(draft("a"), draft("b"))
    plan.move("a", "in_progress")
    assert plan.why().sentence == ('"Ship it" is under way: "a" has been in progress for a moment; also "b" (ready).')
    plan.move("b", "in_progress", "failed")
    assert plan.why().sentence.startswith('"Ship it" is under way, but "b" failed')


def test_many_that_are_ready_are_not_miscounted() -> None:
    plan = Plan(*(draft(f"t{n}", sequence=n) for n in range(30)))
    assert plan.why().sentence.endswith('"t1" (ready), "t2" (ready), "t3" (ready) and others.')


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("paused", "is paused: resume it."),
        ("failed", "failed: set it in progress again or abandon it."),
        ("completed", "was completed a moment ago with 3 of 3 tasks open."),
        ("abandoned", "was abandoned a moment ago with 3 of 3 tasks open."),
    ],
)
def test_a_workflow_that_stands_by_itself_says_so(status: str, says: str) -> None:
    plan = chain()
    plan.set_workflow(status)
    assert plan.why().sentence == f'"Ship it" {says}'


def test_a_workflow_whose_tasks_are_finished_can_be_completed() -> None:
    plan = Plan(draft("a"))
    plan.move("a", "skipped")
    assert plan.why().sentence.endswith("has no open tasks left: set it in progress, then complete it.")
    plan.set_workflow("in_progress")
    assert plan.why().sentence == '"Ship it" has no open tasks left: complete it.'


def test_a_question_about_the_workflow_comes_first() -> None:
    plan = chain()
    plan.ask("Go on?")
    assert plan.why().sentence == '"Ship it" waits for a person to answer "Go on?" (asked a moment ago).'


# -- large plans ------------------------------------------------------------------------------------------------------


def long_chain(folder: Path, length: int, *, heads: int) -> Plan:
    """A chain of tasks behind the first of some that are ready, put in as records."""
    plan = Plan(engine=SqliteEngine(folder / "long.db", version="0"))
    tasks = [task_record(f"task_{n}", sequence=n, unmet=int(n > 0)) for n in range(length)]
    others = [task_record(f"head_{n}", sequence=n) for n in range(1, heads)]
    links = [dependency("wf_1", f"task_{n}", f"task_{n - 1}") for n in range(1, length)]

    def work(unit: Unit) -> None:
        tally = empty_tally("wf_1").after(come=[*tasks, *others])
        unit.record(
            "plan.made", msgspec.structs.replace(_workflow(unit), status="ready"), tally, *tasks, *others, *links
        )

    plan.store.run(ACTOR, work)
    return plan


def by_id(plan: Plan, key: str) -> Explanation:
    with plan.looking() as unit:
        task = unit.get(Task, key)
        assert task is not None
        return explain_task(unit, task)


def test_behind_more_tasks_than_are_looked_at_the_only_one_that_can_move_is_the_cause(tmp_path: Path) -> None:
    plan = long_chain(tmp_path, LOOKED_AT + 100, heads=1)
    found = by_id(plan, f"task_{LOOKED_AT + 99}")
    assert found.sentence.endswith('waits for more than 2,000 tasks in a row; the first, "task_0", is ready: start it.')
    assert not found.whole
    nearer = by_id(plan, f"task_{LOOKED_AT - 100}")
    assert nearer.whole
    assert nearer.path[-1] == "task_0"


def test_with_several_that_can_move_it_does_not_claim_to_know(tmp_path: Path) -> None:
    found = by_id(long_chain(tmp_path, LOOKED_AT + 100, heads=3), f"task_{LOOKED_AT + 99}")
    assert 'of the tasks that can move, the most urgent, "' in found.sentence
    assert not found.whole


def test_a_plan_that_cannot_move_is_said_to_be_stuck() -> None:
    plan = Plan()
    tasks = [task_record("task_1", unmet=1), task_record("task_2", unmet=1)]
    links = [dependency("wf_1", "task_1", "task_2"), dependency("wf_1", "task_2", "task_1")]
    tally: Tally = empty_tally("wf_1").after(come=tasks)
    plan.store.run(ACTOR, lambda unit: unit.record("plan.made", _workflow(unit), tally, *tasks, *links))
    assert by_id(plan, "task_1").sentence.endswith("waits for tasks that cannot move either: replan what is left.")
    assert "none of its tasks can move" in plan.why().sentence


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "says"),
    [
        (-5, "a moment"),
        (999, "a moment"),
        (1000, "1 second"),
        (59_999, "59 seconds"),
        (MINUTE, "1 minute"),
        (60 * MINUTE, "1 hour"),
        (47 * 60 * MINUTE, "47 hours"),
        (48 * 60 * MINUTE, "2 days"),
    ],
)
def test_time_is_told_in_one_unit(ms: int, says: str) -> None:
    assert spoken_time(ms) == says


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ({"priority": 5}, {}, "priority 5, the next has 0"),
        ({"sequence": 1}, {"sequence": 2}, "earlier in the plan"),
        ({"unblocks": 4}, {"unblocks": 1}, "unblocks 4, the next 1"),
        ({}, {}, ""),
    ],
)
def test_the_first_difference_says_why_a_task_comes_before_the_next(
    first: dict[str, Any], second: dict[str, Any], says: str
) -> None:
    assert why_before(task_record(**first), task_record(**second)) == says


# -- every plan -------------------------------------------------------------------------------------------------------


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of a few tasks with dependencies and subtasks, some of it worked on."""
    drafts: list[PlanTask] = []
    for number in range(draw(st.integers(1, 8))):
        earlier = [one.name for one in drafts]
        needs = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        parent = draw(st.none() | st.sampled_from(earlier)) if earlier else None
        drafts.append(draft(f"t{number}", *needs, parent=parent, sequence=draw(st.integers(0, 3))))
    try:
        plan = Plan(*drafts)
    except InvalidPlan:
        assume(False)
        raise
    for _ in range(draw(st.integers(0, 12))):
        with plan.looking() as unit:
            workflow = _workflow(unit)
            moves = [(task.name, to) for task in unit.select(Task, Query()) for to in legal_moves(task, workflow)]
        if moves:
            plan.move(*draw(st.sampled_from(moves)))
    return plan


def really_behind(unit: Unit, task: Task) -> set[str]:
    """The causes found the long way, from states alone."""
    needs = [unit.get(Task, link.needs_id) for link in unit.select(Dependency, where(task_id=task.id))]
    open_needs = [need for need in needs if need is not None and not need.is_finished]
    parts = [part for part in unit.select(Task, where(parent_task_id=task.id)) if not part.is_finished]
    if task.status == "pending" and open_needs:
        return {name for need in open_needs for name in really_behind(unit, need)}
    if task.status in ("pending", "planning", "in_progress") and parts:
        return {name for part in parts for name in really_behind(unit, part)}
    return {task.name}


@given(plans())
def test_the_causes_are_just_the_tasks_that_can_move_behind_one(plan: Plan) -> None:
    with plan.looking() as unit:
        for task in unit.select(Task, Query()):
            if task.is_finished or can_move(task):
                continue
            found = behind(unit, task)
            assert {cause.name for cause in found.causes} == really_behind(unit, task)
            assert found.whole
            assert explain_task(unit, task).path[0] == task.name


@given(plans())
def test_every_sentence_is_one_line_about_its_thing_and_names_a_legal_move(plan: Plan) -> None:
    with plan.looking() as unit:
        explained = [explain_task(unit, task) for task in unit.select(Task, Query())]
        explained.append(explain_workflow(unit, _workflow(unit)))
    for found in explained:
        assert found.sentence.startswith(f'"{found.name}" ')
        assert found.sentence.endswith(".")
        assert "\n" not in found.sentence
        assert all(cause.moves for cause in found.causes)
        assert found.causes or found.status in FINISHED or found.id == "wf_1"


@given(plans(), st.sampled_from(["ready", "in_progress", "paused", "failed", "completed", "abandoned"]))
def test_the_moves_that_are_called_legal_are_those_that_are_accepted(plan: Plan, status: str) -> None:
    plan.set_workflow(status)
    with plan.looking() as unit:
        tasks = unit.select(Task, Query())
        legal = {(task.name, to) for task in tasks for to in legal_moves(task, _workflow(unit))}
    assert legal == {(task.name, to) for task in tasks for to in TASK_MACHINE.states if accepts(plan, task, to)}


def accepts(plan: Plan, task: Task, to: str) -> bool:
    with plan.looking() as unit:
        try:
            move_task(unit, task, to, error="e", outcome="o", may_finish=check_task)
        except Refusal:
            return False
    return True


def test_a_workflow_whose_plan_in_words_was_only_half_begun_is_not_told_to_end() -> None:
    plan = Plan(draft("schema"))
    steps = [{"step": name, "goal": f"{name} works"} for name in ("schema", "api", "page")]
    planned = {"summary": "", "approach": "", "steps": steps}
    plan.store.run(
        ACTOR, lambda unit: unit.record("workflow.planned", msgspec.structs.replace(_workflow(unit), plan=planned))
    )
    plan.move("schema", "skipped")
    assert plan.why().sentence == (
        '"Ship it" has no open tasks, but nobody has started step "api: api works" and 1 more of its plan: '
        "start it, or end the workflow."
    )
