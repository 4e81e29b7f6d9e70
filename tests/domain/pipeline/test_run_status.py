"""Why a run stands still, what lets it go on, and whether letting it go on would help."""

from __future__ import annotations

from typing import Any

from handrail.domain.pipeline.controls import Going, resume_run
from handrail.domain.pipeline.run_status import Stop, stop_ahead
from handrail.domain.pipeline.turns import RunRules
from handrail.kernel.records import UnitOfWork
from tests.domain.pipeline.driven import WORKSPACE, Driven

RESUME = f"handrail pipeline resume {WORKSPACE}"


def ahead(run: Driven, **going: Any) -> Stop | None:
    """Why the run would stop again, once a person let it go on so."""

    def resumed(unit: UnitOfWork) -> Stop | None:
        kept = resume_run(unit, run.run, Going(**going), run.run.facts(humans_decide=False))
        return stop_ahead(unit, kept, run.files, run.rules)

    return run.work(resumed)


def test_what_helps_against_a_budget_names_every_limit_that_is_reached() -> None:
    run = Driven(limits={"hard_tokens": 100, "hard_minutes": 1, "hard_money": 5})
    run.go()
    stop = ahead(run)
    assert stop is not None
    assert (stop.reason, stop.before_phase) == ("budget", "phase-2")
    assert stop.command == f"{RESUME} --limit hard_tokens=N --limit hard_minutes=N (N above 100, 1)"
    assert stop.go_on_with == f"a person runs: {stop.command}"


def test_a_run_that_may_spend_more_does_not_stop_again() -> None:
    run = Driven(limits={"hard_tokens": 100})
    run.go()
    assert ahead(run, limits={"hard_tokens": 100}) is not None
    assert ahead(run, limits={"hard_tokens": 101}) is None


def test_a_run_that_is_to_go_no_further_stops_again() -> None:
    run = Driven()
    run.go(lambda action: action.phase == "phase-3")
    stop = ahead(run, until="phase-2")
    assert stop is not None
    assert (stop.reason, stop.go_on_with) == ("until", f"pipeline_next_action with until, or: {RESUME}")
    assert ahead(run, until="end") is None


def test_a_limit_that_is_set_later_holds_for_runs_under_way() -> None:
    run = Driven()
    run.do(run.turn().action)
    run.rules = RunRules(limits={"hard_tokens": 50, "soft_tokens": 10})
    turn = run.turn()
    assert (turn.action.stopped, "100 of 10 tokens" in turn.warning) == ("budget", True)


def test_what_a_person_allowed_one_run_goes_before_what_holds_for_all() -> None:
    run = Driven(rules=RunRules(limits={"hard_tokens": 50}))
    run.do(run.turn().action)
    assert run.turn().action.stopped == "budget"
    assert ahead(run, limits={"hard_tokens": 5000}) is None
    assert run.turn().action.phase == "phase-2"
