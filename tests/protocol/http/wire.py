"""Requests to the HTTP application without a socket, and a clock that a test turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from handrail.protocol.http.endpoint import HttpEndpoint
from tests.protocol.toy import STATELESS_META

DEADLINE_S = 10.0


class Clock:
    """Stands still until a test moves it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


class Wire:
    """One request to the application, and what comes back of it."""

    def __init__(self, endpoint: HttpEndpoint, body: Any = None, *, method: str = "POST", **headers: str) -> None:
        path = headers.pop("path", "/mcp")
        given = {
            "host": "localhost",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
        }
        self._incoming: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._pending = b""
        self._incoming.put_nowait({"type": "http.request", "body": msgspec.json.encode(body), "more_body": False})
        self.task = asyncio.create_task(endpoint(scope, self._incoming.get, self._sent.put))

    def leave(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def _next(self) -> MutableMapping[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            message = asyncio.create_task(self._sent.get())
            await asyncio.wait((message, self.task), return_when=asyncio.FIRST_COMPLETED)
            if not message.done() and self._sent.empty():
                message.cancel()
                self.task.result()  # raises what the application raised
                raise AssertionError("the application said nothing more")
            return await message

    async def start(self) -> tuple[int, dict[str, str]]:
        message = await self._next()
        assert message["type"] == "http.response.start"
        return message["status"], {name.decode(): value.decode() for name, value in message["headers"]}

    async def json(self) -> Any:
        body = (await self._next())["body"]
        return msgspec.json.decode(body) if body else None

    async def answer(self) -> tuple[int, Any]:
        status, _ = await self.start()
        return status, await self.json()

    def rest(self) -> bytes:
        """What was sent and not read yet, once the application is done."""
        pieces = [self._sent.get_nowait().get("body", b"") for _ in range(self._sent.qsize())]
        return self._pending + b"".join(pieces)

    async def event(self) -> dict[str, Any] | None:
        """The next event that carries a message; None at the end."""
        while True:
            while b"\n\n" not in self._pending:
                message = await self._next()
                self._pending += message["body"]
                if not message.get("more_body"):
                    return None
            raw, _, self._pending = self._pending.partition(b"\n\n")
            for line in raw.split(b"\n"):
                if line.startswith(b"data: {"):
                    decoded = msgspec.json.decode(line.removeprefix(b"data: "))
                    assert isinstance(decoded, dict)
                    return decoded


def played(endpoint: HttpEndpoint, play: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(3 * DEADLINE_S):
            await play()

    try:
        asyncio.run(main())
    finally:
        endpoint.close()


def request(method: str, request_id: int | str = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def bearer(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token is not None else {}


def stateless(
    endpoint: HttpEndpoint, method: str, request_id: int | str = 1, *, token: str | None = None, **params: Any
) -> Wire:
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": method, **bearer(token)}
    if "name" in params:
        headers["mcp_name"] = params["name"]
    return Wire(endpoint, request(method, request_id, **params, _meta=STATELESS_META), **headers)


async def session(
    endpoint: HttpEndpoint, version: str = "2025-11-25", path: str = "/mcp", *, token: str | None = None
) -> str:
    asked = request("initialize", protocolVersion=version, capabilities={})
    wire = Wire(endpoint, asked, path=path, **bearer(token))
    status, headers = await wire.start()
    assert status == 200
    assert (await wire.json())["result"]["protocolVersion"] == version
    return headers["mcp-session-id"]


async def soon(semaphore: threading.Semaphore) -> None:
    """Waits for a thread without holding up the event loop."""
    assert await asyncio.get_running_loop().run_in_executor(None, semaphore.acquire, True, DEADLINE_S)
