"""Gates that the person at an MCP client answers: what goes over the wire in both eras, when nobody is asked, and when
nobody is asked again."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.replies import answer
from handrail.protocol.revisions import META_CAPABILITIES, META_CLIENT, META_VERSION, NEWEST
from handrail.protocol.wire import Request, Response
from handrail.surfaces.cli.main import cli
from handrail.surfaces.elicitation import Patience
from handrail.surfaces.mcp.tools import CatalogMethods, CatalogTools
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.world import World, through_handler

DEADLINE_S = 10.0
ELICITS: dict[str, Any] = {"elicitation": {}}
PATIENT = Patience()
APPROVES = {"action": "accept", "content": {"answer": "approve"}}
NEXT = "pipeline_next_action"


class Waiting:
    """A server with a run that waits at its first gate, and a client of it."""

    def __init__(self, folder: Path, patience: Patience, monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
        for name, kind in (("CatalogTools", CatalogTools), ("CatalogMethods", CatalogMethods)):
            monkeypatch.setattr(f"handrail.wiring.{name}", partial(kind, patience=patience))
        self.world = World(folder, profile="", toolsets="pipeline,plan", **given)
        self.run = Orchestrator(self._quietly, self.world.project, effort="S")
        self.run.run(lambda action: action["type"] == "checkpoint")
        self.server = self.world.server()
        self.connection = self.connect(ELICITS)
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()

    def _quietly(self, tool: str, **arguments: Any) -> Any:
        outcome, answer = through_handler(self.world, tool, arguments)
        assert outcome == "ok", answer
        return answer

    def connect(self, can: Mapping[str, Any], revision: str = "2025-11-25") -> Connection:
        connection = Connection(lambda _: None)
        connection.revision = revision
        connection.client_capabilities = dict(can)
        connection.client_info = {"name": "editor"}
        return connection

    def begin(self, connection: Connection | None = None, *, bare: bool = False, **arguments: Any) -> Running:
        given = {"workspace": self.run.workspace, **arguments}
        meta = {"_meta": {"progressToken": "p"}}
        request = (
            Request("c", NEXT, {**given, **meta}) if bare else Request("c", "tools/call", {**_call(given), **meta})
        )
        return Running(self, self.server.open(connection or self.connection, request, self.heard.put))

    def stateless(self, name: str = "editor", can: Mapping[str, Any] | None = None, **params: Any) -> Any:
        """One stateless request on a connection of its own, as over HTTP."""
        meta = {META_VERSION: NEWEST, META_CAPABILITIES: ELICITS if can is None else can, META_CLIENT: {"name": name}}
        given = {"workspace": self.run.workspace, **params.pop("arguments", {})}
        request = Request("c", "tools/call", {**_call(given), **params, "_meta": meta})
        connection = Connection(self.heard.put, lasting=False)
        return self.server.serve(self.server.open(connection, request, self.heard.put))

    def question(self) -> dict[str, Any]:
        """The next thing the client hears that is no progress, which must be a question."""
        message = self.heard.get(timeout=DEADLINE_S)
        while message["method"] == "notifications/progress":
            message = self.heard.get(timeout=DEADLINE_S)
        assert message["method"] == "elicitation/create"
        return message

    def answers(self, question: Mapping[str, Any], result: Any, error: dict[str, Any] | None = None) -> None:
        self.connection.settle(Response(question["id"], result, error))

    def heard_methods(self) -> list[str]:
        methods: list[str] = []
        while not self.heard.empty():
            methods.append(self.heard.get()["method"])
        return methods

    def gates(self) -> list[Gate]:
        ledger = self.world.handrail().ledger
        return list(ledger.run(Actor("t", "t"), lambda unit: unit.select(Gate, Query((), ("created_at", "id"), 20))))

    def states(self) -> list[tuple[str, str | None, str | None]]:
        return [(gate.status, gate.answer, gate.channel) for gate in self.gates()]


def _call(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": NEXT, "arguments": arguments}


class Running:
    """A call on its own thread and what came of it."""

    def __init__(self, waiting: Waiting, exchange: Exchange) -> None:
        self.exchange = exchange
        self._outcome: list[Any] = []
        self._waiting = waiting
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        self._outcome.append(answer(self._waiting.server, self.exchange).data)

    def reply(self) -> Any:
        """The reply's result; None where there was no reply."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the call still waits"
        data = self._outcome[0]
        return None if data is None else msgspec.json.decode(data)["result"]

    def action(self) -> dict[str, Any]:
        result = self.reply()
        assert isinstance(result, dict)
        shown = result.get("structuredContent", result)
        assert isinstance(shown, dict)
        return shown


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    return Waiting(tmp_path, PATIENT, monkeypatch)


