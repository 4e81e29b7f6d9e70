"""The official Python client starts `handrail serve` and finishes a guide, in each of its modes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from tests.clients.walk import CONTEXT, GUIDE, OUTPUTS, REJECTED

DEADLINE_S = 60.0
"""Far beyond any honest walk; reached only when something is stuck."""

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
MODES = [("legacy", HANDSHAKE), ("auto", STATELESS), ("2026-07-28", STATELESS)]
GUIDE_TOOLS = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]

by_mode = pytest.mark.parametrize(("mode", "revision"), MODES, ids=[mode for mode, _ in MODES])


def talk(work: Callable[[Client], Awaitable[None]], folder: Path, mode: str, *options: str) -> None:
    """Runs `work` with a connected client, then checks that the server had nothing to complain about."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "handrail", "serve", *options], cwd=str(folder)
    )

    async def main() -> None:
        with log.open("w") as errors, anyio.fail_after(DEADLINE_S):
            async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
                await work(client)

    log = folder / "stderr.txt"
    anyio.run(main)
    assert log.read_text() == ""


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def finish_the_guide(client: Client) -> list[str]:
    """The loop an agent runs: next step, its output checked, its id added, until the guide is complete."""
    completed: list[str] = []
    while len(completed) <= len(OUTPUTS):
        there = await ask(client, "workflow_next", workflowId=GUIDE, completedSteps=completed, context=CONTEXT)
        if there["isComplete"]:
            return completed
        step = there["step"]["id"]
        assert there["guidance"]["prompt"]
        verdict = await ask(
            client, "workflow_validate", workflowId=GUIDE, stepId=step, output=OUTPUTS[step], context=CONTEXT
        )
        assert verdict == {"valid": True, "issues": [], "suggestions": []}
        completed.append(step)
    raise AssertionError(f"the guide does not end: {completed}")


@by_mode
@pytest.mark.parametrize("profile", ["solo", "workflowlookup"])
def test_a_guide_is_finished(tmp_path: Path, mode: str, revision: str, profile: str) -> None:
    async def work(client: Client) -> None:
        assert client.protocol_version == revision
        if mode != revision:  # a pinned client asks nobody who the server is
            assert client.server_info is not None
            assert client.server_info.name == ("handrail" if profile == "solo" else profile)
        tools = [tool.name for tool in (await client.list_tools()).tools]
        if profile == "workflowlookup":
            assert tools == GUIDE_TOOLS
        else:
            assert set(tools) >= set(GUIDE_TOOLS)
        assert GUIDE in [guide["id"] for guide in (await ask(client, "workflow_list"))["workflows"]]
        assert await finish_the_guide(client) == list(OUTPUTS)

    talk(work, tmp_path, mode, "--profile", profile)


@by_mode
def test_an_output_that_does_not_hold_is_a_verdict_and_no_error(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        verdict = await ask(client, "workflow_validate", **REJECTED)
        assert verdict["valid"] is False
        assert len(verdict["issues"]) == 3

    talk(work, tmp_path, mode)


@by_mode
def test_an_unknown_guide_is_refused_in_the_way_of_the_era(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        if revision == HANDSHAKE:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("workflow_get", {"id": "no-such-guide"})
            assert refused.value.error.code == -32001
            assert refused.value.error.data["workflowId"] == "no-such-guide"
        else:
            result = await client.call_tool("workflow_get", {"id": "no-such-guide"})
            assert result.is_error
            assert isinstance(result.structured_content, dict)
            assert result.structured_content["error"]["code"] == "WORKFLOW_NOT_FOUND"
        assert (await ask(client, "workflow_get", id=GUIDE))["id"] == GUIDE  # the connection is none the worse

    talk(work, tmp_path, mode)


@by_mode
def test_bad_arguments_are_refused_in_the_way_of_the_era(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        if revision == HANDSHAKE:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("workflow_next", {"completedSteps": []})
            assert refused.value.error.code == -32602
            assert refused.value.error.data["details"] == "workflowId is required"
        else:
            result = await client.call_tool("workflow_next", {"completedSteps": []})
            assert result.is_error
            assert isinstance(result.structured_content, dict)
            assert result.structured_content["error"]["code"] == "INVALID_PARAMS"

    talk(work, tmp_path, mode)
