"""What comes of an action: only work that is there, new and readable moves a run on."""

from __future__ import annotations

import pytest

from handrail.domain.pipeline.dispatch import handed_out
from handrail.domain.pipeline.engine import Action, decide
from handrail.domain.pipeline.flow import Flow, read_flow
from handrail.domain.pipeline.results import CONTINUE, PROCEED, REVISE, Reported, report
from handrail.domain.pipeline.state import Facts, RunState
from handrail.kernel.errors import ArtefactMissing, IllegalTransition, InvalidPlan
from tests.domain.pipeline.bundled import bundled, nothing_else, own


class Run:
    """A run whose agents write what the test says."""

    def __init__(self, flow: Flow | None = None, done: list[str] | None = None, **facts: object) -> None:
        self.flow = flow or bundled("full")
        self.facts = Facts(**facts)  # type: ignore[arg-type]
        self.state = RunState(done=done or [])
        self.files: dict[str, str] = {"request.md": "Do it."}

    def next(self) -> Action:
        """Asks for the next action and hands it out."""
        action = decide(self.flow, self.state, self.facts, self.files)
        if action.phase:
            self.state = handed_out(self.flow, self.state, self.files, action.phase, action.tasks)
        return action

    def report(self, **written: str) -> Reported:
        """The agent of the next action writes these files (`_` for `-`, without `.md`) and it is reported."""
        phase = self.next().phase
        self.files |= {f"{name.replace('_', '-')}.md": text for name, text in written.items()}
        done = report(self.flow, self.state, self.facts, self.files, phase)
        self.state = done.state
        return done


def at_design_review(*, auto: bool = False) -> Run:
    run = Run(done=["phase-1", "phase-2"], auto=auto)
    run.report(design="## One")
    return run


def at_tasks(text: str) -> Run:
    run = Run(bundled("standard"), done=["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"])
    run.report(tasks=text)
    return run


def test_a_phase_is_over_when_its_file_is_there() -> None:
    run = Run()
    assert run.report(analysis="It is so.") == Reported(run.state, PROCEED, "analysis.md")
    assert run.state.done == ["phase-1"]


@pytest.mark.parametrize("text", [None, "", " \r\n\t "])
def test_a_file_that_is_missing_or_empty_is_refused(text: str | None) -> None:
    run = Run()
    with pytest.raises(ArtefactMissing) as refused:
        run.report(**({} if text is None else {"analysis": text}))
    assert refused.value.details == {"phase": "phase-1", "file": "analysis.md"}
    assert run.state.done == []


def test_a_file_without_what_it_must_contain_is_refused() -> None:
    run = Run(done=["phase-1", "phase-2"])
    with pytest.raises(ArtefactMissing, match="does not contain ##"):
        run.report(design="no heading")


def test_only_the_phase_whose_turn_it_is_can_be_reported() -> None:
    run = Run()
    files = run.files | {"review-design.md": "## Verdict: APPROVE", "analysis.md": "x"}
    for phase in ("phase-3b", "checkpoint-a", "nonsense", ""):
        with pytest.raises(IllegalTransition, match="it is phase-1's turn"):
            report(run.flow, run.state, run.facts, files, phase)
    over = run.state.but(ended="abandoned")
    with pytest.raises(IllegalTransition, match="the run is over"):
        report(run.flow, over, run.facts, files, "phase-1")


def test_a_gate_is_not_reported() -> None:
    run = Run(done=["phase-1", "phase-2", "phase-3", "phase-3b"])
    with pytest.raises(IllegalTransition, match="question to a person"):
        run.report()


def test_an_approval_goes_on_and_carries_its_findings() -> None:
    run = at_design_review()
    done = run.report(review_design="**1. [MINOR] Name it**\n## Verdict: APPROVE_WITH_NOTES")
    assert (done.hint, done.verdict, done.artefact) == (PROCEED, "APPROVE_WITH_NOTES", "review-design.md")
    assert [finding.description for finding in done.findings] == ["Name it"]
    assert run.state.approved == ["phase-3b"]