@pytest.fixture
def hurried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """Time passes with every look at the clock."""
    ticks = itertools.count()
    return Waiting(tmp_path, Patience(look_s=0.001, now_s=lambda: float(next(ticks))), monkeypatch)


# -- the handshake era ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bare", [False, True])
def test_a_person_is_asked_by_a_form_and_the_gate_is_theirs(waiting: Waiting, bare: bool) -> None:
    running = waiting.begin(bare=bare)
    question = waiting.question()
    assert question["params"]["mode"] == "form"
    assert question["params"]["message"].startswith("## ")
    assert question["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {
            "answer": {"type": "string", "title": "Your decision", "enum": ["approve", "reject"]},
            "feedback": {"type": "string", "title": "What the next agent is told", "maxLength": 10_000},
        },
        "required": ["answer"],
    }
    waiting.answers(question, APPROVES)
    assert running.action()["phase"] == "phase-4"
    (gate,) = waiting.gates()
    assert (gate.answer, gate.answered_by, gate.channel) == ("approve", "editor", "elicitation")


def test_a_rejection_reaches_the_next_agent_with_what_was_said(waiting: Waiting) -> None:
    running = waiting.begin()
    content = {"answer": "reject", "feedback": "too slow"}
    waiting.answers(waiting.question(), {"action": "accept", "content": content})
    action = running.action()
    assert action["phase"] == "phase-3"
    assert "too slow" in action["prompt"]
    assert waiting.states() == [("answered", "reject", "elicitation")]


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"action": "decline"}, None),
        ({"action": "cancel"}, None),
        ({"action": "cancel", "content": {"answer": "approve"}}, None),
        ({"action": "surprise"}, None),
        ({}, None),
        ("yes", None),
        (None, {"code": -32601, "message": "no such method"}),
    ],
)
def test_whoever_declines_decides_nothing_and_is_not_asked_again(waiting: Waiting, result: Any, error: Any) -> None:
    running = waiting.begin()
    waiting.answers(waiting.question(), result, error)
    action = running.action()
    assert (action["type"], action["still_waiting"]) == ("checkpoint", True)
    assert "warnings" not in action
    assert waiting.begin().action() == action
    assert waiting.heard_methods() == []
    assert waiting.states() == [("open", None, None)]


def test_a_gate_that_is_a_new_one_is_asked_again(waiting: Waiting) -> None:
    running = waiting.begin()
    waiting.answers(waiting.question(), {"action": "decline"})
    running.action()
    waiting.run.write("design.md", "# Another\n\n## Part\n")
    running = waiting.begin()
    question = waiting.question()
    assert "# Another" in question["params"]["message"]
    waiting.answers(question, APPROVES)
    assert running.action()["phase"] == "phase-4"
    assert waiting.states() == [("withdrawn", None, None), ("answered", "approve", "elicitation")]


def test_what_was_declined_on_one_connection_is_asked_on_another(waiting: Waiting) -> None:
    running = waiting.begin()
    waiting.answers(waiting.question(), {"action": "decline"})
    running.action()
    waiting.connection = waiting.connect(ELICITS)
    running = waiting.begin(take_over=True)
    waiting.answers(waiting.question(), APPROVES)
    assert running.action()["phase"] == "phase-4"


def test_a_form_with_a_strange_answer_decides_nothing_and_says_why(waiting: Waiting) -> None:
    running = waiting.begin()
    waiting.answers(waiting.question(), {"action": "accept", "content": {"answer": "abandon"}})
    action = running.action()
    assert action["type"] == "checkpoint"
    assert "answer is abandon, which is none of the options" in action["warnings"][0]
    assert waiting.states() == [("open", None, None)]
    assert waiting.begin().action()["type"] == "checkpoint"
    assert waiting.heard_methods() == [], "a client that fails at it is not asked again"


