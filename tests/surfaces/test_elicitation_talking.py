"""A call that asks a person: what they say is brought in the same call, once, to the gate they were shown; and whoever
says nothing decides nothing. The person is a script, the clock stands still."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.errors import InvalidParams, StoreAway, StoreRefused
from handrail.kernel.ledger import Actor, Event
from handrail.kernel.records import Query
from handrail.operation import Question
from handrail.surfaces.elicitation import Meanwhile, Patience
from handrail.surfaces.invocation import CallingClient, invoke
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

Script = Callable[[Question, Callable[[], float]], Mapping[str, str] | None]
CLIENT = Actor("editor", "mcp")


class Scripted:
    """A person who does what a test says, and remembers what they were asked."""

    def __init__(self, *answers: Script | Mapping[str, str] | None) -> None:
        self.answers = list(answers)
        self.questions: list[Question] = []
        self.told: list[Mapping[str, Any]] = []
        self.before: Mapping[str, Any] | None = None
        self.open = True

    def earlier(self) -> Mapping[str, Any] | None:
        return self.before

    def is_open_to(self, question: Question) -> bool:
        return self.open

    def ask(self, question: Question, told: Mapping[str, Any], wait_s: Callable[[], float]) -> Mapping[str, str] | None:
        self.questions.append(question)
        self.told.append(told)
        answer = self.answers.pop(0) if self.answers else None
        return answer(question, wait_s) if callable(answer) else answer


class Table:
    """A run that a scripted orchestrator has brought to the action before a gate, and a person who can be asked."""

    def __init__(self, folder: Path, *, gates: int = 1) -> None:
        """With two gates, the first one leads straight to the second."""
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan")
        self.work = Orchestrator(self.desk.call, folder / "project", effort="SM"[gates - 1])
        self.now = 0.0
        self.told: list[float] = []
        self.client = CallingClient()
        self.work.written["review-design.md"] = [f"{n}\n## Verdict: REVISE\n" for n in range(9)]
        last = ("phase-3", "phase-3b")[gates - 1]
        action = self.work.run(lambda _: self.work.phases().count(last) == gates)
        self.work.produce(action["output_file"])
        self.done = {"workspace": self.work.workspace, "previous_action_complete": True, "previous_tokens": 7}

    def next(self, person: Scripted | None, *, patience: Patience | None = None, **arguments: Any) -> dict[str, Any]:
        operation = self.desk._handrail.switch.find("pipeline_next_action")
        assert operation is not None
        given = arguments or self.done
        patience = patience or Patience(now_s=lambda: self.now)
        meanwhile = Meanwhile(patience=patience, tell=lambda so_far, _: self.told.append(so_far), person=person)
        answer = invoke(
            operation,
            self.desk._handrail.call,
            {"workspace": self.work.workspace, **given},
            actor=CLIENT,
            client=self.client,
            meanwhile=meanwhile,
        )
        assert isinstance(answer, dict)
        return answer

    def gates(self) -> list[Gate]:
        return list(self.desk.store.run(CLIENT, lambda unit: unit.select(Gate, Query((), ("created_at", "id"), 20))))

    def answers(self) -> list[Event]:
        return [event for event in self.desk.store.events(self.work.workflow) if event.kind == "gate.answered"]

    def spent(self) -> int:
        return int(self.desk.call("state_resume_info", workspace=self.work.workspace)["total_tokens"])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_an_approval_opens_the_gate_in_the_same_call(table: Table) -> None:
    person = Scripted({"answer": "approve"})
    spent = table.spent()
    action = table.next(person)
    assert (action["type"], action["phase"]) == ("spawn_agent", "phase-4")
    (gate,) = table.gates()
    assert (gate.answer, gate.feedback, gate.answered_by, gate.channel) == ("approve", None, "editor", "elicitation")
    (question,) = person.questions
    assert question.id == gate.id
    assert [(field.name, field.options, field.required) for field in question.form] == [
        ("answer", ("approve", "reject"), True),
        ("feedback", (), False),
    ]
    assert table.spent() == spent + 7, "what was reported was reported once"
    assert action["report_result"]["artifact_written"] == "design.md", "and is told, though another action came of it"


def test_a_rejection_takes_what_was_said_to_the_next_agent_once(table: Table) -> None:
    action = table.next(Scripted({"answer": "reject", "feedback": "too slow\nby far"}))
    assert action["phase"] == "phase-3"
    assert "> too slow\n> by far" in action["prompt"]
    (gate,) = table.gates()
    assert (gate.answer, gate.feedback, gate.channel) == ("reject", "too slow\nby far", "elicitation")
    table.work.produce("design.md")
    again = table.next(Scripted({"answer": "approve"}))
    assert again["phase"] == "phase-4"
    assert "too slow" not in again["prompt"]


def test_where_nobody_answers_the_result_is_as_it_was(table: Table) -> None:
    plain = Table(table.work.project.parent / "plain").next(None)
    asked = table.next(Scripted(None))
    assert asked["type"] == "checkpoint"
    assert {**asked, "gate_id": "", "present_to_user": ""} == {**plain, "gate_id": "", "present_to_user": ""}
    assert [gate.status for gate in table.gates()] == ["open"]


def test_whoever_is_not_open_to_it_is_not_asked(table: Table) -> None:
    person = Scripted({"answer": "approve"})
    person.open = False
    assert table.next(person)["type"] == "checkpoint"
    assert person.questions == []


def test_an_action_that_asks_nothing_is_nobodys_question(table: Table) -> None:
    table.next(None)
    table.next(None, user_response="reject")
    person = Scripted({"answer": "approve"})
    assert table.next(person, previous_action_complete=False)["phase"] == "phase-3"
    assert person.questions == []


def test_an_answer_in_the_call_is_taken_before_anybody_is_asked(table: Table) -> None:
    table.next(None)
    person = Scripted({"answer": "approve"})
    assert table.next(person, user_response="reject slower")["phase"] == "phase-3"
    assert person.questions == []
    assert [gate.channel for gate in table.gates()] == ["mcp"]


def test_what_a_person_says_is_theirs_and_not_their_agents(table: Table) -> None:
    agent = table.desk.call_as(table.client, "agent_register", name="Anna", runtime="custom")["id"]
    table.next(Scripted({"answer": "reject", "feedback": "no"}))
    table.work.produce("design.md")
    table.next(Scripted(None))
    table.next(Scripted(None), user_response="approve")
    assert [(gate.answered_by, gate.channel) for gate in table.gates()] == [("editor", "elicitation"), (agent, "mcp")]


def test_a_text_that_was_changed_while_they_read_it_is_shown_again(table: Table) -> None:
    def reads(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        table.work.write("design.md", "# Another one\n\n## Part\n")
        return {"answer": "approve"}

    action = table.next(Scripted(reads))
    assert action["type"] == "checkpoint"
    assert "Another one" in action["present_to_user"]
    assert action["warnings"] == [
        "what the person answered was not taken: design.md was changed since it was shown",
    ]
    assert action["report_result"]["artifact_written"] == "design.md"
    assert [gate.status for gate in table.gates()] == ["withdrawn", "open"]


def test_a_form_that_cannot_be_read_decides_nothing_and_says_so(table: Table) -> None:
    def scribbles(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        raise InvalidParams("answer was left empty")

    action = table.next(Scripted(scribbles))
    assert action["type"] == "checkpoint"
    assert action["warnings"] == ["what the person answered was not taken: answer was left empty"]
    assert [gate.status for gate in table.gates()] == ["open"]


def test_a_store_that_fails_meanwhile_is_no_matter_of_the_answer(table: Table) -> None:
    def fails(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        raise StoreRefused("the disk is full")

    with pytest.raises(StoreRefused):
        table.next(Scripted(fails))


def test_what_was_reported_before_a_person_was_asked_is_answered_although_the_store_went_away(table: Table) -> None:
    def fails(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        raise StoreAway("the server does not answer", hint="call again")

    action = table.next(Scripted(fails))
    assert action["type"] == "checkpoint"
    assert action["warnings"] == ["while the person was asked: the server does not answer; call again"]
    assert len(table.gates()) == 1


def answers_elsewhere(table: Table, word: str) -> Script:
    """Somebody answers by other means, while the form is open."""

    def script(question: Question, wait_s: Callable[[], float]) -> None:
        assert wait_s() > 0
        assert wait_s() > 0, "nothing has happened"
        table.desk.call("pipeline_next_action", workspace=table.work.workspace, user_response=word)
        assert wait_s() == 0, "the question stands no more"

    return script


def test_a_gate_that_is_answered_elsewhere_takes_the_question_back(table: Table) -> None:
    person = Scripted(answers_elsewhere(table, "approve"))
    action = table.next(person)
    assert action["phase"] == "phase-4"
    assert action["report_result"]["artifact_written"] == "design.md"
    assert [(gate.answer, gate.channel) for gate in table.gates()] == [("approve", "test")]


def test_an_answer_that_comes_after_another_one_decides_nothing(table: Table) -> None:
    def too_late(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        table.desk.call("pipeline_next_action", workspace=table.work.workspace, user_response="reject")
        return {"answer": "approve"}

    action = table.next(Scripted(too_late))
    assert action["phase"] == "phase-3"
    assert "what the person answered was not taken" in action["warnings"][0]
    assert [(gate.answer, gate.channel) for gate in table.gates()] == [("reject", "test")]


def test_what_happens_elsewhere_does_not_disturb_a_question_that_stands(table: Table) -> None:
    def looks(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        assert wait_s() > 0
        for _ in range(3):
            table.desk.plan({"name": "one"}, name="Something else")
            assert wait_s() > 0
        return {"answer": "approve"}

    assert table.next(Scripted(looks))["phase"] == "phase-4"


def test_there_is_time_up_to_the_limit_and_progress_is_told(table: Table) -> None:
    patience = Patience(now_s=lambda: table.now)
    pauses: list[float] = []

    def thinks(question: Question, wait_s: Callable[[], float]) -> None:
        while (pause := wait_s()) > 0:
            pauses.append(pause)
            table.now += pause * 0.75

    table.now = 100.0
    assert table.next(Scripted(thinks), patience=patience)["type"] == "checkpoint"
    assert sum(pauses) * 0.75 <= patience.most_s == 25
    assert max(pauses) == patience.look_s
    assert len(table.told) == 4
    assert table.told == sorted(table.told)


def test_after_an_answer_that_leads_to_another_gate_that_one_is_asked_too(tmp_path: Path) -> None:
    table = Table(tmp_path, gates=2)
    person = Scripted({"answer": "approve"}, {"answer": "reject", "feedback": "no"})
    action = table.next(person)
    assert action["phase"] == "phase-3"
    answers = [(change.key, (change.after or {})["answer"]) for event in table.answers() for change in event.changes]
    first, second = table.gates()
    assert answers == [(first.id, "approve"), (second.id, "reject")]
    assert [question.id for question in person.questions] == [first.id, second.id]
    assert {event.channel for event in table.answers()} == {"elicitation"}
    assert action["report_result"]["verdict_parsed"] == "REVISE", "what the first gate came with is not lost"


def test_a_second_question_without_time_to_read_it_is_left_for_the_next_call(tmp_path: Path) -> None:
    table = Table(tmp_path, gates=2)

    def slowly(question: Question, wait_s: Callable[[], float]) -> Mapping[str, str]:
        table.now += 16.0
        return {"answer": "approve"}

    person = Scripted(slowly, {"answer": "approve"})
    assert table.next(person)["name"] == "checkpoint-a"
    assert len(person.questions) == 1
    assert table.next(person)["phase"] == "phase-4"


def test_a_wait_for_a_person_is_no_longer_one_where_they_can_be_asked(table: Table) -> None:
    """They are asked at once, instead of after the wait."""
    person = Scripted({"answer": "approve"})
    action = table.next(person, previous_action_complete=True, wait_ms=25_000)
    assert action["phase"] == "phase-4"


def test_a_wait_goes_on_where_they_do_not_want_to_be_asked_and_is_told(table: Table) -> None:
    person = Scripted()
    person.open = False
    ticks = itertools.count()
    patience = Patience(tell_s=0.001, now_s=lambda: float(next(ticks)))
    action = table.next(person, patience=patience, previous_action_complete=True, wait_ms=25_000)
    assert action["still_waiting"] is True
    assert table.told
    assert table.told == sorted(table.told)


def test_the_same_call_with_an_answer_reports_nothing_again(table: Table) -> None:
    """As a stateless client makes it: the whole request once more."""
    first = table.next(Scripted(None))
    spent = table.spent()
    person = Scripted({"answer": "approve"})
    person.before = {"report_result": first["report_result"], "warning": "said before"}
    action = table.next(person)
    assert action["phase"] == "phase-4"
    assert table.spent() == spent
    assert action["report_result"] == first["report_result"]
    assert action["warning"] == "said before"
    action = table.next(person)
    assert action["phase"] == "phase-4", "once more, it reports nothing of what was handed out meanwhile"
    assert table.spent() == spent