def test_an_unreadable_verdict_never_passes_and_the_second_asks_a_person() -> None:
    run = at_design_review()
    for number, text in enumerate(("Looks fine. APPROVE!", "Verdict: APPROVE | REVISE"), 1):
        done = run.report(review_design=text)
        assert (done.hint, done.verdict) == (REVISE, None)
        assert "## Verdict: APPROVE" in done.warning
        assert run.state.unread == {"phase-3b": number}
        assert "phase-3b" not in run.state.done
    assert run.next().gate == "phase-3b-limit"


def test_a_readable_verdict_forgets_the_unreadable_ones() -> None:
    run = at_design_review()
    run.report(review_design="?")
    run.report(review_design="## Verdict: REVISE")
    assert run.state.unread == {"phase-3b": 0}


def test_two_times_revise_and_then_a_person() -> None:
    run = at_design_review()
    first = run.report(review_design="First. Verdict follows\n## Verdict: REVISE")
    assert (first.hint, first.verdict, run.next().phase) == (REVISE, "REVISE", "phase-3")
    assert "review-design.md" in run.next().inputs
    run.report(design="## Two")
    second = run.report(review_design="Second\n## Verdict: REVISE")
    assert second.hint == REVISE
    asked = run.next()
    assert (asked.type, asked.gate, asked.options) == ("checkpoint", "phase-3b-limit", ["approve", "reject", "abandon"])


def test_a_team_says_how_often_work_is_sent_back() -> None:
    for retries in (0, 3):
        document = own()
        document["phases"][1]["retries"] = retries
        run = Run(read_flow(document, nothing_else))
        for number in range(retries + 1):
            assert run.next().phase == "make"
            run.report(made=f"try {number}")
            run.report(verdict=f"look {number}\nVerdict: FAIL")
        assert run.next().gate == "judge-limit"


def test_the_old_review_is_no_new_one_however_old_it_is() -> None:
    run = at_design_review()
    run.report(review_design="A\n## Verdict: REVISE")
    run.report(design="## Two")
    approved = "B\n## Verdict: APPROVE"
    run.report(review_design=approved)
    run.state = run.state.but(done=["phase-1", "phase-2"], approved=[])
    run.report(design="## Three")
    for text in (approved, "A\n## Verdict: REVISE", approved):
        done = run.report(review_design=text)
        assert (done.verdict, done.hint) == (None, REVISE)
        assert "no new review" in done.warning
        run.state = run.state.but(unread={})
    assert run.state.done[-1] == "phase-3"


def test_work_that_was_sent_back_has_to_be_written_anew() -> None:
    run = at_design_review()
    run.report(review_design="## Verdict: REVISE")
    with pytest.raises(ArtefactMissing, match="what it was before phase-3 was handed out"):
        run.report()
    assert run.report(design="## Two").hint == PROCEED


def test_parallel_tasks_are_reported_together_or_one_by_one() -> None:
    also = "mode: parallel\n"
    run = at_tasks(f"## Task 1: a\n{also}## Task 2: b\n## Task 3: c\n{also}## Task 4: d\ndepends_on: [1]\n{also}")
    assert run.next().tasks == [1, 3]
    assert run.report(impl_3="c").artefact == "impl-3.md"
    assert run.next().tasks == [1]
    assert run.report(impl_1="a").artefact == "impl-1.md"
    assert run.next().tasks == [2], "the first that is ready decides"
    run.report(impl_2="b")
    assert run.next().tasks == [4]
    run.report(impl_4="d")
    assert run.state.done[-1] == "phase-5"
    assert run.next().tasks == [1, 2, 3, 4]


def test_a_task_list_with_a_mistake_is_refused_and_nothing_is_begun() -> None:
    run = Run(bundled("standard"), done=["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"])
    with pytest.raises(InvalidPlan, match="line 2"):
        run.report(tasks="## Task 1: a\nmode: never\n")
    assert (run.state.tasks, run.state.done[-1]) == ([], "checkpoint-a")
    run.report(tasks="## Task 1: a\nmode: parallel\n")
    assert run.next().tasks == [1]


