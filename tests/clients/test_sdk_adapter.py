"""The catalog on the official SDK's server gives what our own server gives, to the official client, in both eras."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client, MCPError

from handrail.catalog import whole_catalog
from handrail.operation import Effect, Example, Operation
from handrail.protocol.wire import RpcError
from tests.clients import sdk_adapter
from tests.clients.sdk_adapter import sdk_server
from tests.clients.test_python_client import finish_the_guide
from tests.clients.walk import OUTPUTS
from tests.protocol.toy import Client as OwnClient
from tests.test_catalog import world_for
from tests.world import World

DEADLINE_S = 60.0
LONGEST = 120
"""Lines of the adapter: more would mean that the seam is in the wrong place."""

ERAS = [("legacy", False), ("2026-07-28", True)]
READS = [
    pytest.param(operation, example, id=f"{operation.toolset.name} {operation.name}: {example.title}")
    for operation in whole_catalog()
    if operation.effect is Effect.READ
    for example in operation.examples
]

by_era = pytest.mark.parametrize(("mode", "stateless"), ERAS, ids=[mode for mode, _ in ERAS])


def talk(world: World, mode: str, work: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        with anyio.fail_after(DEADLINE_S):
            async with Client(sdk_server(world.handrail()), mode=mode) as client:
                await work(client)

    anyio.run(main)


def own_answer(world: World, name: str, arguments: dict[str, Any], *, stateless: bool) -> dict[str, Any]:
    """What our own server says: the parts of a result that both have, or its error."""
    client = OwnClient(world.server())
    client.initialize()
    ask = client.ask_stateless if stateless else client.ask
    try:
        result = ask("tools/call", {"name": name, "arguments": arguments})
    except RpcError as error:
        return {"error": error.as_dict()}
    return plain({"isError": False, "structuredContent": None, **result})


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    kept = {key: answer[key] for key in ("content", "structuredContent", "isError")}
    decoded = msgspec.json.decode(msgspec.json.encode(kept))
    assert isinstance(decoded, dict)
    return decoded


async def sdk_answer(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return {"error": error.error.model_dump(exclude_none=True)}
    dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return plain({"isError": False, "structuredContent": None, **dumped})


@by_era
def test_the_official_client_finishes_a_guide_on_it(tmp_path: Path, mode: str, stateless: bool) -> None:
    async def work(client: Client) -> None:
        assert await finish_the_guide(client) == list(OUTPUTS)

    talk(World(tmp_path), mode, work)


@by_era
@pytest.mark.parametrize(("operation", "example"), READS)
def test_every_read_answers_as_our_own_server_does(
    tmp_path: Path, operation: Operation[Any, Any], example: Example, mode: str, stateless: bool
) -> None:
    world = world_for(operation, tmp_path)
    world.before(example.given)
    arguments = dict(example.request)

    async def work(client: Client) -> None:
        own = own_answer(world, operation.name, arguments, stateless=stateless)
        assert ("error" in own or own["isError"]) == (example.refused is not None)
        assert await sdk_answer(client, operation.name, arguments) == own

    talk(world, mode, work)


@by_era
def test_a_wrong_call_answers_as_our_own_server_does(tmp_path: Path, mode: str, stateless: bool) -> None:
    world = World(tmp_path)

    async def work(client: Client) -> None:
        for arguments in ({}, {"surprise": 1}, {"workflowId": 5, "completedSteps": "x"}):
            own = own_answer(world, "workflow_next", arguments, stateless=stateless)
            assert await sdk_answer(client, "workflow_next", arguments) == own
            assert own.get("isError", True)

    talk(world, mode, work)


def test_it_lists_the_same_tools(tmp_path: Path) -> None:
    world = World(tmp_path, profile="all", dynamic=True, output_schemas=True)
    own = OwnClient(world.server())
    own.initialize()

    async def work(client: Client) -> None:
        listed = (await client.list_tools()).tools
        dumped = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
        keys = ("name", "description", "inputSchema", "outputSchema", "annotations")
        ours = msgspec.json.decode(msgspec.json.encode(own.ask("tools/list")["tools"]))
        shown, own_shown = ([{key: tool[key] for key in keys} for tool in tools] for tools in (dumped, ours))
        assert shown == own_shown

    talk(world, "legacy", work)


def test_it_is_small() -> None:
    assert len(Path(sdk_adapter.__file__).read_text(encoding="utf-8").splitlines()) <= LONGEST