def test_nobody_waits_longer_than_the_limit_and_the_question_is_taken_back(hurried: Waiting) -> None:
    action = hurried.begin().action()
    assert (action["type"], action["still_waiting"]) == ("checkpoint", True)
    question = hurried.question()
    notes = [hurried.heard.get() for _ in range(hurried.heard.qsize())]
    assert notes[-1]["method"] == "notifications/cancelled"
    assert notes[-1]["params"]["requestId"] == question["id"]
    progress = [note["params"] for note in notes[:-1]]
    assert progress
    assert {(note["progressToken"], note["total"]) for note in progress} == {("p", 25)}
    assert max(note["progress"] for note in progress) <= 25
    hurried.answers(question, APPROVES)
    assert hurried.states() == [("open", None, None)], "an answer that comes too late answers nothing"
    hurried.begin().action()
    assert hurried.question()["id"] != question["id"], "nobody has declined: it is asked again"


def test_where_only_people_at_a_terminal_decide_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = Waiting(tmp_path, PATIENT, monkeypatch, approvals="human")
    assert waiting.stateless()["structuredContent"]["type"] == "checkpoint"
    assert waiting.begin().action()["type"] == "checkpoint"
    assert waiting.heard_methods() == []
    request = Request("c", "tools/call", _call({"workspace": waiting.run.workspace}))
    assert waiting.server.waits(waiting.connection, request) is False


@pytest.mark.parametrize(
    ("can", "revision"),
    [
        ({}, "2025-11-25"),
        ({"elicitation": {"url": {}}}, "2025-11-25"),
        ({"sampling": {}}, "2025-11-25"),
        (ELICITS, "2025-03-26"),
    ],
)
def test_for_a_client_without_forms_nothing_changes(waiting: Waiting, can: dict[str, Any], revision: str) -> None:
    connection = waiting.connect(can, revision)
    assert waiting.begin(connection).action()["type"] == "checkpoint"
    assert waiting.heard_methods() == []
    assert waiting.server.waits(connection, Request("c", "tools/call", _call({}))) is False


def test_only_what_asks_runs_beside_the_lane(waiting: Waiting) -> None:
    def waits(name: str) -> bool:
        return waiting.server.waits(waiting.connection, Request("c", "tools/call", {"name": name}))

    assert waits(NEXT)
    assert not waits("pipeline_report_result")
    assert not waits("no_such_tool")


def test_two_calls_at_once_ask_once(waiting: Waiting) -> None:
    first = waiting.begin()
    question = waiting.question()
    second = waiting.begin()
    assert second.action()["type"] == "checkpoint"
    waiting.answers(question, APPROVES)
    assert first.action()["phase"] == "phase-4"
    assert "elicitation/create" not in waiting.heard_methods()


def test_a_call_that_is_cancelled_takes_its_question_back_and_has_no_reply(waiting: Waiting) -> None:
    running = waiting.begin()
    question = waiting.question()
    running.exchange.cancel()
    assert running.reply() is None
    note = waiting.heard.get(timeout=DEADLINE_S)
    assert (note["method"], note["params"]["requestId"]) == ("notifications/cancelled", question["id"])
    running = waiting.begin()
    waiting.answers(waiting.question(), APPROVES)
    assert running.action()["phase"] == "phase-4", "the person has declined nothing"


def test_where_no_answer_can_come_any_more_the_call_is_answered(waiting: Waiting) -> None:
    running = waiting.begin()
    waiting.question()
    waiting.connection.close()
    assert running.action()["type"] == "checkpoint"


def test_a_gate_that_is_answered_elsewhere_ends_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(tmp_path, Patience(look_s=0.01), monkeypatch)
    running = waiting.begin()
    question = waiting.question()
    approve = ["approve", "--root", str(waiting.world.project)]
    done = click.testing.CliRunner(env={"HOME": str(waiting.world.home)}).invoke(cli, approve)
    assert done.exit_code == 0, done.output
    assert running.action()["phase"] == "phase-4"
    note = waiting.heard.get(timeout=DEADLINE_S)
    assert (note["method"], note["params"]["requestId"]) == ("notifications/cancelled", question["id"])


# -- the stateless era ------------------------------------------------------------------------------------------------


