"""The engine under random but legal agents: every run ends, nothing is skipped that the flow does not skip, no gate is
passed without its answer, and the same state gives the same action; also where it is stopped again and again. Nothing
is handed out without end to agents of whom nothing is taken, and nothing goes on with a text that nobody approved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.answers import answered
from handrail.domain.pipeline.dispatch import handed_out
from handrail.domain.pipeline.engine import BUDGET, PAUSED, UNTAKEN_TRIES, UNTIL, Action, decide
from handrail.domain.pipeline.flow import Flow, Phase, read_flow
from handrail.domain.pipeline.results import fail, refused, report
from handrail.domain.pipeline.state import Facts, RunState, is_left_out
from handrail.kernel.errors import ArtefactMissing

FLOWS = Path(__file__).parents[3] / "src" / "handrail" / "flows"
MOST_STEPS = 2000


def flow_named(name: str) -> Flow:
    document = yaml.safe_load((FLOWS / f"{name}.yaml").read_text(encoding="utf-8"))
    return read_flow(document, flow_named)


@st.composite
def task_lists(draw: st.DrawFn) -> str:
    count = draw(st.integers(1, 6))
    lines = ["# Tasks"]
    for number in range(1, count + 1):
        mode = draw(st.sampled_from(["sequential", "parallel", "parallel", "human_gate"]))
        needs = draw(st.lists(st.integers(1, number - 1), unique=True, max_size=2)) if number > 1 else []
        lines += [f"## Task {number}: Part {number}", f"mode: {mode}", f"depends_on: {needs}", ""]
    return "\n".join(lines)


class Runner:
    """Carries out what the engine says, with luck drawn from the test."""

    def __init__(self, flow: Flow, facts: Facts, data: st.DataObject) -> None:
        self.flow, self.facts, self.data = flow, facts, data
        self.state = RunState()
        self.files: dict[str, str] = {"request.md": "Do it."}
        self.history: list[Action] = []
        self.asked: list[str] = []
        self.version = 0

    def run(self) -> None:
        for _ in range(MOST_STEPS):
            action = decide(self.flow, self.state, self.facts, self.files)
            assert decide(self.flow, self.state, self.facts, self.files) == action
            self.disturb(action)
            self.history.append(action)
            if action.type == "done":
                return
            self.carry_out(action)
        raise AssertionError("the run does not end")

    def disturb(self, action: Action) -> None:
        """What comes between a decision and its action; nothing here."""

    def carry_out(self, action: Action) -> None:
        match action.type:
            case "checkpoint" | "human_gate":
                self.answer(action)
                return
            case "write_file":
                self.files[action.path or ""] = action.content or ""
            case "spawn_agent":
                self.write(action)
        self.report(action)

    def report(self, action: Action) -> None:
        try:
            self.state = report(self.flow, self.state, self.facts, self.files, action.phase).state
        except ArtefactMissing as missing:
            assert action.type != "exec", "a command has no file that could be missing"
            self.state = refused(self.state, action.phase, missing.message)

    def answer(self, action: Action) -> None:
        if action.automatic:
            assert self.facts.auto
            assert not self.facts.humans_decide
            word = action.options[0]
        else:
            # A person who rejects for ever would let no run end.
            options = action.options if len(self.asked) < 12 else [one for one in action.options if one != "reject"]
            word = self.data.draw(st.sampled_from(options))
            self.asked.append(action.gate or "")
        self.state = answered(self.flow, self.state, action, word, None, self.files)

    def write(self, action: Action) -> None:
        phase = self.flow.phase(action.phase)
        names = [(phase.output or "").replace("{N}", str(task)) for task in action.tasks] or [action.output or ""]
        for name in names:
            self.version += 1
            if phase.kind in ("review", "task-reviews"):
                words = [*phase.passes, *phase.fails, "MAYBE"] if self.version < 300 else phase.passes
                verdict = self.data.draw(st.sampled_from(words))
                self.files[name] = f"# Review {self.version}\n\n## Verdict: {verdict}\n"
            elif any(other.plan == name for other in self.flow.phases):
                self.files[name] = self.data.draw(task_lists())
            elif self.version > 300 or self.data.draw(st.integers(0, 9)) > 0:
                self.files[name] = f"## Text {self.version}\n"


def expected_stop(flow: Flow, facts: Facts, action: Action) -> str | None:
    """Why this action may not be done, by the words of the document: what a person said goes before what is spent."""
    order = [phase.id for phase in flow.phases]
    if action.type == "done":
        return None
    if facts.paused:
        return PAUSED
    if facts.until is not None and action.phase in order[order.index(facts.until) + 1 :]:
        return UNTIL
    return BUDGET if facts.over and action.type == "spawn_agent" else None


class Halting(Runner):
    """One that is stopped before some of its actions, in every way there is, and goes on."""

    stops = 0

    def disturb(self, action: Action) -> None:
        if self.stops >= 30 or self.data.draw(st.booleans()):
            return
        self.stops += 1
        until = self.data.draw(st.sampled_from([None, *(phase.id for phase in self.flow.phases)]))
        paused, over = self.data.draw(st.booleans()), self.data.draw(st.sampled_from(["", "all is spent"]))
        facts = msgspec.structs.replace(self.facts, until=until, paused=paused, over=over)
        stopped = decide(self.flow, self.state, facts, self.files)
        assert decide(self.flow, self.state, facts, self.files) == stopped
        expected = expected_stop(self.flow, facts, action)
        assert stopped == (Action(type="done", phase=action.phase, stopped=expected) if expected else action)
        assert decide(self.flow, self.state, self.facts, self.files) == action, "a stop loses nothing"


class Failing(Runner):
    """One whose actions fail now and then, commands too; a person is asked after the second time in a row."""

    failures = 0
    in_a_row = 0

    def carry_out(self, action: Action) -> None:
        question = action.type in ("checkpoint", "human_gate")
        if action.gate == f"{action.phase}-failed":
            assert self.in_a_row == 2 or self.state.untaken[action.phase] == UNTAKEN_TRIES
            assert ("approve" in action.options) == (self.flow.phase(action.phase).kind == "exec")
        if question or self.failures >= 40 or self.data.draw(st.integers(0, 3)):
            before = self.state
            super().carry_out(action)
            same = self.state.but(untaken=before.untaken, again=before.again) == before
            self.in_a_row = self.in_a_row if same and not question else 0  # a forgotten file is no work in between
            return
        self.failures += 1
        self.in_a_row += 1
        self.state = fail(self.flow, self.state, self.facts, self.files, action.phase, "it broke").state
        asked = decide(self.flow, self.state, self.facts, self.files)
        often = self.in_a_row == 2 or self.state.untaken[action.phase] == UNTAKEN_TRIES
        assert asked.gate == f"{action.phase}-failed" if often else asked == action


class Stubborn(Runner):
    """One whose agents mostly bring nothing: no file, the old one again, a review that says nothing, a failure."""

    wasted = 0
    in_a_row = 0

    def carry_out(self, action: Action) -> None:
        before = self.came_of_it()
        if action.type in ("checkpoint", "human_gate"):
            super().carry_out(action)
            self.in_a_row = 0
            return
        self.in_a_row += 1
        assert self.in_a_row <= UNTAKEN_TRIES, f"{action.phase} is handed out without end"
        self.state = handed_out(self.flow, self.state, self.files, action.phase, action.tasks)
        self.waste(action) if self.wasted < 60 and self.data.draw(st.integers(0, 3)) else super().carry_out(action)
        if self.came_of_it() != before:
            self.in_a_row = 0

    def came_of_it(self) -> tuple[Any, ...]:
        return self.state.done, self.state.judged, self.state.command, self.state.tasks

    def waste(self, action: Action) -> None:
        self.wasted += 1
        match self.data.draw(st.sampled_from(["nothing", "unreadable", "failed"])):
            case "failed":
                self.state = fail(self.flow, self.state, self.facts, self.files, action.phase, "it broke").state
                return
            case "unreadable" if action.output is not None and "review" in action.output:
                for number in action.tasks or [0]:
                    self.files[action.output.replace("{N}", str(number))] = "It is fine.\n"
        self.report(action)


class Meddling(Runner):
    """One in which somebody changes documents after a person approved them."""

    DOCUMENTS = ("design.md", "summary.md")
    meddled = 0

    def __init__(self, flow: Flow, facts: Facts, data: st.DataObject) -> None:
        super().__init__(flow, facts, data)
        self.approved: dict[str, str | None] = {}
        """The text of each document that an answer let pass last, whoever gave it."""

    def carry_out(self, action: Action) -> None:
        shows = action.shows or ""
        self.state = handed_out(self.flow, self.state, self.files, action.phase, action.tasks)
        for gate in self.flow.phases:
            name = gate.shows or ""
            passed = gate.kind == "gate" and name in self.approved and gate.id in self.state.done
            if passed and not self.acted_on(gate):
                assert self.files.get(name) == self.approved[name], f"{action.phase} goes on unasked"
        if action.gate == action.phase and shows in self.approved and self.files.get(shows) != self.approved[shows]:
            assert not action.automatic, "the review was of another text"
        super().carry_out(action)
        if action.gate == action.phase and shows in self.DOCUMENTS:
            self.approved.pop(shows, None)
            if action.phase in self.state.done:
                self.approved[shows] = self.files.get(shows)
        if self.meddled < 10 and self.data.draw(st.integers(0, 3)) == 0:
            self.meddle()

    def acted_on(self, gate: Phase) -> bool:
        """Whether what its answer let happen has happened, so that a change of the text comes too late."""
        return any(gate.id in phase.after_answer and phase.id in self.state.done for phase in self.flow.phases)

    def meddle(self) -> None:
        name = self.data.draw(st.sampled_from(self.DOCUMENTS))
        if name in self.approved and self.state.answers.get("post-to-source") != "skip":
            self.meddled += 1
            self.files[name] = f"## Another text {self.meddled}\n"
            if self.data.draw(st.booleans()):
                del self.files[name]


@pytest.mark.parametrize("name", ["light", "full"])
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data(), auto=st.booleans())
def test_nothing_goes_on_with_a_text_that_nobody_approved(name: str, data: st.DataObject, auto: bool) -> None:
    check_run(Meddling(flow_named(name), Facts(source_type="github_issue", auto=auto), data))


@pytest.mark.parametrize("name", ["light", "full"])
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data(), auto=st.booleans())
def test_nothing_is_handed_out_without_end_to_whom_nothing_is_taken_of(
    name: str, data: st.DataObject, auto: bool
) -> None:
    check_run(Stubborn(flow_named(name), Facts(source_type="github_issue", auto=auto), data))


@pytest.mark.parametrize("name", ["light", "full"])
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data(), auto=st.booleans())
def test_a_run_whose_actions_fail_ends_too(name: str, data: st.DataObject, auto: bool) -> None:
    check_run(Failing(flow_named(name), Facts(source_type="github_issue", auto=auto), data))


@pytest.mark.parametrize("name", ["light", "standard", "full"])
@settings(max_examples=settings().max_examples // 3)  # a run is a hundred steps
@given(data=st.data(), auto=st.booleans(), skip_pr=st.booleans(), humans=st.booleans())
def test_every_run_ends_and_skips_nothing(
    name: str, data: st.DataObject, auto: bool, skip_pr: bool, humans: bool
) -> None:
    facts = Facts(source_type="github_issue", auto=auto, skip_pr=skip_pr, humans_decide=humans)
    check_run(Runner(flow_named(name), facts, data))


@pytest.mark.parametrize("name", ["light", "standard", "full"])
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data(), auto=st.booleans(), humans=st.booleans())
def test_a_run_that_is_stopped_again_and_again_ends_too(
    name: str, data: st.DataObject, auto: bool, humans: bool
) -> None:
    check_run(Halting(flow_named(name), Facts(source_type="github_issue", auto=auto, humans_decide=humans), data))


def check_run(runner: Runner) -> None:
    """Lets it run to its end, and looks at what it left out."""
    runner.run()
    facts = runner.facts
    if runner.state.ended == "abandoned":
        assert runner.history[-1].abandoned
        return
    due = [phase.id for phase in runner.flow.phases if not is_left_out(phase, runner.state, runner.flow, facts)]
    assert set(runner.state.done) == set(due)
    for phase in runner.flow.phases:
        if (
            phase.kind == "gate"
            and phase.id in due
            and not (facts.auto and not facts.humans_decide and phase.auto_after)
        ):
            assert phase.id in runner.asked, "nobody was asked"
    for task in runner.state.tasks:
        assert task.implemented or task.skipped


def one_run(**facts: Any) -> Runner:
    class Lucky:
        def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
            return strategy.example()

    return Runner(flow_named("full"), Facts(**facts), Lucky())  # type: ignore[arg-type]


def test_parallel_tasks_are_handed_out_together_even_when_others_stand_between() -> None:
    runner = one_run()
    listed = "## Task 1: a\nmode: parallel\n## Task 2: b\ndepends_on: [1]\n## Task 3: c\nmode: parallel\n"
    runner.state = RunState(done=["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"])
    runner.files |= {"tasks.md": listed}
    runner.state = report(runner.flow, runner.state, runner.facts, runner.files, "phase-4").state
    runner.state = runner.state.but(done=[*runner.state.done, "phase-4b", "checkpoint-b"])
    assert decide(runner.flow, runner.state, runner.facts, runner.files).tasks == [1, 3]


def test_a_task_is_asked_about_only_when_it_is_its_turn() -> None:
    """Sent back too often while what it depends on is to be done again: a question that nobody could answer yet."""
    runner = one_run()
    listed = "## Task 1: a\n## Task 2: b\ndepends_on: [1]\n"
    runner.state = RunState(done=["phase-1", "phase-2", "phase-3", "phase-3b", "checkpoint-a"])
    runner.files |= {"tasks.md": listed}
    runner.state = report(runner.flow, runner.state, runner.facts, runner.files, "phase-4").state
    tasks = [msgspec.structs.replace(task, retries=9 * (task.number == 2)) for task in runner.state.tasks]
    runner.state = runner.state.but(done=[*runner.state.done, "phase-4b", "checkpoint-b"], tasks=tasks)
    assert decide(runner.flow, runner.state, runner.facts, runner.files).tasks == [1]
    runner.state = runner.state.with_task(msgspec.structs.replace(tasks[0], implemented=True))
    asked = decide(runner.flow, runner.state, runner.facts, runner.files)
    assert asked.gate == "task-2-limit"
    assert answered(runner.flow, runner.state, asked, "approve", None, {}).task(2).implemented


@pytest.mark.parametrize(
    ("facts", "done", "said"),
    [
        ({"until": "phase-3"}, ["phase-1", "phase-2"], ("spawn_agent", "phase-3", None)),
        ({"until": "phase-3"}, ["phase-1", "phase-2", "phase-3"], ("done", "phase-3b", "until")),
        ({"paused": True}, [], ("done", "phase-1", "paused")),
        ({"over": "all"}, [], ("done", "phase-1", "budget")),
        ({"over": "all"}, ["phase-1", "phase-2", "phase-3", "phase-3b"], ("checkpoint", "checkpoint-a", None)),
        ({"over": "all", "paused": True, "until": "phase-1"}, ["phase-1"], ("done", "phase-2", "paused")),
    ],
)
def test_a_run_stops_where_it_is_told_to(
    facts: dict[str, Any], done: list[str], said: tuple[str, str, str | None]
) -> None:
    action = decide(flow_named("full"), RunState(done=done), Facts(**facts), {})
    assert (action.type, action.phase, action.stopped) == said


def test_what_is_over_is_over_whatever_stops_it() -> None:
    facts = Facts(paused=True, until="phase-1", over="all")
    for ended in ("completed", "abandoned"):
        action = decide(flow_named("full"), RunState(ended=ended), facts, {})
        assert (action.type, action.stopped, action.abandoned) == ("done", None, ended == "abandoned")
