"""What a person's answer does: each gate knows its words, and none is answered twice, early or by accident."""

from __future__ import annotations

import msgspec
import pytest

from handrail.domain.pipeline.answers import answered, split_answer
from handrail.domain.pipeline.dispatch import task_states
from handrail.domain.pipeline.engine import Action, decide
from handrail.domain.pipeline.flow import Flow, read_flow
from handrail.domain.pipeline.state import Facts, RunState
from handrail.kernel.errors import IllegalTransition, InvalidParams
from tests.domain.pipeline.bundled import bundled, nothing_else, own

FULL = bundled("full")
TO_DESIGN = ["phase-1", "phase-2", "phase-3", "phase-3b"]
TO_TASKS = [*TO_DESIGN, "checkpoint-a", "phase-4", "phase-4b", "checkpoint-b"]


def asked(flow: Flow, state: RunState, **facts: bool) -> Action:
    return decide(flow, state, Facts(**facts), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "answer", "feedback"),
    [
        ("approve", "approve", None),
        ("  Approve! ", "approve", None),
        ("APPROVE, and mind the clock", "approve", "and mind the clock"),
        ("reject: smaller steps", "reject", "smaller steps"),
        ("reject\nsmaller\nsteps\n", "reject", "smaller\nsteps"),
        ("abandon", "abandon", None),
    ],
)
def test_an_answer_is_a_word_and_what_follows_it(text: str, answer: str, feedback: str | None) -> None:
    assert split_answer(text, ["approve", "reject"]) == (answer, feedback)


