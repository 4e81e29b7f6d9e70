"""Gates answered by elicitation over real processes: a scripted client that has forms, on a pipe and over HTTP, in both
eras; and everybody to whom nothing of it must show."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from handrail.protocol.revisions import META_CAPABILITIES, META_CLIENT, META_VERSION, NEWEST
from handrail.store.open_engine import open_engine
from handrail.store.store import Store
from tests.process.http_peer import Peer, handrail_http
from tests.process.peer import ServerProcess, handrail_serve
from tests.toolsets.pipeline.orchestrator import Orchestrator

ROOT = Path(__file__).parent.parent.parent
TOOLSETS = ("--toolsets", "pipeline,plan")
ELICITS: dict[str, Any] = {"elicitation": {"form": {}}}
NEXT = "pipeline_next_action"
Form = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


def accepts(answer: str, **more: str) -> Form:
    return lambda _: {"action": "accept", "content": {"answer": answer, **more}}


def acts(action: str) -> Form:
    return lambda _: {"action": action}


def says_nothing(_: Mapping[str, Any]) -> None:
    return None


class Scripted:
    """A client whose person fills in forms as a script says: one entry a form, the last one again and again."""

    def __init__(self, server: ServerProcess, *script: Form, can: Mapping[str, Any] = ELICITS) -> None:
        self._server = server
        self._script = list(script)
        self._ids = itertools.count(1)
        self.can = dict(can)
        self.forms: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []

    def initialize(self) -> Scripted:
        who = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": self.can, "clientInfo": who}
        assert "result" in self._server.ask("initialize", params, "init")
        return self

    def begin(self, tool: str, **arguments: Any) -> int:
        request_id = next(self._ids)
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": request_id}}
        self._server.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})
        return request_id

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.result(self.begin(tool, **arguments))

    def result(self, request_id: int) -> Any:
        """The result of a call. Forms that come before it are filled in, notifications kept."""
        while True:
            message = self._server.reply()
            if message.get("method") == "elicitation/create":
                self.fill_in(message)
            elif "method" in message:
                self.notes.append(message)
            else:
                assert message["id"] == request_id
                assert not message["result"].get("isError"), message["result"]
                return message["result"]["structuredContent"]

    def next_form(self) -> dict[str, Any]:
        message = self._server.reply()
        assert message["method"] == "elicitation/create", message
        self.forms.append(message)
        return message

    def fill_in(self, form: dict[str, Any]) -> None:
        self.forms.append(form)
        filled = (self._script.pop(0) if len(self._script) > 1 else self._script[0])(form["params"])
        if filled is not None:
            self.answer(form, filled)

    def answer(self, form: Mapping[str, Any], filled: Mapping[str, Any]) -> None:
        self._server.send({"jsonrpc": "2.0", "id": form["id"], "result": filled})


class Stateless(Scripted):
    """The same on 2026-07-28: asked by a result, the client makes the same call once more."""

    def initialize(self) -> Scripted:
        return self

    def call(self, tool: str, **arguments: Any) -> Any:
        meta = {META_VERSION: NEWEST, META_CAPABILITIES: self.can, META_CLIENT: {"name": "test", "version": "1"}}
        params: dict[str, Any] = {"name": tool, "arguments": arguments, "_meta": meta}
        while True:
            result = self._server.ask("tools/call", params, next(self._ids))["result"]
            if result["resultType"] == "complete":
                return result["structuredContent"]
            ((key, form),) = result["inputRequests"].items()
            self.forms.append(form)
            filled = (self._script.pop(0) if len(self._script) > 1 else self._script[0])(form["params"])
            params = {**params, "inputResponses": {key: filled}, "requestState": result["requestState"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def server(project: Path) -> Iterator[ServerProcess]:
    with handrail_serve(project, *TOOLSETS, env={"HOME": str(project.parent)}) as process:
        yield process


def hurried(project: Path, **patience: float) -> ServerProcess:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    module = [sys.executable, "-m", "tests.process.hurried_server", msgspec.json.encode(patience).decode()]
    env = {"HOME": str(project.parent), "PYTHONPATH": path}
    return ServerProcess([*module, "serve", *TOOLSETS], cwd=project, env=env)


def gates(project: Path) -> list[Gate]:
    store = Store(open_engine("", project=project, version="0", durable=False), clock=FixedClock(), ids=CountingIds())
    try:
        return list(store.run(Actor("t", "t"), lambda unit: unit.select(Gate, Query((), ("created_at", "id"), 50))))
    finally:
        store.engine.close()


def at_the_gate(client: Scripted, project: Path) -> Orchestrator:
    """A run whose next call arrives at its first gate."""
    run = Orchestrator(client.call, project, effort="S")
    action = run.run(lambda action: action.get("phase") == "phase-3")
    run.produce(action["output_file"])
    return run


by_era = pytest.mark.parametrize("era", [Scripted, Stateless])


@by_era
def test_a_run_whose_gates_are_all_opened_by_its_person(project: Path, server: ServerProcess, era: Any) -> None:
    client = era(server, accepts("approve")).initialize()
    run = Orchestrator(client.call, project, effort="L")
    assert run.run()["summary"].startswith("Pipeline completed")
    assert [action for action in run.seen if action["type"] == "checkpoint"] == [], "no agent had to ask"
    rows = gates(project)
    assert [gate.question for gate in rows] == ["checkpoint-a", "checkpoint-b"]
    assert {(gate.answer, gate.answered_by, gate.channel) for gate in rows} == {("approve", "test", "elicitation")}
    assert len(client.forms) == 2
    reported = [action["report_result"]["artifact_written"] for action in run.seen if action["report_result"]]
    assert {"review-design.md", "review-tasks.md"} <= set(reported), "what was reported at a gate is told"


@by_era
def test_a_rejection_reaches_the_next_prompt_once(project: Path, server: ServerProcess, era: Any) -> None:
    client = era(server, accepts("reject", feedback="too slow"), accepts("approve")).initialize()
    run = at_the_gate(client, project)
    design = run.next(previous_action_complete=True)
    assert design["phase"] == "phase-3"
    assert "too slow" in design["prompt"]
    tasks = run.do(design)
    assert tasks["phase"] == "phase-4"
    assert "too slow" not in tasks["prompt"]
    rows = [(gate.answer, gate.feedback, gate.channel) for gate in gates(project)]
    assert rows == [("reject", "too slow", "elicitation"), ("approve", None, "elicitation")]


@by_era
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_whoever_declines_is_not_asked_again_and_can_still_be_spoken_for(
    project: Path, server: ServerProcess, era: Any, action: str
) -> None:
    client = era(server, acts(action)).initialize()
    run = at_the_gate(client, project)
    shown = run.next(previous_action_complete=True)
    assert (shown["type"], shown["still_waiting"]) == ("checkpoint", True)
    assert run.next()["gate_id"] == shown["gate_id"]
    assert len(client.forms) == 1
    assert [(gate.status, gate.channel) for gate in gates(project)] == [("open", None)]
    assert run.next(user_response="approve", gate_id=shown["gate_id"])["phase"] == "phase-4"
    assert [(gate.answer, gate.channel) for gate in gates(project)] == [("approve", "mcp")]


def test_nobody_waits_longer_than_the_limit(project: Path) -> None:
    with hurried(project, look_s=0.01, tick_s=1.0) as server:
        client = Scripted(server, says_nothing).initialize()
        run = at_the_gate(client, project)
        assert run.next(previous_action_complete=True)["still_waiting"] is True
        (form,) = client.forms
        taken_back = client.notes.pop()
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"]["requestId"] == form["id"]
        assert {note["method"] for note in client.notes} == {"notifications/progress"}
        client.answer(form, {"action": "accept", "content": {"answer": "approve"}})
        assert run.next()["still_waiting"] is True, "an answer that comes too late answers nothing"
        assert len(client.forms) == 2, "and the person is asked again"
        assert [gate.status for gate in gates(project)] == ["open"]


def test_a_person_who_answers_at_a_terminal_ends_the_question(project: Path) -> None:
    with hurried(project, look_s=0.02) as server:
        client = Scripted(server).initialize()
        run = at_the_gate(client, project)
        asked = client.begin(NEXT, workspace=run.workspace, previous_action_complete=True)
        form = client.next_form()
        approve = [sys.executable, "-m", "handrail", "approve"]
        env = {**os.environ, "HOME": str(project.parent)}
        subprocess.run(approve, cwd=project, env=env, check=True, capture_output=True)
        assert client.result(asked)["phase"] == "phase-4"
        assert [note["params"]["requestId"] for note in client.notes] == [form["id"]]
        assert [(gate.answer, gate.channel) for gate in gates(project)] == [("approve", "cli")]


def test_other_calls_are_answered_while_a_person_thinks(project: Path, server: ServerProcess) -> None:
    client = Scripted(server).initialize()
    run = at_the_gate(client, project)
    asked = client.begin(NEXT, workspace=run.workspace, previous_action_complete=True)
    form = client.next_form()
    assert client.call("state_resume_info", workspace=run.workspace)["status"] == "awaiting_human"
    assert server.ask("ping", request_id="alive") == {"jsonrpc": "2.0", "id": "alive", "result": {}}
    client.answer(form, {"action": "accept", "content": {"answer": "approve"}})
    assert client.result(asked)["phase"] == "phase-4"


def test_a_client_that_leaves_while_its_person_thinks_is_answered(project: Path, server: ServerProcess) -> None:
    client = Scripted(server).initialize()
    run = at_the_gate(client, project)
    asked = client.begin(NEXT, workspace=run.workspace, previous_action_complete=True)
    client.next_form()
    server.end_input()
    assert client.result(asked)["type"] == "checkpoint"
    assert server.line() is None
    assert server.wait() == 0
    assert server.errors() == ""


@by_era
def test_where_people_decide_at_a_terminal_nobody_is_asked(project: Path, era: Any) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "config.toml").write_text('approvals = "human"\n', encoding="utf-8")
    with handrail_serve(project, *TOOLSETS, env={"HOME": str(project.parent)}) as server:
        client = era(server, accepts("approve")).initialize()
        run = at_the_gate(client, project)
        assert run.next(previous_action_complete=True)["type"] == "checkpoint"
        assert client.forms == []


@by_era
@pytest.mark.parametrize("can", [{}, {"elicitation": {"url": {}}}])
def test_for_a_client_without_forms_nothing_changes(
    project: Path, server: ServerProcess, era: Any, can: dict[str, Any]
) -> None:
    client = era(server, accepts("approve"), can=can).initialize()
    run = at_the_gate(client, project)
    assert run.next(previous_action_complete=True)["type"] == "checkpoint"
    assert (client.forms, client.notes) == ([], [])


# -- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def peer(project: Path) -> Iterator[Peer]:
    with handrail_http(project, *TOOLSETS) as process:
        with Peer(process.url, "T") as peer:
            yield peer
        assert "Traceback" not in process.end()


def test_a_session_is_asked_on_the_stream_of_its_call(project: Path, peer: Peer) -> None:
    session = peer.session(can=ELICITS)

    def call(tool: str, **arguments: Any) -> Any:
        with session.ask("tools/call", 1, name=tool, arguments=arguments) as stream:
            if not stream.is_events:
                return stream.json()["result"]["structuredContent"]
            form = stream.message()
            assert form["method"] == "elicitation/create"
            filled = {"action": "accept", "content": {"answer": "approve"}}
            assert session.send({"jsonrpc": "2.0", "id": form["id"], "result": filled}) == 202
            return stream.message()["result"]["structuredContent"]

    run = Orchestrator(call, project, effort="S")
    action = run.run(lambda action: action.get("phase") == "phase-4")
    assert action["report_result"]["artifact_written"] == "design.md"
    assert [(gate.answer, gate.answered_by, gate.channel) for gate in gates(project)] == [
        ("approve", "test", "elicitation")
    ]


def test_a_stateless_client_over_http_that_declines_is_not_asked_again(project: Path, peer: Peer) -> None:
    rounds: list[str] = []

    def call(tool: str, **arguments: Any) -> Any:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        while True:
            meta = {META_CLIENT: {"name": "test", "version": "1"}}
            result = peer.stateless("tools/call", can=ELICITS, meta=meta, **params).answer()["result"]
            if tool == NEXT:
                rounds.append(result["resultType"])
            if result["resultType"] == "complete":
                return result["structuredContent"]
            (key,) = result["inputRequests"]
            params |= {"inputResponses": {key: {"action": "decline"}}, "requestState": result["requestState"]}

    run = Orchestrator(call, project, effort="S")
    shown = run.run(lambda action: action["type"] == "checkpoint")
    assert shown["report_result"]["artifact_written"] == "design.md", "told in the first round, and again in the last"
    assert run.next()["gate_id"] == shown["gate_id"]
    assert rounds.count("input_required") == 1
