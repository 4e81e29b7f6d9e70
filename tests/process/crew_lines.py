"""The ways an agent of a crew reaches Handrail: in its own process, through a real `handrail serve` of its own on
standard input and output, or over HTTP. What is asked, and what is made of the answers, is the agent's."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import WorkPlace, assemble, settings_at
from tests.process.http_peer import Peer

TOOLSETS = "workflow,task,checkpoint,agent"
UNKNOWN = "unknown"


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """A call that was declined. `is_unknown` when nobody can tell whether it was done."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error.get('message', '')}")
        self.code: str = error["code"]
        self.is_unknown = (error.get("details") or {}).get("outcome") == UNKNOWN

    @property
    def is_passing(self) -> bool:
        """True when it says nothing about the call itself: the store is busy or out of reach."""
        return self.is_unknown or self.code.startswith("STORE_")


class Line(Protocol):
    """A way to call tools."""

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The tool's answer. Raises Refused."""
        ...


def settings_for(address: str, heartbeat_ms: int) -> dict[str, str]:
    return {"db": address, "toolsets": TOOLSETS, "heartbeat_ms": str(heartbeat_ms)}


class OwnLine:
    """Handrail in this process, with a store of its own on the shared database."""

    def __init__(self, folder: Path, settings: dict[str, str], name: str) -> None:
        place = WorkPlace(project=folder, home=Path.home(), environ={})  # as a served agent has it
        self.handrail = assemble(place, settings_at(place, settings))
        self._actor = Actor(name, "test")
        self._client = CallingClient()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        operation = self.handrail.switch.find(tool)
        assert operation is not None, f"there is no {tool}"
        try:
            answer = invoke(operation, self.handrail.call, arguments, actor=self._actor, client=self._client)
        except Refusal as refusal:
            raise Refused(refusal.as_dict()) from refusal
        assert isinstance(answer, dict)
        return answer


class ServeLine:
    """A server of one's own, as coding agents start it. It ends with its client: its input does."""

    def __init__(self, folder: Path, settings: dict[str, str], name: str) -> None:
        command = [sys.executable, "-m", "handrail", "serve", "--root", str(folder), "--db", settings["db"]]
        command += ["--toolsets", settings["toolsets"], "--set", f"heartbeat_ms={settings['heartbeat_ms']}"]
        self._process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        who = {"name": name, "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who})

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return _answered(self._ask("tools/call", {"name": tool, "arguments": arguments}))

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            reply = msgspec.json.decode(line)
            if reply.get("id") == self._number:
                result: dict[str, Any] = reply["result"]
                return result
        raise AssertionError("the server ended")


class HttpLine:
    """A server that others use too."""

    def __init__(self, url: str, token: str) -> None:
        self._peer = Peer(url, token)

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            with self._peer:
                reply = self._peer.stateless("tools/call", name=tool, arguments=arguments).answer()
        except (OSError, http.client.HTTPException) as error:
            raise Refused({"code": "NO_ANSWER", "message": str(error), "details": {"outcome": UNKNOWN}}) from error
        return _answered(reply["result"])


def _answered(result: dict[str, Any]) -> dict[str, Any]:
    structured = result.get("structuredContent") or msgspec.json.decode(result["content"][0]["text"])
    assert isinstance(structured, dict)
    if result.get("isError"):
        raise Refused(structured["error"])
    return structured
