"""Beginning a run later than at its beginning, and what earlier runs tell a new one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.pipeline.budget import Cost
from handrail.domain.pipeline.flow import read_flow
from handrail.domain.pipeline.request import Flags
from handrail.domain.pipeline.start import (
    GIVEN,
    check_phase,
    check_until,
    costs_of,
    finished_runs,
    own_limits,
    state_from,
)
from handrail.domain.pipeline.state import Facts, RunState
from handrail.domain.pipeline.turns import RunRules
from handrail.kernel.errors import InvalidParams, InvalidPlan
from tests.domain.pipeline.bundled import bundled, nothing_else, own
from tests.domain.pipeline.driven import REPOSITORY, TASKS, Driven

FULL = bundled("full")
ASKED = Facts()
PEOPLE = Facts(humans_decide=True)


def written(*names: str) -> dict[str, str]:
    """Documents as a run of this repository would have left them: reviews pass."""
    return {"request.md": "Do it", **{name: document(name) for name in names}}


def document(name: str) -> str:
    if name == "tasks.md":
        return TASKS
    of_task = name.removesuffix(".md").rpartition("-")[2].isdigit()
    verdict = "PASS" if of_task or name in ("verdict.md", "look-1.md") else "APPROVE"
    judges = name.startswith(("review-", "verdict", "look-"))
    return f"## {name}\n\n## Verdict: {verdict}\n" if judges else f"## {name}\n"


DESIGNED = written("analysis.md", "investigation.md", "design.md", "review-design.md")
PLANNED = {**DESIGNED, **written("tasks.md", "review-tasks.md")}
DONE = {**PLANNED, **written("impl-1.md", "impl-3.md", "review-1.md", "review-3.md")}


def test_a_run_begins_at_the_beginning_where_nothing_else_is_said() -> None:
    assert state_from(FULL, ASKED, {}, None) == RunState()


def test_what_comes_before_is_taken_as_done_and_its_documents_as_written() -> None:
    state = state_from(FULL, ASKED, DESIGNED, "phase-4")
    assert state.done == state.given == ["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"]
    assert set(state.judged) == {"analysis.md", "investigation.md", "design.md", "review-design.md"}
    assert state.approved == [], "nobody read that review, so --auto opens nothing by it"


def test_what_a_flow_leaves_out_need_not_be_there() -> None:
    state = state_from(bundled("light"), ASKED, written("analysis.md", "design.md"), "phase-4")
    assert state.done == ["phase-1", "phase-3", "checkpoint-a"]


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_what_is_not_there_is_named(text: str | None) -> None:
    files = {name: one for name, one in DESIGNED.items() if name != "design.md"}
    if text is not None:
        files["design.md"] = text
    with pytest.raises(InvalidParams, match=r"must hold design\.md"):
        state_from(FULL, ASKED, files, "phase-4")


def test_a_phase_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidParams, match=r"phase-33.*phase-3"):
        state_from(FULL, ASKED, {}, "phase-33")
    check_phase(FULL, None)


def test_tasks_are_read_from_the_list_that_lies_there() -> None:
    state = state_from(FULL, ASKED, PLANNED, "phase-5")
    assert [task.number for task in state.tasks] == [1, 2, 3]
    assert not any(task.implemented for task in state.tasks)
    with pytest.raises(InvalidPlan):
        state_from(FULL, ASKED, {**PLANNED, "tasks.md": "## Task 1: a\ndepends_on: [9]\n"}, "phase-5")


def test_tasks_that_were_done_before_are_still_to_be_reviewed() -> None:
    state = state_from(FULL, ASKED, DONE, "phase-6")
    assert [(task.implemented, task.verdict) for task in state.tasks] == [(True, None), (True, GIVEN), (True, None)]
    assert "phase-5" in state.done


def test_tasks_that_were_reviewed_before_are_over() -> None:
    state = state_from(FULL, ASKED, DONE, "phase-7")
    assert {task.verdict for task in state.tasks} == {GIVEN}
    assert state.given[-2:] == ["phase-5", "phase-6"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("review-design.md", "## Verdict: REVISE\n", "review-design.md says REVISE"),
        ("review-design.md", "It looks fine.\n", "review-design.md has no readable verdict: no line of it"),
        ("review-tasks.md", "## Verdict: APPROVE\n\n## Verdict: REVISE\n", "review-tasks.md has no readable verdict"),
        ("review-1.md", "## Verdict: FAIL\n", "review-1.md says FAIL"),
        ("review-3.md", "Done.\n", "review-3.md has no readable verdict"),
    ],
)
def test_a_review_that_did_not_pass_is_not_taken_as_passed(name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        state_from(FULL, ASKED, {**DONE, name: text}, "phase-7")
    assert said in refused.value.message
    assert "begin at phase-" in (refused.value.hint or "")
    judging = next(phase.id for phase in FULL.phases if phase.output in (name, "review-{N}.md") and phase.passes)
    for facts, phase in (
        (ASKED, judging),
        (PEOPLE, "phase-7"),
    ):  # it is still to come, so nothing hangs on what it says
        assert judging not in state_from(FULL, facts, {**DONE, name: text}, phase).done


def test_a_review_that_the_flow_leaves_out_need_not_pass() -> None:
    files = {**DONE, "review-design.md": "## Verdict: REVISE\n"}
    assert "phase-3b" not in state_from(bundled("light"), ASKED, files, "phase-7").given


class TestUntil:
    """The last phase is one that the run comes to."""

    def test_it_is_not_before_the_first(self) -> None:
        with pytest.raises(InvalidParams, match="begins at phase-4, which comes later") as refused:
            check_until(FULL, ASKED, "phase-3", RunState(), "phase-4")
        assert (refused.value.hint or "").startswith("phases from there: phase-4, phase-4b")
        check_until(FULL, ASKED, "phase-4", RunState(), "phase-4")

    @pytest.mark.parametrize(
        ("flow", "facts", "phase"),
        [
            ("light", ASKED, "phase-2"),
            ("standard", ASKED, "checkpoint-b"),
            ("full", Facts(skip_pr=True), "pr-creation"),
            ("full", ASKED, "post-to-source"),
            ("full", Facts(source_type="github_issue"), "post-note"),
        ],
    )
    def test_it_is_none_that_the_run_leaves_out(self, flow: str, facts: Facts, phase: str) -> None:
        with pytest.raises(InvalidParams, match=f"after {phase}: it leaves that phase out") as refused:
            check_until(bundled(flow), facts, phase, RunState())
        assert phase not in (refused.value.hint or "").removeprefix("phases it has: ").split(", ")

    def test_any_other_is_one(self) -> None:
        check_until(FULL, ASKED, None, RunState())
        check_until(FULL, ASKED, "pr-creation", RunState())
        check_until(FULL, Facts(source_type="github_issue"), "post-comment", RunState())


@pytest.mark.parametrize(
    ("given", "meant"), [("phase-33", "phase-3"), ("phase3", "phase-3"), ("checkpointa", "checkpoint-a")]
)
def test_the_phase_that_was_meant_is_named(given: str, meant: str) -> None:
    with pytest.raises(InvalidParams, match=rf"did you mean {meant}\?"):
        check_phase(FULL, given)


@pytest.mark.parametrize("given", ["phase-99", "phase-8", "phase-", "99"])
def test_no_phase_is_meant_by_what_is_like_none(given: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        check_phase(FULL, given)
    assert "did you mean" not in refused.value.message


def test_a_run_keeps_only_the_limits_it_was_asked_for() -> None:
    here = {"hard_tokens": 300.0, "soft_minutes": 5.0}
    assert own_limits(here, {}) == {}
    assert own_limits(here, {"hard_tokens": 900.0, "soft_money": 2.0}) == {"hard_tokens": 300.0, "soft_money": 2.0}
    assert own_limits(here, {"hard_tokens": 100.0}) == {"hard_tokens": 100.0}


@pytest.mark.parametrize("missing", ["tasks.md", "impl-3.md", "review-1.md"])
def test_the_documents_of_every_task_must_be_there(missing: str) -> None:
    files = {name: text for name, text in DONE.items() if name != missing}
    with pytest.raises(InvalidParams, match=missing):
        state_from(FULL, ASKED, files, "phase-7")


def test_a_list_that_nobody_writes_must_be_there_too() -> None:
    flow = read_flow(own(), nothing_else)
    files = written("made.md", "verdict.md", "did-1.md")
    with pytest.raises(InvalidParams, match=r"list\.md"):
        state_from(flow, ASKED, files, "look")
    state = state_from(flow, ASKED, {**files, "list.md": "## Task 1: a\n"}, "look")
    assert [(task.implemented, task.verdict) for task in state.tasks] == [(True, None)]


class TestWherePeopleDecide:
    """Nothing that judges is taken as done on anybody's word."""

    def test_reviews_and_gates_are_still_to_come(self) -> None:
        state = state_from(FULL, PEOPLE, DESIGNED, "phase-4")
        assert state.done == ["phase-1", "phase-2", "phase-3"]

    def test_so_are_the_reviews_and_the_peoples_tasks_of_work_that_is_there(self) -> None:
        state = state_from(FULL, PEOPLE, DONE, "phase-7")
        assert [(task.implemented, task.verdict) for task in state.tasks] == [(True, None), (False, None), (True, None)]
        assert {"phase-3b", "checkpoint-a", "phase-4b", "checkpoint-b", "phase-5", "phase-6"}.isdisjoint(state.done)

    @pytest.mark.parametrize("phase", [phase.id for phase in FULL.phases])
    def test_every_gate_and_review_is_passed_by_its_own_answer_wherever_it_begins(self, phase: str) -> None:
        later = written("comprehensive-review.md", "final-verification.md", "summary.md")
        files = {**DONE, **later}
        begun = Driven(state=state_from(FULL, PEOPLE, files, phase), rules=RunRules(humans_decide=False))
        begun.files = dict(files)
        assert begun.go().type == "done"
        judged = {one.id for one in FULL.phases if one.kind in ("review", "gate", "task-reviews") and not one.only_for}
        assert judged <= set(begun.phases())
        assert [action.gate for action in begun.seen if action.type == "human_gate"] == ["task-2"]


