"""The official Python client over HTTP against `handrail serve --http`: both eras, with the bearer token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.clients.test_python_client import MODES, ask, finish_the_guide
from tests.clients.walk import GUIDE, OUTPUTS, REJECTED
from tests.process.http_peer import HttpProcess, handrail_http

TOKEN = "a-token-of-the-user"
DEADLINE_S = 60.0
GUIDE_TOOLS = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]

by_mode = pytest.mark.parametrize(("mode", "revision"), MODES, ids=[mode for mode, _ in MODES])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with handrail_http(tmp_path_factory.mktemp("project"), "--dynamic", token=TOKEN) as process:
        yield process
        said = process.end().splitlines()
        assert said[1:] == [], "the server had something to complain about"


def talk(url: str, mode: str, work: Callable[[Client], Awaitable[None]], token: str = TOKEN) -> None:
    async def main() -> None:
        with anyio.fail_after(DEADLINE_S):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=DEADLINE_S) as http_client,
                Client(streamable_http_client(url, http_client=http_client), mode=mode) as client,
            ):
                await work(client)

    anyio.run(main)


@by_mode
def test_a_guide_is_finished(server: HttpProcess, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        assert client.protocol_version == revision
        assert set(GUIDE_TOOLS) <= {tool.name for tool in (await client.list_tools()).tools}
        assert GUIDE in [guide["id"] for guide in (await ask(client, "workflow_list"))["workflows"]]
        assert await finish_the_guide(client) == list(OUTPUTS)
        assert (await ask(client, "workflow_validate", **REJECTED))["valid"] is False

    talk(server.url, mode, work)


@by_mode
@pytest.mark.parametrize("view", ["/readonly", "/x/guide", "/readonly/x/guide"])
def test_a_guide_is_finished_on_a_view(server: HttpProcess, mode: str, revision: str, view: str) -> None:
    async def work(client: Client) -> None:
        assert await finish_the_guide(client) == list(OUTPUTS)

    talk(server.url + view, mode, work)


@by_mode
def test_several_clients_work_side_by_side(server: HttpProcess, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        walked: list[list[str]] = []

        async def walk() -> None:
            walked.append(await finish_the_guide(client))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(walk)
        assert walked == [list(OUTPUTS)] * 4

    talk(server.url, mode, work)


@by_mode
@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_client_without_the_token_is_not_let_in(server: HttpProcess, mode: str, revision: str, token: str) -> None:
    async def work(client: Client) -> None:
        await client.list_tools()

    with pytest.raises(ExceptionGroup) as refused:
        talk(server.url, mode, work, token)
    (error,) = leaves(refused.value)
    assert isinstance(error, MCPError)
    assert error.error.data == {"details": "a bearer token is needed: send the header Authorization: Bearer TOKEN"}


def leaves(error: BaseException) -> list[BaseException]:
    """What is inside groups of errors."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves(each)]
    return [error]