@pytest.mark.parametrize(
    "text", ["", " ", "yes", "approved", "approve?", "approve/reject", "don't approve", "skip", "x" * 999]
)
def test_anything_else_answers_nothing(text: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        split_answer(text, ["approve", "reject"])
    assert "approve, reject, abandon" in refused.value.hint
    assert len(refused.value.message) < 200


def test_approve_goes_on_and_reject_goes_back_with_what_was_said() -> None:
    state = RunState(done=TO_DESIGN, tries={"phase-3b": 1}, approved=["phase-3b"])
    gate = asked(FULL, state)
    on = answered(FULL, state, gate, "approve", None, {})
    assert (on.done, on.answers, on.feedback) == ([*TO_DESIGN, "checkpoint-a"], {"checkpoint-a": "approve"}, None)
    back = answered(FULL, state, gate, "reject", "smaller steps", {})
    assert (back.done, back.approved, back.tries, back.feedback) == (["phase-1", "phase-2"], [], {}, "smaller steps")


def test_what_was_said_before_is_kept_until_an_agent_has_heard_it() -> None:
    state = RunState(done=TO_DESIGN, feedback="mind the clock")
    assert answered(FULL, state, asked(FULL, state), "approve", None, {}).feedback == "mind the clock"
    assert answered(FULL, state, asked(FULL, state), "approve", "and the disk", {}).feedback == "and the disk"


@pytest.mark.parametrize("answer", ["yes", "", "APPROVE", "post", "done"])
def test_a_word_that_is_no_option_opens_nothing(answer: str) -> None:
    state = RunState(done=TO_DESIGN)
    with pytest.raises(InvalidParams):
        answered(FULL, state, asked(FULL, state), answer, None, {})


def with_tasks(text: str, **changes: object) -> RunState:
    return RunState(done=TO_TASKS, tasks=task_states(text, "tasks.md"), **changes)  # type: ignore[arg-type]


def test_every_question_understands_abandon_and_an_abandoned_run_stays_abandoned() -> None:
    one = "## Task 1: a\nmode: human_gate\n"
    failed = with_tasks("## Task 1: a\n")
    failed = failed.with_task(type(failed.tasks[0])(number=1, title="a", mode="sequential", retries=2))
    states = [
        RunState(done=TO_DESIGN),
        RunState(done=TO_DESIGN[:-1], tries={"phase-3b": 2}),
        RunState(done=TO_DESIGN[:-1], unread={"phase-3b": 2}),
        with_tasks(one),
        failed,
    ]
    for state in states:
        gate = asked(FULL, state)
        assert gate.type in ("checkpoint", "human_gate"), gate
        over = answered(FULL, state, gate, "abandon", None, {})
        assert decide(FULL, over, Facts(), {}) == Action(type="done", abandoned=True)
        for word in (*gate.options, "abandon"):
            with pytest.raises(IllegalTransition, match="the run is abandoned"):
                answered(FULL, over, gate, word, None, {})


def test_a_gate_is_answered_once_and_not_before_its_turn() -> None:
    state = RunState(done=TO_DESIGN)
    gate = asked(FULL, state)
    after = answered(FULL, state, gate, "approve", None, {})
    for word in ("approve", "reject"):
        with pytest.raises(IllegalTransition, match="answered before"):
            answered(FULL, after, gate, word, None, {})
    later = Action(type="checkpoint", phase="checkpoint-b", gate="checkpoint-b", options=["approve", "reject"])
    with pytest.raises(IllegalTransition, match="phase-4 comes before it"):
        answered(FULL, after, later, "approve", None, {})


def test_an_agents_action_is_no_question() -> None:
    """An answer that arrives late, when the run went on, must not pass the review that is under way."""
    state = RunState(done=TO_DESIGN[:-1])
    review = asked(FULL, state)
    assert (review.type, review.phase) == ("spawn_agent", "phase-3b")
    with pytest.raises(IllegalTransition, match="not a question"):
        answered(FULL, state, msgspec.structs.replace(review, options=["approve"]), "approve", None, {})


def test_skipped_is_not_done_and_both_go_on() -> None:
    state = with_tasks("## Task 1: a\nmode: human_gate\n## Task 2: b\ndepends_on: [1]\n")
    gate = asked(FULL, state)
    assert (gate.type, gate.options, gate.tasks) == ("human_gate", ["done", "skip", "abandon"], [1])
    skipped = answered(FULL, state, gate, "skip", None, {}).task(1)
    done = answered(FULL, state, gate, "done", None, {}).task(1)
    assert (skipped.skipped, skipped.implemented, skipped.verdict) == (True, False, None)
    assert (done.skipped, done.implemented, done.verdict) == (False, True, "DONE")
    for answer in ("skip", "done"):
        assert asked(FULL, answered(FULL, state, gate, answer, None, {})).tasks == [2]


def test_a_list_of_nothing_but_a_persons_tasks_has_nothing_to_review() -> None:
    state = with_tasks("## Task 1: a\nmode: human_gate\n## Task 2: b\nmode: human_gate\n")
    for answer in ("done", "skip"):
        state = answered(FULL, state, asked(FULL, state), answer, None, {})
    assert state.done[-1] == "phase-5"
    assert asked(FULL, state).phase == "phase-7"


def test_a_task_that_was_sent_back_too_often_is_a_persons_to_decide() -> None:
    state = with_tasks("## Task 1: a\n## Task 2: b\n")
    state = state.with_task(type(state.tasks[0])(number=1, title="a", mode="sequential", retries=2))
    gate = asked(FULL, state)
    assert (gate.gate, gate.tasks, gate.shows) == ("task-1-limit", [1], "review-1.md")
    again = answered(FULL, state, gate, "reject", "use the old one", {})
    assert (again.task(1).retries, again.task(1).implemented, again.feedback) == (0, False, "use the old one")
    accepted = answered(FULL, state, gate, "approve", None, {})
    assert (accepted.task(1).verdict, accepted.task(1).implemented) == ("ACCEPTED", True)
    assert asked(FULL, accepted).tasks == [2]


def test_a_review_at_its_limit_is_passed_or_begun_anew_by_a_person() -> None:
    state = RunState(done=TO_DESIGN[:-1], tries={"phase-3b": 2}, unread={"phase-3b": 1})
    gate = asked(FULL, state)
    assert gate.gate == "phase-3b-limit"
    passed = answered(FULL, state, gate, "approve", None, {})
    assert passed.done == TO_DESIGN
    assert passed.approved == [], "a person let it pass, the review did not: --auto opens nothing after it"
    assert not asked(FULL, passed, auto=True).automatic
    back = answered(FULL, state, gate, "reject", None, {})
    assert (back.done, back.tries, back.unread) == (["phase-1", "phase-2"], {}, {})


def test_a_review_that_nobody_can_read_is_asked_for_again_and_the_work_stays() -> None:
    state = RunState(done=TO_DESIGN[:-1], tries={"phase-3b": 1}, unread={"phase-3b": 2})
    gate = asked(FULL, state)
    assert gate.gate == "phase-3b-limit"
    again = answered(FULL, state, gate, "reject", None, {})
    assert (again.done, again.unread) == (TO_DESIGN[:-1], {})
    assert asked(FULL, again).phase == "phase-3b"


def test_a_reader_of_unreadable_code_reviews_keeps_the_work() -> None:
    state = with_tasks("## Task 1: a\n").but(unread={"phase-6": 2})
    state = state.with_task(type(state.tasks[0])(number=1, title="a", mode="sequential", implemented=True))
    state = state.but(done=[*TO_TASKS, "phase-5"])
    gate = asked(FULL, state)
    assert gate.gate == "phase-6-limit"
    again = answered(FULL, state, gate, "reject", None, {})
    assert (again.done[-1], again.task(1).implemented, again.unread) == ("phase-5", True, {})
    assert answered(FULL, state, gate, "approve", None, {}).done[-1] == "phase-6"


def test_rejecting_after_the_tasks_has_all_of_them_done_again_but_a_persons() -> None:
    document = own()
    document["phases"].insert(
        5, {"id": "end", "label": "End", "kind": "gate", "options": ["go", "reject"], "returns_to": "do"}
    )
    flow = read_flow(document, nothing_else)
    state = RunState(
        done=["make", "judge", "ask", "do", "look"],
        tasks=task_states("## Task 1: a\n## Task 2: b\nmode: human_gate\n", "list.md"),
    )
    a, b = state.tasks
    state = state.with_task(type(a)(number=1, title="a", mode=a.mode, implemented=True, verdict="PASS", retries=1))
    state = state.with_task(type(b)(number=2, title="b", mode=b.mode, implemented=True, verdict="DONE"))
    again = answered(flow, state, asked(flow, state), "reject", None, {})
    assert (again.task(1).implemented, again.task(1).verdict, again.task(2).implemented) == (False, None, True)
    assert asked(flow, again).tasks == [1]
