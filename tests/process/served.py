"""A real `handrail serve` for tests that call it from several threads at once."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from typing import Any

import msgspec

from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from tests.process.peer import DEADLINE_S, ServerProcess

META = {META_VERSION: NEWEST, META_CAPABILITIES: {}}
UPDATED = "notifications/resources/updated"


class Served:
    """A real `handrail serve` that several threads call at once. What is no reply is kept in `heard`."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._sending = threading.Lock()
        self._replies: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()
        process.initialize()
        process.read_beside(self._read)

    def _read(self) -> None:
        with contextlib.suppress(AssertionError):  # a process that was killed may end in the middle of a line
            while (line := self._process.line(within_s=None)) is not None:
                message = msgspec.json.decode(line)
                if "id" in message and "method" not in message:
                    self._replies[message["id"]].put(message)
                else:
                    self.heard.put(message)

    def begin(self, method: str, params: dict[str, Any]) -> int:
        request_id = next(self._ids)
        self._replies[request_id] = queue.Queue()
        with self._sending:
            self._process.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return request_id

    def reply(self, request_id: int) -> dict[str, Any]:
        return self._replies[request_id].get(timeout=DEADLINE_S)

    def ask(self, method: str, **params: Any) -> Any:
        return self.reply(self.begin(method, params))["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.answer(self.begin("tools/call", {"name": tool, "arguments": arguments}))

    def answer(self, request_id: int) -> Any:
        result = self.reply(request_id)["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]

    def register(self, name: str) -> str:
        return str(self.call("agent_register", name=name, runtime="codex")["id"])

    def send(self, sender: str, recipient: str, body: Any, **more: Any) -> str:
        given = {"sender_id": sender, "recipient_id": recipient, "message_type": "query", "body": body, **more}
        return str(self.call("message_send", **given)["id"])
