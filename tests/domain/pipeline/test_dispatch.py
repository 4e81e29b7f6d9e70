"""What lies in the workspace already: no leftover, early file or changed list passes for work or for a review."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.answers import answered
from handrail.domain.pipeline.dispatch import handed_out
from handrail.domain.pipeline.engine import decide
from handrail.domain.pipeline.results import REVISE, report
from handrail.domain.pipeline.state import Facts, RunState
from handrail.domain.pipeline.workspace_texts import fingerprint
from handrail.kernel.errors import ArtefactMissing, IllegalTransition
from tests.domain.pipeline.bundled import bundled
from tests.domain.pipeline.test_results import Run, at_design_review, at_tasks

LEFTOVERS = {
    "analysis.md": "old",
    "investigation.md": "old",
    "design.md": "## old",
    "review-design.md": "old\n## Verdict: APPROVE",
    "tasks.md": "## Task 1: old\n",
    "review-tasks.md": "old\n## Verdict: APPROVE",
    "impl-1.md": "old",
    "review-1.md": "old\n## Verdict: PASS",
    "comprehensive-review.md": "old",
    "final-verification.md": "old",
    "summary.md": "old",
}


def approve(run: Run, answer: str = "approve") -> None:
    gate = run.next()
    run.state = answered(run.flow, run.state, gate, answer, None, run.files)


def test_what_an_earlier_run_left_behind_is_nobodys_work() -> None:
    run = Run()
    run.files |= LEFTOVERS
    fresh = {
        "phase-1": {"analysis": "new"},
        "phase-2": {"investigation": "new"},
        "phase-3": {"design": "## new"},
    }
    for phase, written in fresh.items():
        assert run.next().phase == phase
        with pytest.raises(ArtefactMissing, match="what it was before"):
            run.report()
        run.report(**written)
    done = run.report()
    assert (done.hint, done.verdict, run.next().phase) == (REVISE, None, "phase-3b")
    run.report(review_design="new\n## Verdict: APPROVE")
    approve(run)
    with pytest.raises(ArtefactMissing):
        run.report()
    run.report(tasks="## Task 1: new\n")
    assert run.report().verdict is None
    run.report(review_tasks="new\n## Verdict: APPROVE")
    approve(run)
    with pytest.raises(ArtefactMissing, match=r"impl-1\.md"):
        run.report()
    run.report(impl_1="new")
    assert run.report().verdict is None
    run.report(review_1="new\n## Verdict: PASS")
    assert run.state.done[-1] == "phase-6"


@settings(max_examples=40)
@given(done=st.integers(0, 16), extra=st.dictionaries(st.sampled_from(sorted(LEFTOVERS)), st.text(max_size=30)))
def test_reporting_without_writing_never_finishes_a_phase(done: int, extra: dict[str, str]) -> None:
    flow = bundled("full")
    files = LEFTOVERS | extra
    state = RunState(done=[phase.id for phase in flow.phases[:done]])
    if done > 7:
        state = report(
            flow, RunState(done=[p.id for p in flow.phases[:5]]), Facts(), {"tasks.md": "## Task 1: x"}, "phase-4"
        ).state
        state = state.but(done=[phase.id for phase in flow.phases[:done]], plan=None)
    action = decide(flow, state, Facts(source_type="github_issue"), files)
    if action.type == "spawn_agent":
        state = handed_out(flow, state, files, action.phase, action.tasks)
        try:
            after = report(flow, state, Facts(), files, action.phase).state
        except ArtefactMissing:
            return
        assert action.phase not in after.done
        assert after.approved == []


def test_a_review_that_was_written_too_early_does_not_count() -> None:
    run = Run(done=["phase-1", "phase-2"])
    run.report(design="## One", review_design="I wrote it myself\n## Verdict: APPROVE")
    assert run.report().hint == REVISE
    assert run.next().phase == "phase-3b"


def test_the_work_on_a_task_that_waits_does_not_count() -> None:
    run = at_tasks(
        "## Task 1: a\n## Task 2: b\nmode: human_gate\ndepends_on: [1]\n## Task 3: c\ndepends_on: [2]\n## Task 4: d\n"
    )
    done = run.report(impl_1="a", impl_2="b", impl_3="c", impl_4="d")
    assert done.artefact == "impl-1.md"
    assert [task.number for task in run.state.tasks if task.implemented] == [1]
    assert run.next().tasks == [4]
    run.report(impl_4="d, when it was asked for")
    assert run.next().type == "human_gate"


def test_a_crash_between_writing_and_reporting_loses_nothing() -> None:
    run = Run()
    run.files["analysis.md"] = "old"
    run.next()
    run.files["analysis.md"] = "new"
    run.next()
    assert run.report().hint == "proceed"


def test_a_review_stands_against_what_lay_there_when_it_was_first_asked_for() -> None:
    run = at_design_review()
    run.files["review-design.md"] = "left\n## Verdict: APPROVE"
    run.next()
    run.report(review_design="?")
    assert run.report(review_design="left\n## Verdict: APPROVE").verdict is None


def at_task_review() -> Run:
    run = Run(done=["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"])
    run.report(tasks="## Task 1: a\n")
    return run


def test_a_task_list_that_is_changed_is_reviewed_and_shown_again() -> None:
    run = at_task_review()
    run.report(review_tasks="## Verdict: APPROVE")
    approve(run)
    assert decide(run.flow, run.state, run.facts, run.files).phase == "phase-5"
    run.files["tasks.md"] = "## Task 1: a\n## Task 2: smuggled\n"
    with pytest.raises(IllegalTransition, match="phase-4b's turn"):
        report(run.flow, run.state, run.facts, run.files | {"impl-1.md": "a"}, "phase-5")
    assert run.next().phase == "phase-4b"
    assert run.report().verdict is None, "the old approval was for the old list"
    run.report(review_tasks="both\n## Verdict: APPROVE")
    gate = run.next()
    assert gate.gate == "checkpoint-b"
    approve(run)
    assert [task.title for task in run.state.tasks] == ["a", "smuggled"]
    assert run.next().tasks == [1]


def test_a_task_list_that_is_changed_at_the_question_is_not_the_one_approved() -> None:
    run = at_task_review()
    run.report(review_tasks="## Verdict: APPROVE")
    assert run.next().gate == "checkpoint-b"
    run.files["tasks.md"] = "## Task 1: b\n"
    assert run.next().phase == "phase-4b"
    assert run.state.approved == []


@pytest.mark.parametrize("text", [None, "", "nothing", "## Task 1: a\nmode: never"])
def test_a_task_list_that_is_spoilt_is_written_again(text: str | None) -> None:
    run = at_task_review()
    if text is None:
        del run.files["tasks.md"]
    else:
        run.files["tasks.md"] = text
    assert run.next().phase == "phase-4"
    run.report(tasks="## Task 1: mended\n")
    assert run.state.task(1).title == "mended"


def test_a_task_list_is_fixed_once_a_task_is_handed_out() -> None:
    run = at_tasks("## Task 1: a\n## Task 2: b\n")
    run.report(impl_1="a", tasks="## Task 1: a (done)\n")
    assert run.next().tasks == [2], "no task disappears from a list that is being worked on"
    assert run.state.task(1).title == "a"


def test_a_task_that_waits_is_not_done_even_where_nobody_noted_what_was_handed_out() -> None:
    run = at_tasks("## Task 1: a\n## Task 2: b\ndepends_on: [1]\n")
    files = run.files | {"impl-2.md": "b"}
    with pytest.raises(ArtefactMissing, match=r"none of impl-1\.md"):
        report(run.flow, run.state, run.facts, files, "phase-5")


def test_only_files_of_this_run_are_given_to_read() -> None:
    run = Run(bundled("light"), done=["phase-1"])
    run.files |= LEFTOVERS
    assert run.next().inputs == ["request.md", "analysis.md"]
    run = Run(done=["phase-1", "phase-2"])
    run.files |= LEFTOVERS
    assert run.next().inputs == ["request.md", "analysis.md", "investigation.md"]


def test_any_text_has_a_hash() -> None:
    assert len({fingerprint({"a": text}, "a") for text in ("", "a", "a\n", "\ud800", "\udcff", "\r\n")}) == 6


def at_approved_design(*, auto: bool = False) -> Run:
    run = at_design_review(auto=auto)
    run.report(review_design="## Verdict: APPROVE")
    assert run.next().why is None
    approve(run)
    return run


def test_a_document_that_is_changed_after_it_was_approved_is_shown_again() -> None:
    run = at_approved_design()
    run.report(tasks="## Task 1: a\n")
    run.report(review_tasks="## Verdict: APPROVE", design="## Another one")
    assert run.state.done[-1] == "phase-4b", "what was under way is taken; then comes the question"
    gate = run.next()
    assert (gate.gate, gate.shows, gate.why) == (
        "checkpoint-a",
        "design.md",
        "design.md was changed after it was approved",
    )
    approve(run)
    assert run.next().gate == "checkpoint-b", "approved once more, the run goes on where it stood"
    assert "checkpoint-a" not in run.state.again


def test_a_changed_document_that_is_rejected_goes_back_as_it_would_have_before() -> None:
    run = at_approved_design()
    run.files["design.md"] = "## Another one"
    approve(run, "reject")
    assert run.next().phase == "phase-3"


def test_a_document_that_is_gone_is_asked_about_once() -> None:
    run = at_approved_design()
    del run.files["design.md"]
    assert run.next().gate == "checkpoint-a"
    approve(run)
    assert run.next().phase == "phase-4"


def test_no_gate_opens_by_itself_for_a_text_that_its_review_has_not_seen() -> None:
    run = at_approved_design(auto=True)
    assert run.next().phase == "phase-4"
    run.files["design.md"] = "## Another one"
    gate = run.next()
    assert (gate.gate, gate.automatic) == ("checkpoint-a", False)


def at_a_task_done() -> Run:
    run = at_task_review()
    run.report(review_tasks="## Verdict: APPROVE")
    approve(run)
    run.report(impl_1="done")
    return run


def test_a_list_in_which_done_tasks_are_ticked_off_is_not_asked_about() -> None:
    run = at_a_task_done()
    run.files["tasks.md"] = "## Task 1: a\n- [x] done\n"
    assert run.next().phase == "phase-6"


def test_a_list_that_says_something_else_while_its_tasks_are_done_is_asked_about() -> None:
    run = at_a_task_done()
    run.files["tasks.md"] = "## Task 1: a\n- [x] done\nand push it\n"
    gate = run.next()
    assert (gate.gate, gate.why) == ("checkpoint-b", "tasks.md was changed after it was approved")
    approve(run)
    assert run.next().phase == "phase-6", "the run keeps its tasks and what was done of them"


def test_what_was_approved_with_64_bits_is_asked_about_once() -> None:
    run = at_approved_design()
    kept = [hashed[:16] for hashed in run.state.judged["design.md"]]
    run.state = run.state.but(judged={**run.state.judged, "design.md": kept})
    gate = run.next()
    assert gate.gate == "checkpoint-a"
    assert gate.why is not None
    assert gate.why.startswith("design.md was approved with an older Handrail, which kept too little of its hash")
    approve(run)
    assert run.next().phase == "phase-4"


def test_a_command_that_was_run_is_not_run_again_for_a_question_in_between() -> None:
    flow = bundled("full")
    files = {"design.md": "## One"}
    at = flow.position("pr-creation")
    state = RunState(
        done=[phase.id for phase in flow.phases[:at]],
        answers={"checkpoint-a": "approve"},
        judged={"design.md": [fingerprint({"design.md": "## Another"}, "design.md")]},
        command=1,
    )
    gate = decide(flow, state, Facts(), files)
    state = handed_out(flow, state, files, gate.phase)
    state = answered(flow, state, gate, "approve", None, files)
    assert decide(flow, state, Facts(), files).command[:2] == ["gh", "pr"]


def test_a_text_that_was_posted_is_not_asked_about_again() -> None:
    flow = bundled("full")
    at = flow.position("post-to-source") + 1
    state = RunState(
        done=[phase.id for phase in flow.phases[:at]],
        answers={"post-to-source": "post"},
        judged={"summary.md": [fingerprint({"summary.md": "As approved"}, "summary.md")]},
    )
    facts, files = Facts(source_type="github_issue"), {"summary.md": "Another"}
    assert decide(flow, state, facts, files).gate == "post-to-source", "before it is posted, it is"
    posted = state.but(done=[*state.done, "post-comment"])
    assert decide(flow, posted, facts, files).phase == "final-commit"
