"""What restricts applies from the next call on in a server that is running, and no file loosens it again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.http_peer import Peer, handrail_http
from tests.process.page_peer import Browser, up_on_a_terminal
from tests.process.peer import ServerProcess, handrail_serve
from tests.process.test_elicitation import NEXT, TOOLSETS, Scripted, accepts
from tests.toolsets.pipeline.orchestrator import Orchestrator

AGENT, HUMAN = 'approvals = "agent"\n', 'approvals = "human"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail").mkdir(parents=True)
    return folder


@pytest.fixture
def config(project: Path) -> Path:
    return project / ".handrail" / "config.toml"


@pytest.fixture
def server(project: Path, config: Path) -> Iterator[ServerProcess]:
    config.write_text(AGENT, encoding="utf-8")
    with handrail_serve(project, *TOOLSETS, env={"HOME": str(project.parent)}) as process:
        yield process


def waits_at_gate(call: Callable[..., Any], project: Path) -> Orchestrator:
    """A run that waits at its first gate, begun while agents may answer."""
    run = Orchestrator(call, project, effort="S")
    assert run.run(lambda action: action["type"] == "checkpoint")["name"] == "checkpoint-a"
    return run


def code_of(server: ServerProcess, tool: str, **arguments: Any) -> str:
    """The code a call is refused with; empty if it is not."""
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
    return result["structuredContent"]["error"]["code"] if result.get("isError") else ""


def answer(server: ServerProcess, run: Orchestrator) -> str:
    return code_of(server, NEXT, workspace=run.workspace, user_response="approve")


def test_people_decide_from_the_next_call_on_and_nothing_an_agent_writes_takes_it_back(
    project: Path, config: Path, server: ServerProcess
) -> None:
    client = Scripted(server, can={}).initialize()
    run = waits_at_gate(client.call, project)
    config.write_text(HUMAN, encoding="utf-8")
    assert answer(server, run) == "NOT_ALLOWED"
    config.write_text(AGENT, encoding="utf-8")
    assert answer(server, run) == "NOT_ALLOWED"
    config.unlink()
    assert answer(server, run) == "NOT_ALLOWED"
    config.write_text("approvals = [[[", encoding="utf-8")
    assert answer(server, run) == "NOT_ALLOWED"
    config.unlink()
    config.mkdir()
    assert answer(server, run) == "NOT_ALLOWED"
    shutil.rmtree(config.parent / "config.toml")
    assert answer(server, run) == "NOT_ALLOWED"
    server.end_input()
    assert server.wait() == 0
    said = server.errors()
    assert 'approvals is "human" from now on' in said
    assert 'approvals stays "human"' in said


def test_without_a_change_the_agent_answers(project: Path, server: ServerProcess) -> None:
    """Or the test above would prove nothing."""
    client = Scripted(server, can={}).initialize()
    assert answer(server, waits_at_gate(client.call, project)) == ""


def test_a_file_of_the_same_size_and_time_is_another(project: Path, config: Path, server: ServerProcess) -> None:
    client = Scripted(server, can={}).initialize()
    run = waits_at_gate(client.call, project)
    before = config.stat()
    beside = config.with_name("beside")
    beside.write_text(HUMAN, encoding="utf-8")
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.replace(config)
    assert (config.stat().st_size, config.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert answer(server, run) == "NOT_ALLOWED"


def test_a_form_that_was_open_when_people_began_to_decide_answers_nothing(
    project: Path, config: Path, server: ServerProcess
) -> None:
    client = Scripted(server, accepts("approve")).initialize()
    run = Orchestrator(client.call, project, effort="S")
    action = run.run(lambda action: action.get("phase") == "phase-3")
    run.produce(action["output_file"])
    asked = client.begin(NEXT, workspace=run.workspace, previous_action_complete=True)
    form = client.next_form()
    config.write_text(HUMAN, encoding="utf-8")
    client.answer(form, {"action": "accept", "content": {"answer": "approve"}})
    still = client.result(asked)
    assert (still["type"], still["name"]) == ("checkpoint", "checkpoint-a")


def test_a_name_must_be_proved_from_the_next_call_on(project: Path, config: Path) -> None:
    options = ("--toolsets", "agent,message")
    with handrail_serve(project, *options, env={"HOME": str(project.parent)}) as server:
        Scripted(server).initialize()
        registered = server.ask(
            "tools/call", {"name": "agent_register", "arguments": {"name": "ann", "runtime": "codex"}}
        )
        agent = registered["result"]["structuredContent"]["id"]
        with handrail_serve(project, *options, env={"HOME": str(project.parent)}) as other:
            Scripted(other).initialize()
            assert code_of(other, "agent_heartbeat", agent_id=agent) == ""
            config.write_text('identity = "strict"\n', encoding="utf-8")
            assert code_of(other, "agent_heartbeat", agent_id=agent) == "IDENTITY_UNPROVEN"
            config.write_text('identity = "open"\n', encoding="utf-8")
            assert code_of(other, "agent_heartbeat", agent_id=agent) == "IDENTITY_UNPROVEN"


def test_over_http_a_view_that_is_made_later_is_no_way_around(project: Path, config: Path) -> None:
    config.write_text(AGENT, encoding="utf-8")
    with handrail_http(project, *TOOLSETS) as process, Peer(process.url, "T") as peer:
        session = peer.session()

        def call(tool: str, **arguments: Any) -> Any:
            with session.ask("tools/call", 1, name=tool, arguments=arguments) as stream:
                return stream.answer()["result"]["structuredContent"]

        run = waits_at_gate(call, project)
        config.write_text(HUMAN, encoding="utf-8")
        approve = {"workspace": run.workspace, "user_response": "approve"}
        assert call(NEXT, **approve)["error"]["code"] == "NOT_ALLOWED"
        config.write_text(AGENT, encoding="utf-8")
        later = peer.at("/mcp/x/pipeline,introspection").session()
        with later.ask("tools/call", 1, name=NEXT, arguments={**approve, "take_over": True}) as answered:
            assert answered.answer()["result"]["structuredContent"]["error"]["code"] == "NOT_ALLOWED"


def test_the_page_and_the_tools_beside_it_hear_of_it(project: Path, config: Path, tmp_path: Path) -> None:
    config.write_text(AGENT, encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    with up_on_a_terminal(project, "--set", "approvals=agent", home=home) as terminal, Browser(terminal.url) as browser:
        browser.sign_in(terminal.link)
        assert browser.get("/api/session")["approvals"] == "agent"
        config.write_text(HUMAN, encoding="utf-8")
        assert browser.get("/api/session")["approvals"] == "human"
        config.unlink()
        assert browser.get("/api/session")["approvals"] == "human"
        terminal.interrupt()


def test_a_smaller_budget_stops_a_run_under_way_and_a_larger_one_does_not_start_it_again(
    project: Path, config: Path
) -> None:
    config.write_text("[budget]\nhard_tokens = 1000\n", encoding="utf-8")
    with handrail_serve(project, *TOOLSETS, env={"HOME": str(project.parent)}) as server:
        run = Orchestrator(Scripted(server, can={}).initialize().call, project, effort="S")
        action = run.next()
        run.produce(action["output_file"])
        config.write_text("[budget]\nhard_tokens = 50\n", encoding="utf-8")
        done = {"previous_action_complete": True, "previous_tokens": 60}
        assert run.next(**done)["stopped"]["reason"] == "budget"
        config.write_text("[budget]\nhard_tokens = 100000\n", encoding="utf-8")
        assert run.next()["stopped"]["reason"] == "budget"
