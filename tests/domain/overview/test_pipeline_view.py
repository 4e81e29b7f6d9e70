"""A run as phases: where it is, who let what pass, how long each took, what was spent."""

from __future__ import annotations

from pathlib import Path

from handrail.domain.overview.pipeline import PhaseView, PipelineView, pipeline_view
from handrail.domain.pipeline.controls import abandon_run, pause_run
from handrail.domain.pipeline.turns import RunRules
from tests.domain.overview.crewed import MINUTE
from tests.domain.pipeline.driven import Driven
from tests.toolsets.pipeline.test_tools_control import Deskbound, at_phase
from tests.toolsets.plan.correspondents import PERSON


def view(run: Deskbound, rules: RunRules | None = None) -> PipelineView:
    found = run.desk.store.run(PERSON, lambda unit: pipeline_view(unit, run.workflow, rules or RunRules()))
    assert found is not None
    return found


def phases(found: PipelineView) -> dict[str, PhaseView]:
    return {phase.id: phase for phase in found.phases}


def test_a_run_that_is_under_way(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.next()
    begin = run.desk.clock.now_ms()
    run.desk.clock.advance(3 * MINUTE)
    found = view(run)
    first = phases(found)["phase-1"]
    assert (found.phase, found.under_way, found.ended, found.stopped) == ("phase-1", True, None, None)
    assert (first.state, first.started_at, first.ended_at, first.elapsed_ms) == ("now", begin, None, 3 * MINUTE)
    assert {phase.state for phase in found.phases[1:]} <= {"next", "skipped"}
    assert found.branch is not None
    assert found.workspace == run.workspace
    assert found.spent is None, "nobody reported anything"


def test_time_is_that_of_the_phase_and_spending_that_of_the_run(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    action = run.next()
    run.desk.clock.advance(2 * MINUTE)
    run.do(action)
    run.desk.clock.advance(MINUTE)
    found = view(run, RunRules(prices={"*": 10_000.0}, limits={"soft_tokens": 50.0, "hard_tokens": 900.0}))
    first, second = found.phases[0], phases(found)["phase-2"]
    assert (first.state, first.elapsed_ms, first.tries, first.tokens) == ("done", 2 * MINUTE, 1, 100)
    assert first.ended_at is not None
    assert (second.state, second.elapsed_ms) == ("now", MINUTE)
    assert found.spent is not None
    assert (found.spent.tokens, found.spent.money, found.budget) == (100, 1.0, {"tokens": 900.0})
    assert found.warning == "100 of 50 tokens are spent"
    without_prices = view(run).spent
    assert without_prices is not None
    assert without_prices.money is None


def test_a_gate_waits_until_somebody_answers(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    asked = run.run(lambda action: action["type"] == "checkpoint")
    run.desk.clock.advance(5 * MINUTE)
    waiting = view(run)
    gate = phases(waiting)[asked["name"]]
    assert (gate.gate, gate.state, gate.answer) == (True, "waits", None)
    assert (gate.elapsed_ms, gate.waiting_ms) == (None, 5 * MINUTE), "it took nothing yet: it waits"
    assert waiting.gate_id is not None
    run.do(asked)
    gate = phases(view(run))[asked["name"]]
    assert (gate.state, gate.answer, gate.answered_by, gate.elapsed_ms) == (
        "done",
        asked["options"][0],
        "tester",
        5 * MINUTE,
    )


def test_standing_still_is_no_work(tmp_path: Path) -> None:
    run = Deskbound(tmp_path, text="Fix the auth timeout --until=phase-1")
    run.run(at_phase("phase-1"))
    action = run.seen[-1]
    run.desk.clock.advance(MINUTE)
    run.do(action)
    run.desk.clock.advance(60 * MINUTE)
    stopped = view(run)
    assert (stopped.stopped, stopped.until, stopped.phase) == ("until", "phase-1", "phase-2")
    assert stopped.go_on_with == f"handrail pipeline resume {run.workspace}"
    assert phases(stopped)["phase-2"].state == "waits"
    assert (phases(stopped)["phase-1"].elapsed_ms, phases(stopped)["phase-2"].elapsed_ms) == (MINUTE, None)


def test_a_review_that_sends_work_back_is_tried_twice(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.written["review-design.md"] = ["# R\n\n## Verdict: REVISE\n", "# R2\n\n## Verdict: APPROVE\n"]
    run.run(lambda action: action["type"] == "done")
    sent_back = [phase for phase in view(run).phases if phase.sent_back]
    assert [(phase.kind, phase.tries, phase.state) for phase in sent_back] == [("review", 2, "done")]


def test_where_a_run_was_given_up(tmp_path: Path) -> None:
    driven = Driven()
    driven.work(lambda unit: abandon_run(unit, driven.run))
    found = driven.work(lambda unit: pipeline_view(unit, driven.run_id, RunRules()))
    assert found is not None
    assert found.ended == "abandoned"
    assert found.phases[0].state == "failed"
    assert {phase.state for phase in found.phases[1:]} == {"skipped"}


def test_a_run_that_is_paused_says_what_lets_it_go_on() -> None:
    driven = Driven()
    driven.work(lambda unit: pause_run(unit, driven.run))
    found = driven.work(lambda unit: pipeline_view(unit, driven.run_id, RunRules()))
    assert found is not None
    assert found.stopped == "paused"
    assert found.go_on_with is not None


def test_a_plan_is_no_run(tmp_path: Path) -> None:
    assert Driven().work(lambda unit: pipeline_view(unit, "wf_9", RunRules())) is None