def asked(waiting: Waiting, **params: Any) -> tuple[str, str]:
    """The key of the one question a call ends in, and the state to send back."""
    result = waiting.stateless(**params)
    assert result["resultType"] == "input_required"
    ((key, request),) = result["inputRequests"].items()
    assert request["method"] == "elicitation/create"
    return key, result["requestState"]


def test_a_stateless_client_brings_the_answer_with_the_same_call(waiting: Waiting) -> None:
    key, state = asked(waiting)
    assert [gate.id for gate in waiting.gates()] == [key]
    action = waiting.stateless(inputResponses={key: APPROVES}, requestState=state)["structuredContent"]
    assert action["phase"] == "phase-4"
    (gate,) = waiting.gates()
    assert (gate.answer, gate.answered_by, gate.channel) == ("approve", "editor", "elicitation")
    again = waiting.stateless(inputResponses={key: APPROVES}, requestState=state)["structuredContent"]
    assert again["phase"] == "phase-4", "the same answer once more answers nothing else"
    assert len(waiting.gates()) == 1


def test_a_stateless_decline_is_the_plain_result_and_is_remembered_by_the_clients_name(waiting: Waiting) -> None:
    key, state = asked(waiting)
    declined = waiting.stateless(inputResponses={key: {"action": "decline"}}, requestState=state)
    assert declined["structuredContent"]["type"] == "checkpoint"
    assert waiting.stateless()["structuredContent"] == declined["structuredContent"]
    assert waiting.stateless(name="another")["resultType"] == "input_required"


def test_what_the_first_round_told_comes_with_the_last(waiting: Waiting) -> None:
    waiting.run.next(user_response="reject")
    waiting.run.produce("design.md")
    reports = {"previous_action_complete": True, "previous_tokens": 5}
    key, state = asked(waiting, arguments=reports)
    refused = waiting.stateless(arguments=reports, inputResponses={key: {"action": "cancel"}}, requestState=state)[
        "structuredContent"
    ]
    assert refused["type"] == "checkpoint"
    assert refused["report_result"]["artifact_written"] == "design.md"


def test_an_answer_to_a_question_that_was_never_put_is_no_answer(waiting: Waiting) -> None:
    (gate,) = waiting.gates()
    key, _ = asked(waiting, inputResponses={gate.id: APPROVES})
    assert key == gate.id
    assert waiting.states() == [("open", None, None)]


def test_an_answer_to_what_was_changed_meanwhile_is_asked_anew(waiting: Waiting) -> None:
    key, state = asked(waiting)
    waiting.run.write("design.md", "# Another\n\n## Part\n")
    newer, _ = asked(waiting, inputResponses={key: APPROVES}, requestState=state)
    assert newer != key
    assert waiting.states() == [("withdrawn", None, None), ("open", None, None)]


def test_a_stateless_client_that_never_answers_gets_the_plain_result_in_the_end(waiting: Waiting) -> None:
    """It may have forms and fail at them: it must see the gate some time."""
    asked(waiting)
    asked(waiting)
    action = waiting.stateless()["structuredContent"]
    assert (action["type"], action["still_waiting"]) == ("checkpoint", True)


def test_the_second_question_of_a_stateless_client_can_still_be_answered(waiting: Waiting) -> None:
    asked(waiting)
    key, state = asked(waiting)
    action = waiting.stateless(inputResponses={key: APPROVES}, requestState=state)["structuredContent"]
    assert action["phase"] == "phase-4"


def test_a_stateless_client_without_forms_gets_the_plain_result(waiting: Waiting) -> None:
    assert waiting.stateless(can={})["structuredContent"]["type"] == "checkpoint"
    assert waiting.stateless(can={"elicitation": {"url": {}}})["structuredContent"]["type"] == "checkpoint"


def test_a_bare_stateless_call_gets_the_plain_result(waiting: Waiting) -> None:
    meta = {META_VERSION: NEWEST, META_CAPABILITIES: ELICITS}
    request = Request("c", NEXT, {"workspace": waiting.run.workspace, "_meta": meta})
    result = waiting.server.serve(waiting.server.open(Connection(waiting.heard.put), request, waiting.heard.put))
    assert result["type"] == "checkpoint"