@pytest.mark.parametrize("phase", [phase.id for phase in FULL.phases])
def test_a_run_that_begins_anywhere_comes_to_its_end_and_does_nothing_before(phase: str) -> None:
    files = {**DONE, **written("comprehensive-review.md", "final-verification.md", "summary.md")}
    begun = Driven(state=state_from(FULL, ASKED, files, phase))
    begun.files = dict(files)
    action = begun.go()
    assert (action.type, action.stopped) == ("done", None)
    order = [one.id for one in FULL.phases]
    assert set(begun.phases()) == {
        one.id for one in FULL.phases[order.index(phase) :] if not (one.only_for or one.after_answer)
    }


def cost(run: Driven) -> list[Cost]:
    return run.work(lambda unit: costs_of(finished_runs(unit, REPOSITORY), "M", {"*": 2.0}))


def test_finished_runs_tell_what_they_cost() -> None:
    run = Driven(flags=Flags(skip_pr=True))
    assert cost(run) == []
    run.go()
    (found,) = cost(run)
    assert found.tokens == sum(entry["tokens"] for entry in run.run.log) > 0
    assert found.money == pytest.approx(found.tokens * 2 / 1_000_000)
    assert run.work(lambda unit: costs_of(finished_runs(unit, REPOSITORY), "L", {})) == []
    without = run.work(lambda unit: costs_of(finished_runs(unit, REPOSITORY), "M", {"opus": 2.0}))
    assert [one.money for one in without] == [None], "its models have no price"


@pytest.mark.parametrize("part", [{"forked_from": "wf_9"}, {"given": ["phase-1"]}])
def test_runs_that_did_only_a_part_teach_no_cost(part: dict[str, Any]) -> None:
    run = Driven(flags=Flags(skip_pr=True))
    run.go()
    whole = run.run
    if "given" in part:
        part = {"state": msgspec.to_builtins(whole.run_state().but(**part))}
    assert costs_of([msgspec.structs.replace(whole, **part)], "M", {}) == []
