"""What is reported as failed or was not taken: it is handed out again with the reason, which outlives the process, and
a person is asked before it is tried without end."""

from __future__ import annotations

import pytest

from handrail.domain.pipeline.answers import meanings
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.run_gates import GateAnswer
from handrail.domain.pipeline.state import RunState
from handrail.domain.pipeline.turns import Previous, Turn, action_id, take_turn
from handrail.kernel.errors import IllegalTransition
from tests.domain.pipeline.bundled import bundled
from tests.domain.pipeline.driven import Driven

BROKEN = "fatal: no such remote"


def at_push() -> Driven:
    """A run at the first command of its pull request."""
    run = Driven(bundled("light"))
    action = run.go(lambda action: action.type == "exec")
    assert (action.phase, action.setup_only) == ("pr-creation", True)
    return run


def answer(run: Driven, text: str, gate_id: str | None) -> Turn:
    given = GateAnswer(text, gate_id)
    return run.work(lambda unit: take_turn(unit, run.run, run.files, Previous(), answer=given, rules=run.rules))


class TestFailing:
    def test_a_command_that_failed_is_not_done_and_is_handed_out_again_with_the_reason(self) -> None:
        run = at_push()
        first, spent = run.seen[-1], sum(entry["tokens"] for entry in run.run.log)
        turn = run.turn(complete=True, tokens=7, error=BROKEN)
        assert turn.action == first
        assert BROKEN in turn.warning
        assert "pr-creation" not in run.state.done
        assert sum(entry["tokens"] for entry in run.run.log) == spent + 7, "what it cost is spent"
        assert BROKEN in run.turn().warning, "whoever asks after a crash is told too"

    def test_a_failure_needs_no_other_word(self) -> None:
        run = at_push()
        assert BROKEN in run.turn(error=BROKEN).warning

    def test_after_two_in_a_row_a_person_is_asked(self) -> None:
        run = at_push()
        run.turn(error="first")
        asked = run.turn(error=BROKEN).action
        assert (asked.type, asked.gate, asked.options) == (
            "checkpoint",
            "pr-creation-failed",
            ["approve", "reject", "abandon"],
        )
        assert BROKEN in (asked.why or "")

    def test_what_worked_in_between_is_no_failure_in_a_row(self) -> None:
        run = at_push()
        run.turn(error=BROKEN)
        second = run.turn(complete=True)
        assert second.warning == ""
        assert run.turn(error=BROKEN).action == second.action
        assert run.turn(complete=True).action.phase == "final-summary"
        assert (run.state.failed, run.state.again) == ({}, {})

    def test_trying_again_is_the_same_command_and_not_the_first(self) -> None:
        run = at_push()
        second = run.turn(complete=True).action
        for _ in range(2):
            run.turn(error=BROKEN)
        turn = run.turn(answer="reject I logged in")
        assert turn.action == second
        assert BROKEN in turn.warning
        assert run.turn(error=BROKEN).action == second, "the count begins anew"

    def test_approving_goes_on_without_the_command(self) -> None:
        run = at_push()
        for _ in range(2):
            run.turn(error=BROKEN)
        turn = run.turn(answer="approve")
        assert (turn.action.phase, turn.warning) == ("final-summary", "")
        run.go()
        assert run.state.ended == "completed"

    def test_nobody_goes_on_without_an_agents_work(self) -> None:
        run = Driven()
        run.turn()
        run.turn(error="it ran out of memory")
        asked = run.turn(error="it ran out of memory").action
        assert (asked.gate, asked.options) == ("phase-1-failed", ["reject", "abandon"])
        again = run.turn(answer="reject")
        assert (again.action.phase, "out of memory" in again.warning) == ("phase-1", True)
        run.go()
        assert run.state.ended == "completed"

    def test_the_file_of_an_agent_that_failed_passes_nothing(self) -> None:
        run = Driven()
        run.produce(run.turn().action)
        assert run.turn(complete=True, error="half of it").action.phase == "phase-1"
        assert run.state.done == []

    def test_a_question_does_not_fail(self) -> None:
        run = Driven()
        gate = run.go(lambda action: action.type == "checkpoint")
        assert run.turn(error=BROKEN).action == gate
        assert run.state.failed == {}

    def test_each_answer_is_explained(self) -> None:
        run = at_push()
        run.turn(error=BROKEN)
        asked = run.turn(error=BROKEN).action
        assert list(meanings(run.run.flow_followed(), run.state, asked)) == asked.options


