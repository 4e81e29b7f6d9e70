"""What a server tells a client that connects, asked of a real process over its pipes."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.crew.lines import INITIALIZE, NOT_FOUND
from bench.started import Piped, Stuck

DEADLINE_S = 60.0
MOST_PAGES = 100


class Told(msgspec.Struct, frozen=True):
    """All tools as `tools/list` has them, over all its pages, and the instructions."""

    tools: list[dict[str, Any]]
    instructions: str = ""


def told_by(command: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> Told:
    """Starts the server, asks what it has and ends it. Raises Stuck."""
    talk = _Talk(command, cwd, environ, cwd / "stderr.txt")
    try:
        return _asked(talk)
    finally:
        talk.end()


def _asked(talk: _Talk) -> Told:
    greeting = talk.ask(0, "initialize", INITIALIZE)
    talk.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    tools: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for number in range(1, MOST_PAGES):
        page = talk.ask(number, "tools/list", params)
        tools += page["tools"]
        if page.get("nextCursor") is None:
            break
        params = {"cursor": page["nextCursor"]}
    return Told(tools, greeting.get("instructions") or "")


class _Talk(Piped):
    """Requests and their answers, one after the other."""

    _pending = b""

    def say(self, message: Mapping[str, Any]) -> None:
        try:
            os.write(self._in.fileno(), msgspec.json.encode(message) + b"\n")
        except BrokenPipeError:
            raise Stuck("the server ended") from None

    def ask(self, number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        deadline = time.monotonic() + DEADLINE_S
        while select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))[0]:
            for message in self._heard(method):
                if "method" in message:
                    self._decline(message)
                elif message.get("id") == number:
                    if "result" not in message:
                        raise Stuck(f"{method} was refused: {message.get('error')}")
                    result: dict[str, Any] = message["result"]
                    return result
        raise Stuck(f"no answer to {method} within {DEADLINE_S:.0f} s")

    def _heard(self, method: str) -> list[dict[str, Any]]:
        chunk = os.read(self._out.fileno(), 1 << 16)
        if not chunk:
            raise Stuck(f"ended before it answered {method}")
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        messages = []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):  # some say other things on standard output too
                messages.append(msgspec.json.decode(line))
        return [message for message in messages if isinstance(message, dict)]

    def _decline(self, request: Mapping[str, Any]) -> None:
        """What a server asks of its client is refused: this one can do nothing."""
        if "id" in request:
            refusal = {"code": NOT_FOUND, "message": "this client has nothing to offer"}
            self.say({"jsonrpc": "2.0", "id": request["id"], "error": refusal})