def test_fail_sends_one_task_back_and_leaves_the_others() -> None:
    run = at_tasks("## Task 1: a\nmode: parallel\n## Task 2: b\nmode: parallel\n")
    run.report(impl_1="a", impl_2="b")
    done = run.report(review_1="Verdict: PASS", review_2="**[CRITICAL] No test**\nVerdict: FAIL")
    assert (done.hint, done.verdict, len(done.findings)) == (REVISE, "FAIL", 1)
    one, two = run.state.tasks
    assert (one.implemented, one.verdict, two.implemented, two.verdict, two.retries) == (True, "PASS", False, None, 1)
    again = run.next()
    assert (again.phase, again.tasks, again.inputs[-1]) == ("phase-5", [2], "review-2.md")
    with pytest.raises(ArtefactMissing, match=r"none of impl-2\.md"):
        run.report()
    run.report(impl_2="b, tested")
    assert run.next().tasks == [2]
    done = run.report()
    assert (done.verdict, "review-2.md" in done.warning) == (None, True)
    run.report(review_2="better\nVerdict: PASS")
    assert run.state.done[-1] == "phase-6"


def test_two_fails_of_one_task_ask_a_person() -> None:
    run = at_tasks("## Task 1: a\n## Task 2: b\n")
    for number in range(2):
        run.report(impl_1=f"a {number}")
        if number == 0:
            run.report(impl_2="b")
        written = {"review_1": f"{number}\nVerdict: FAIL"}
        run.report(**written, **({"review_2": "Verdict: PASS"} if number == 0 else {}))
    assert run.next().gate == "task-1-limit"


def test_an_unreadable_code_review_is_asked_for_again_and_then_a_person() -> None:
    run = at_tasks("## Task 1: a\n## Task 2: b\n")
    run.report(impl_1="a")
    run.report(impl_2="b")
    done = run.report(review_1="Verdict: PASS", review_2="Verdict: BYPASS")
    assert (done.hint, done.verdict, done.artefact) == (REVISE, "PASS", "review-1.md")
    assert "review-2.md" in done.warning
    assert run.next().tasks == [2]
    run.report(review_2="I would PASS it")
    assert run.next().gate == "phase-6-limit"
    assert "phase-6" not in run.state.done


def test_commands_are_run_one_by_one() -> None:
    run = Run(done=[phase.id for phase in bundled("full").phases[:12]])
    assert (run.next().phase, run.next().setup_only, run.next().command[:2]) == ("pr-creation", True, ["git", "push"])
    assert run.report().hint == CONTINUE
    assert (run.next().setup_only, run.next().command[0]) == (False, "gh")
    assert run.report().hint == PROCEED
    assert run.state.done[-1] == "pr-creation"


def test_a_flow_in_which_nobody_breaks_the_work_down_has_one_task() -> None:
    run = Run(read_flow(own() | {"skip": ["make", "judge", "ask"]}, nothing_else))
    action = run.next()
    assert (action.type, action.path) == ("write_file", "list.md")
    for text in ("", "## Task 1: Something else"):
        with pytest.raises(ArtefactMissing):
            run.report(list=text)
    assert run.report(list=(action.content or "").replace("\n", "\r\n")).hint == CONTINUE
    assert run.next().tasks == [1]


def test_what_a_person_said_reaches_one_agent_once() -> None:
    run = Run(done=["phase-1", "phase-2"])
    run.state = run.state.but(feedback="smaller steps")
    with pytest.raises(ArtefactMissing):
        run.report()
    assert run.state.feedback == "smaller steps", "nothing came of it yet, so it is said again"
    run.report(design="## One")
    assert run.state.feedback is None


def test_a_review_of_all_work_that_fails_has_the_tasks_done_again() -> None:
    document = own()
    document["phases"][5:] = [document["phases"][1] | {"id": "whole", "output": "whole.md", "revises": "do"}]
    run = Run(read_flow(document, nothing_else), done=["make", "judge", "ask"])
    run.report(list=run.next().content or "")
    run.report(did_1="once")
    run.report(look_1="Verdict: PASS")
    assert run.report(whole="Verdict: FAIL").hint == REVISE
    assert (run.next().phase, run.next().tasks) == ("do", [1])
    run.report(did_1="twice")
    assert run.report(look_1="again\nVerdict: PASS").hint == PROCEED
    assert run.next().phase == "whole"


def test_what_waits_for_an_answer_is_left_out_where_nobody_is_asked() -> None:
    """To skip the question must not mean to do what only its answer allows."""
    flow = read_flow(own() | {"skip": ["ask"]}, nothing_else)
    state = RunState(done=["make", "judge", "do", "look"])
    assert decide(flow, state, Facts(), {}).type == "done"