class TestUntaken:
    """The agent says that it is done, and there is nothing, or the same again."""

    def rejected(self) -> Driven:
        """A run whose design a person sent back, at the phase that is to write it anew."""
        run = Driven()
        run.go(lambda action: action.gate == "checkpoint-a")
        assert run.turn(answer="reject say which").action.phase == "phase-3"
        return run

    def test_the_same_file_again_is_handed_out_three_times_and_then_a_person_is_asked(self) -> None:
        run = self.rejected()
        turns = [run.turn(complete=True) for _ in range(3)]
        assert [turn.action.type for turn in turns] == ["spawn_agent", "spawn_agent", "checkpoint"]
        assert all("design.md is what it was before" in turn.warning for turn in turns)
        asked = turns[-1].action
        assert (asked.gate, asked.options) == ("phase-3-failed", ["reject", "abandon"])
        assert "was tried 3 times" in (asked.why or "")
        assert "design.md is what it was before" in (asked.why or "")
        assert run.turn(complete=True).action == asked, "whoever goes on reporting is given nothing"

    def test_a_person_lets_it_try_again_and_is_heard(self) -> None:
        run = self.rejected()
        for _ in range(3):
            run.turn(complete=True)
        again = run.turn(answer="reject it is the third section").action
        assert (again.type, again.phase) == ("spawn_agent", "phase-3")
        assert run.state.feedback == "it is the third section"
        assert run.turn(complete=True).action == again, "the count begins anew"
        run.go()
        assert (run.state.ended, run.state.untaken) == ("completed", {})

    def test_who_asks_again_without_a_report_is_not_counted(self) -> None:
        run = self.rejected()
        assert {run.turn().action.type for _ in range(10)} == {"spawn_agent"}
        assert run.state.untaken == {}

    def test_what_was_taken_in_between_is_no_turn_in_a_row(self) -> None:
        run = self.rejected()
        for _ in range(2):
            run.turn(complete=True)
        assert run.do(run.turn().action).action.phase == "phase-3b"
        assert run.state.untaken == {}

    def test_a_failure_and_a_file_that_is_missing_count_together(self) -> None:
        run = Driven()
        run.turn()
        run.turn(complete=True)
        run.turn(error=BROKEN)
        asked = run.turn(complete=True).action
        assert (asked.type, asked.gate) == ("checkpoint", "phase-1-failed")

    def test_a_task_list_that_cannot_be_read_is_not_asked_for_without_end(self) -> None:
        run = Driven()
        run.go(lambda action: action.phase == "phase-4")
        for number in range(3):
            run.files["tasks.md"] = f"## Task 1: a {number}\ndepends_on: [1]\n"
            turn = run.turn(complete=True)
        assert (turn.action.type, turn.action.gate) == ("checkpoint", "phase-4-failed")

    def test_a_review_that_cannot_be_read_may_still_be_overruled(self) -> None:
        run = Driven()
        run.go(lambda action: action.phase == "phase-3b")
        run.turn(complete=True)
        for number in range(2):
            run.files["review-design.md"] = f"Fine {number}."
            turn = run.turn(complete=True)
        assert (turn.action.gate, turn.action.options[0]) == ("phase-3b-limit", "approve")
        assert run.turn(answer="approve").action.gate == "checkpoint-a"
        assert run.state.untaken == {}

    def test_tasks_whose_files_are_missing_are_asked_about_and_one_that_is_written_is_progress(self) -> None:
        run = Driven(bundled("standard"))
        run.go(lambda action: action.phase == "phase-4")
        run.files["tasks.md"] = "".join(f"## Task {n}: t\nmode: parallel\n" for n in (1, 2))
        run.turn(complete=True)
        run.turn(complete=True)
        run.turn(complete=True)
        run.files["impl-2.md"] = "two"
        assert run.turn(complete=True).action.tasks == [1]
        assert [run.turn(complete=True).action.type for _ in range(3)] == ["spawn_agent", "spawn_agent", "checkpoint"]
        assert run.turn(answer="abandon").action.abandoned


class TestReasons:
    def test_why_a_review_is_asked_for_again_outlives_a_crash_and_ends_with_it(self) -> None:
        run = Driven()
        run.go(lambda action: action.phase == "phase-3b")
        run.files["review-design.md"] = "It is fine."
        first = run.turn(complete=True).warning
        assert "no readable verdict" in first
        assert run.turn().warning == first
        run.do(run.turn().action)
        assert run.turn().warning == ""
        assert run.state.again == {}

    def test_a_circle_in_the_list_is_told_until_it_is_mended(self) -> None:
        run = Driven()
        action = run.go(lambda action: action.phase == "phase-4")
        run.files["tasks.md"] = "## Task 1: a\ndepends_on: [2]\n## Task 2: b\ndepends_on: [1]\n"
        first = run.turn(complete=True).warning
        assert "tasks.md" in first
        assert (run.turn().warning, run.state.again["phase-4"]) == (first, first)
        assert run.do(action).warning == ""

    def test_going_back_forgets_what_was_wrong_there(self) -> None:
        run = Driven()
        run.turn()
        run.turn(complete=True)
        assert run.state.again
        run.go(lambda action: action.gate == "checkpoint-a")
        assert run.state.again == {}

    def test_of_a_group_only_what_was_not_written_is_handed_out_again(self) -> None:
        run = Driven(bundled("standard"))
        run.go(lambda action: action.phase == "phase-4")
        run.files["tasks.md"] = "".join(f"## Task {n}: t\nmode: parallel\n" for n in (1, 2, 3))
        run.turn(complete=True)
        assert run.seen[-1].tasks == [1, 2, 3]
        run.files |= {"impl-2.md": "two"}
        turn = run.turn(complete=True)
        assert turn.action.tasks == [1, 3]
        assert turn.reported is not None
        assert turn.reported.hint == "revision_required"
        assert "impl-2.md and not impl-1.md, impl-3.md" in turn.warning
        assert run.turn().warning == turn.warning
        assert run.do(turn.action).warning == ""


