"""What people do to a run under way: nothing is lost by a stop, nothing is skipped by a step back, and a fork stands
for itself."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.gates.gate import Gate
from handrail.domain.pipeline.controls import Going, abandon_run, fork_run, name_in, pause_run, resume_run, with_until
from handrail.domain.pipeline.flow import Flow, read_flow
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import open_gate
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.pipeline.turns import Previous, RunRules, answer_gate, facts_of, report_phase, why_stopped
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, InvalidParams
from handrail.kernel.records import Query, UnitOfWork
from tests.domain.pipeline.bundled import bundled, nothing_else, own
from tests.domain.pipeline.driven import Driven

FULL = bundled("full")
AGAIN = ".specs/20260401-fix-auth-2"
JUST_ON = Going()


def pause(run: Driven) -> None:
    run.work(lambda unit: pause_run(unit, run.run))


def resume(run: Driven, going: Going = JUST_ON) -> PipelineRun:
    return run.work(lambda unit: resume_run(unit, run.run, going, facts_of(unit, run.run, run.rules)))


def set_status(run: Driven, status: str) -> None:
    """As `workflow_update_status` does it, from outside."""

    def moved(unit: UnitOfWork) -> None:
        workflow = unit.get(Workflow, run.run_id)
        assert workflow is not None
        PlanEdit(unit, workflow).record(f"workflow.{status}", status=status)

    run.work(moved)


def stopped(run: Driven) -> str | None:
    return run.work(lambda unit: why_stopped(unit, run.run))


def gates(run: Driven, status: str) -> Sequence[str]:
    """In the order they were asked in: ids count, and as texts gate_10 would come before gate_9."""
    conditions = (("workflow_id", run.run_id), ("status", status))
    found = run.work(lambda unit: unit.select(Gate, Query(conditions)))
    return [gate.question for gate in sorted(found, key=lambda gate: int(gate.id.partition("_")[2]))]


class TestPausing:
    def test_a_paused_run_stands_still_and_goes_on_with_the_same(self) -> None:
        run = Driven()
        before = run.turn().action
        pause(run)
        assert (stopped(run), run.status) == ("paused", "paused")
        assert run.turn().action.stopped == "paused"
        position = run.store.position()
        assert run.turn().action.stopped == "paused"
        assert run.store.position() == position, "standing still is no news"
        resume(run)
        assert (stopped(run), run.status) == (None, "in_progress")
        assert run.turn().action == before

    def test_one_that_has_not_begun_is_paused_too(self) -> None:
        run = Driven()
        pause(run)
        assert (run.turn().action.stopped, run.status) == ("paused", "paused")
        resume(run)
        assert run.turn().action.phase == "phase-1"

    def test_what_an_agent_did_meanwhile_is_taken(self) -> None:
        run = Driven()
        run.produce(run.turn().action)
        pause(run)
        turn = run.turn(complete=True, tokens=7)
        assert (turn.action.stopped, turn.action.phase) == ("paused", "phase-2")
        assert turn.reported is not None
        assert (run.state.done, run.run.log[0]["tokens"]) == (["phase-1"], 7)

    def test_also_when_somebody_asked_in_between(self) -> None:
        """An orchestrator that was started again asks first; its agent still works."""
        run = Driven()
        action = run.turn().action
        pause(run)
        run.turn()
        run.produce(action)
        assert run.turn(complete=True, tokens=7).reported is not None
        assert run.state.done == ["phase-1"]

    def test_also_by_a_report_alone_which_does_not_let_it_go_on(self) -> None:
        run = Driven()
        run.produce(run.turn().action)
        set_status(run, "paused")
        run.work(lambda unit: report_phase(unit, run.run, run.files, "phase-1", Previous(True), rules=RunRules()))
        assert (run.state.done, run.status, stopped(run)) == (["phase-1"], "paused", "paused")
        assert run.turn().action.stopped == "paused"

    def test_a_report_does_not_stop_what_was_let_go_on(self) -> None:
        run = Driven()
        run.produce(run.turn().action)
        pause(run)
        run.turn()
        set_status(run, "in_progress")
        run.work(lambda unit: report_phase(unit, run.run, run.files, "phase-1", Previous(True), rules=RunRules()))
        assert (run.status, stopped(run)) == ("in_progress", None)
        assert run.turn().action.phase == "phase-2"

    def test_its_workflow_pauses_it_and_lets_it_go_on(self) -> None:
        run = Driven()
        run.turn()
        set_status(run, "paused")
        assert stopped(run) == "paused"
        assert run.turn().action.stopped == "paused"
        set_status(run, "in_progress")
        assert stopped(run) is None
        assert run.turn().action.phase == "phase-1"

    def test_a_question_stays_open_and_can_be_answered_meanwhile(self) -> None:
        run = Driven()
        run.go(lambda action: action.type == "checkpoint")
        pause(run)
        assert run.turn().action.stopped == "paused"

        def approved(unit: UnitOfWork) -> None:
            gate = open_gate(unit, run.run_id)
            assert gate is not None
            answer_gate(unit, gate, "approve", None, run.files)

        run.work(approved)
        assert (stopped(run), "checkpoint-a" in run.state.done) == ("paused", True)
        resume(run)
        assert run.turn().action.phase == "phase-4"

    def test_an_orchestrators_answer_is_taken_meanwhile_too(self) -> None:
        run = Driven()
        run.go(lambda action: action.type == "checkpoint")
        pause(run)
        run.turn()
        assert run.turn(answer="approve").action.stopped == "paused"
        assert "checkpoint-a" in run.state.done

    def test_what_is_over_is_not_paused_and_does_not_go_on(self) -> None:
        run = Driven()
        run.go()
        for does in (pause, resume):
            with pytest.raises(IllegalTransition, match="completed already"):
                does(run)

    def test_giving_up_a_paused_run_leaves_nothing_open(self) -> None:
        run = Driven()
        run.go(lambda action: action.type == "checkpoint")
        pause(run)
        run.work(lambda unit: abandon_run(unit, run.run))
        assert (run.status, run.state.ended, run.state.stopped) == ("abandoned", "abandoned", None)
        assert gates(run, "open") == []


class TestUntil:
    def test_a_run_goes_as_far_as_it_was_to_go_and_then_further(self) -> None:
        run = Driven()
        resume(run, Going(until="phase-2"))
        assert run.go().stopped == "until"
        assert (run.state.done, run.status, stopped(run)) == (["phase-1", "phase-2"], "paused", "until")
        resume(run, Going(until="phase-3"))
        assert run.go().phase == "phase-3b"
        resume(run)
        assert run.go().stopped is None
        assert run.state.ended == "completed"

    def test_pausing_and_going_on_keeps_where_it_stops(self) -> None:
        run = Driven()
        resume(run, Going(until="phase-2"))
        run.turn()
        pause(run)
        resume(run)
        assert run.go().stopped == "until"

    def test_the_end_is_no_phase(self) -> None:
        assert with_until(FULL, {"until": "phase-1", "hard_tokens": 5}, "end") == {"hard_tokens": 5}
        with pytest.raises(InvalidParams, match="phase-99"):
            with_until(FULL, {}, "phase-99")

    def test_letting_its_workflow_go_on_does_not_lead_past_it(self) -> None:
        run = Driven()
        resume(run, Going(until="phase-1"))
        run.go()
        set_status(run, "in_progress")
        assert run.turn().action.stopped == "until"


class TestSpending:
    def test_a_soft_limit_warns_and_a_hard_one_stops_before_the_next_agent(self) -> None:
        run = Driven(limits={"soft_tokens": 150, "hard_tokens": 250})
        assert run.turn().warning == ""
        assert run.do(run.turn().action).warning == ""
        assert "200 of 150 tokens" in run.do(run.seen[-1]).warning
        turn = run.do(run.seen[-1])
        assert (turn.action.stopped, turn.action.phase) == ("budget", "phase-3b")
        assert (stopped(run), run.status) == ("budget", "paused")

    def test_it_goes_on_once_more_is_allowed_and_not_before(self) -> None:
        run = Driven(limits={"hard_tokens": 100})
        assert run.go().stopped == "budget"
        resume(run)
        assert run.turn().action.stopped == "budget"
        set_status(run, "in_progress")
        assert run.turn().action.stopped == "budget"
        resume(run, Going(limits={"hard_tokens": 10_000}))
        assert run.go().stopped is None

    def test_what_costs_nothing_is_still_asked_and_done(self) -> None:
        run = Driven(limits={"hard_tokens": 400})
        action = run.go(lambda action: action.type == "checkpoint")
        assert action.gate == "checkpoint-a"
        assert run.do(action).action.stopped == "budget"

    def test_money_goes_by_the_prices_of_today(self) -> None:
        run = Driven(limits={"hard_money": 1}, rules=RunRules(prices={"*": 10_000}))
        run.turn()
        assert run.do(run.seen[-1]).action.stopped == "budget"
        run.rules = RunRules(prices={"*": 1})
        assert run.turn().action.phase == "phase-2"

    @pytest.mark.parametrize("limits", [{"hard_token": 1}, {"hard_tokens": -1}, {"until": 5}])
    def test_what_is_no_limit_is_refused(self, limits: dict[str, float]) -> None:
        with pytest.raises(InvalidParams):
            resume(Driven(), Going(limits=limits))


class TestGoingBack:
    def test_a_phase_is_done_again_with_all_that_follow(self) -> None:
        run = Driven()
        run.go(lambda action: action.phase == "phase-5")
        resume(run, Going(again_from="phase-3"))
        assert run.turn().action.phase == "phase-3"
        assert "is what it was before" in run.turn(complete=True).warning, "what lies there is not written anew"
        run.seen.clear()
        run.go()
        assert run.state.ended == "completed"
        assert list(dict.fromkeys(run.phases()))[:4] == [
            "phase-3",
            "phase-3b",
            "checkpoint-a",
            "phase-4",
        ]

    def test_reviews_of_tasks_are_done_again(self) -> None:
        run = Driven()
        run.go(lambda action: action.phase == "phase-7")
        resume(run, Going(again_from="phase-6"))
        action = run.turn().action
        assert (action.phase, action.tasks) == ("phase-6", [1, 3])
        assert run.go().stopped is None

    def test_nobody_is_sent_further_than_the_run_has_come(self) -> None:
        run = Driven()
        run.go(lambda action: action.gate == "checkpoint-a")
        with pytest.raises(InvalidParams, match="phases are not skipped"):
            resume(run, Going(again_from="phase-4"))

    def test_the_question_that_was_open_is_withdrawn(self) -> None:
        run = Driven()
        run.go(lambda action: action.gate == "checkpoint-a")
        resume(run, Going(again_from="phase-3"))
        assert (gates(run, "open"), gates(run, "withdrawn")) == ([], ["checkpoint-a"])
        assert run.go(lambda action: action.gate == "checkpoint-a").type == "checkpoint"

    def test_a_question_about_what_is_gone_is_withdrawn_by_itself(self) -> None:
        run = Driven()
        run.go(lambda action: action.gate == "checkpoint-b")
        run.files["tasks.md"] = "no list at all"
        assert run.turn().action.phase == "phase-4"
        assert gates(run, "open") == []


@pytest.fixture(scope="module")
def completed() -> Driven:
    run = Driven()
    run.go()
    assert run.state.ended == "completed"
    return run


def fork(run: Driven, phase: str) -> Driven:
    """The fork, in a workspace of its own with the documents that go along."""
    made = run.work(lambda unit: fork_run(unit, run.run, run.files, phase, AGAIN))
    forked = Driven(begun=False)
    forked.store, forked.run_id, forked.version = run.store, made.run.id, run.version
    forked.files = {name: run.files[name] for name in made.documents}
    return forked


class TestForking:
    @pytest.mark.parametrize("phase", [phase.id for phase in FULL.phases])
    def test_a_fork_from_every_phase_comes_to_its_end(self, completed: Driven, phase: str) -> None:
        forked = fork(completed, phase)
        facts = completed.run.facts(humans_decide=False)
        order = [one.id for one in FULL.phases]
        forked.go()
        assert forked.state.ended == "completed"
        due = {
            one.id
            for one in FULL.phases[order.index(phase) :]
            if not is_left_out(one, forked.state, FULL, facts) or one.id in forked.state.done
        }
        assert set(forked.phases()) == due, "all that follow are done, nothing before them"
        assert forked.run.forked_from == completed.run_id

    def test_the_run_it_is_a_fork_of_stays_as_it_is(self, completed: Driven) -> None:
        before = completed.run
        fork(completed, "phase-3").go()
        assert completed.run == before

    def test_documents_of_phases_that_are_done_again_stay_behind(self, completed: Driven) -> None:
        assert set(fork(completed, "phase-4").files) == {
            "request.md",
            "analysis.md",
            "investigation.md",
            "design.md",
            "review-design.md",
        }

    def test_the_same_text_is_no_old_one_in_a_fork(self, completed: Driven) -> None:
        forked = fork(completed, "phase-1")
        forked.turn()
        forked.files["analysis.md"] = completed.files["analysis.md"]
        assert forked.turn(complete=True).reported is not None

    def test_gates_are_asked_again_from_where_it_begins(self, completed: Driven) -> None:
        forked = fork(completed, "phase-3")
        forked.go()
        assert gates(forked, "answered") == ["checkpoint-a", "checkpoint-b", "task-2"]

    def test_no_fork_leads_past_a_gate_that_waits(self) -> None:
        run = Driven()
        run.go(lambda action: action.gate == "checkpoint-a")
        with pytest.raises(InvalidParams, match="phases are not skipped"):
            fork(run, "phase-4")
        run.work(lambda unit: abandon_run(unit, run.run))
        with pytest.raises(InvalidParams, match="phases are not skipped"):
            fork(run, "phase-4")
        assert fork(run, "checkpoint-a").turn().action.gate == "checkpoint-a"

    def test_documents_that_are_gone_are_missed(self, completed: Driven) -> None:
        run = Driven(begun=False)
        run.store, run.run_id = completed.store, completed.run_id
        run.files = {name: text for name, text in completed.files.items() if name != "design.md"}
        with pytest.raises(InvalidParams, match=r"design\.md, which phase-3 wrote"):
            fork(run, "phase-5")
        assert fork(run, "phase-3").turn().action.phase == "phase-3"

    def test_it_may_spend_as_much_as_a_run_and_goes_to_the_end(self) -> None:
        run = Driven(limits={"hard_tokens": 150})
        resume(run, Going(until="phase-1"))
        run.go()
        forked = fork(run, "phase-1")
        assert forked.run.limits == {"hard_tokens": 150}
        assert forked.run.log == []
        assert forked.go().stopped == "budget"

    def test_a_flow_whose_list_nobody_writes_keeps_its_tasks(self) -> None:
        """Without them its reviews would have nothing to judge, and pass."""
        run = Driven(read_flow(own(), nothing_else))
        run.go()
        forked = fork(run, "look")
        action = forked.turn().action
        assert (action.phase, action.tasks) == ("look", [1])
        assert forked.go().stopped is None


@pytest.mark.parametrize(
    ("workspace", "name"),
    [
        (".specs/20260401-fix-auth", "fix-auth"),
        (".specs/mine", "mine"),
        (".specs/my-run", "my-run"),
        (".specs/20260401", "20260401"),
        (".specs/20260401-", "20260401-"),
    ],
)
def test_a_run_is_called_by_its_folder_without_the_day(workspace: str, name: str) -> None:
    assert name_in(workspace) == name


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_a_run_that_people_steer_all_the_time_still_ends_and_skips_nothing(data: st.DataObject) -> None:
    run = Driven(flow_drawn(data))
    action = run.turn().action
    for step in range(400):
        if action.type == "done" and action.stopped is None:
            break
        does = (
            data.draw(st.sampled_from(["do", "do", "do", "pause", "workflow", "until", "back"])) if step < 60 else "do"
        )
        if action.stopped is not None:
            resume(run, Going(until=data.draw(st.sampled_from([None, "end"]))))
            assert stopped(run) is None
            action = run.turn().action
        elif does == "pause":
            pause(run)
            action = run.turn().action
            assert action.stopped == "paused"
        elif does == "workflow":
            set_status(run, "paused")
            assert run.turn().action.stopped == "paused"
            set_status(run, "in_progress")
            assert run.turn().action == msgspec.structs.replace(action, opened_by=None)
        elif does == "until":
            place = data.draw(st.sampled_from([phase.id for phase in run.run.flow_followed().phases]))
            resume(run, Going(until=place))
            action = run.turn().action
        elif does == "back":
            reached = [*run.state.done, action.phase]
            resume(run, Going(again_from=data.draw(st.sampled_from(reached))))
            action = run.turn().action
        else:
            action = run.do(action).action
    flow, state = run.run.flow_followed(), run.state
    assert (state.ended, run.status) == ("completed", "completed")
    due = {phase.id for phase in flow.phases if not is_left_out(phase, state, flow, run.run.facts(humans_decide=False))}
    assert set(state.done) == due
    assert run.store.verify() == []
    assert gates(run, "open") == []


def flow_drawn(data: st.DataObject) -> Flow:
    return data.draw(st.sampled_from([bundled("light"), bundled("standard"), FULL]))
