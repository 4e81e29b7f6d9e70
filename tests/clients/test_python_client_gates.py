"""The official Python client with a person behind it: gates are answered by its elicitation callback, in each of its
modes."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from tests.clients.test_python_client import DEADLINE_S, by_mode
from tests.toolsets.pipeline.orchestrator import Orchestrator


class Person:
    """Fills in forms one after the other."""

    def __init__(self, *answers: ElicitResult) -> None:
        self._answers = list(answers)
        self.read: list[str] = []

    async def fill_in(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert params.requested_schema["properties"]["answer"]["enum"] == ["approve", "reject"]
        self.read.append(params.message)
        return self._answers.pop(0)


def accepted(**content: str) -> ElicitResult:
    return ElicitResult(action="accept", content={**content})


def drive(folder: Path, mode: str, person: Person, until: str) -> Orchestrator:
    """Runs a pipeline to its first action of this phase or gate, with a person at the client."""
    command = ["-m", "handrail", "serve", "--toolsets", "pipeline,plan"]
    env = {**os.environ, "HOME": str(folder)}
    parameters = StdioServerParameters(command=sys.executable, args=command, cwd=str(folder), env=env)
    runs: list[Orchestrator] = []

    def work(client: Client) -> None:
        def call(tool: str, **arguments: Any) -> Any:
            result = anyio.from_thread.run(partial(client.call_tool, tool, arguments))
            assert not result.is_error, result
            return result.structured_content

        runs.append(Orchestrator(call, folder, effort="S"))
        runs[0].run(lambda action: until in (action.get("phase"), action.get("name")))

    async def main() -> None:
        with anyio.fail_after(DEADLINE_S):
            async with Client(stdio_client(parameters), mode=mode, elicitation_callback=person.fill_in) as client:
                await anyio.to_thread.run_sync(work, client)

    anyio.run(main)
    return runs[0]


@by_mode
def test_a_person_rejects_and_then_approves(tmp_path: Path, mode: str, revision: str) -> None:
    person = Person(accepted(answer="reject", feedback="too slow"), accepted(answer="approve"))
    run = drive(tmp_path, mode, person, "phase-4")
    assert run.phases()[-2:] == ["phase-3", "phase-4"]
    assert ["too slow" in action["prompt"] for action in run.seen[-2:]] == [True, False]
    assert [action for action in run.seen if action["type"] == "checkpoint"] == []
    assert len(person.read) == 2


@by_mode
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_who_declines_leaves_the_gate_to_the_agent(
    tmp_path: Path, mode: str, revision: str, action: Any
) -> None:
    person = Person(ElicitResult(action=action))
    run = drive(tmp_path, mode, person, "checkpoint-a")
    assert run.seen[-1]["still_waiting"] is True
    assert len(person.read) == 1