class TestReportsOfSomethingElse:
    @pytest.mark.parametrize("named", ["zzz", "phase-1/99", "phase-2/0", ""])
    def test_a_report_of_what_is_not_out_is_not_swallowed(self, named: str) -> None:
        run = Driven()
        action = run.turn().action
        run.produce(action)
        turn = run.turn(complete=True, action_id=named)
        assert turn.action == action
        assert turn.warning == f"reported {named}, but the action that is out is phase-1/0; nothing was recorded"

    def test_the_one_before_is_sent_again_where_its_reply_was_lost(self) -> None:
        run = Driven()
        action = run.turn().action
        named = action_id(run.run)
        run.produce(action)
        second = run.turn(complete=True, action_id=named)
        again = run.turn(complete=True, action_id=named)
        assert (again.action, again.warning) == (second.action, "")

    def test_at_a_question_nothing_is_out(self) -> None:
        run = Driven()
        run.go(lambda action: action.type == "checkpoint")
        assert "no action is out" in run.turn(complete=True, action_id="zzz").warning


class TestAnswersSentAgain:
    def asked(self) -> tuple[Driven, str]:
        run = Driven()
        run.go(lambda action: action.type == "checkpoint")
        turn = run.turn()
        assert turn.gate is not None
        return run, turn.gate.id

    def test_the_same_answer_again_goes_on_and_says_that_it_was_given(self) -> None:
        run, gate_id = self.asked()
        first = answer(run, "approve", gate_id)
        again = answer(run, "approve", gate_id)
        assert again.action == first.action
        assert "checkpoint-a was answered: approve, by driver at 20" in again.warning

    def test_another_answer_is_refused_with_the_one_on_record(self) -> None:
        run, gate_id = self.asked()
        answer(run, "approve", gate_id)
        with pytest.raises(IllegalTransition, match="was answered: approve, by driver"):
            answer(run, "reject no", gate_id)

    def test_what_was_said_too_late_is_not_taken_in_silence(self) -> None:
        run, gate_id = self.asked()
        answer(run, "reject smaller", gate_id)
        again = answer(run, "reject larger", gate_id)
        assert "what was said with it now was not taken" in again.warning
        assert run.state.feedback == "smaller"

    def test_a_gate_of_another_run_is_none_of_this_one(self) -> None:
        run, _ = self.asked()
        with pytest.raises(IllegalTransition, match="is not asked any more"):
            answer(run, "approve", "gate_999")


def test_what_a_person_approved_is_what_was_accepted() -> None:
    """However it came to be: whoever takes the run over elsewhere finds the document that a person saw."""
    run = Driven()
    run.go(lambda action: action.gate == "checkpoint-a")
    run.files["design.md"] = "## As a person wants it\n"
    run.turn()
    before = run.state.judged["design.md"]
    run.turn(answer="approve")
    assert len(run.state.judged["design.md"]) == len(before) + 1


def test_what_a_person_rejected_is_not_accepted() -> None:
    run = Driven()
    run.go(lambda action: action.gate == "checkpoint-a")
    run.files["design.md"] = "## As nobody wants it\n"
    run.turn()
    before = run.state.judged["design.md"]
    run.turn(answer="reject")
    assert run.state.judged["design.md"] == before


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState(done=["phase-1", "phase-2", "phase-3"], tries={"phase-3b": 2}), "sends the work back to phase-3"),
        (RunState(done=["phase-1", "phase-2", "phase-3"], unread={"phase-3b": 2}), "asks for the review again"),
    ],
)
def test_a_limit_says_what_each_answer_does(state: RunState, said: str) -> None:
    gate = Action(type="checkpoint", phase="phase-3b", gate="phase-3b-limit", options=["approve", "reject", "abandon"])
    told = meanings(bundled("full"), state, gate)
    assert "overrules the review" in told["approve"]
    assert told["reject"].startswith(said)
    assert "ends the run" in told["abandon"]
