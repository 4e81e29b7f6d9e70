"""A project on disk and every way to call an operation in it: handler, both MCP call styles, both eras, command
line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click.testing
import msgspec

from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import Refusal
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.protocol.exchange import Connection
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import Server
from handrail.protocol.wire import Request, RpcError
from handrail.store.store import Store
from handrail.surfaces.cli.main import cli
from handrail.surfaces.invocation import invoke
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, build_server, settings_at
from tests.own_store import own_store

BROKEN_GUIDE = "id: broken-guide\nname: Broken\nsteps: ["
BROKEN_TEMPLATE = "name: Broken\ntasks: ["

Outcome = tuple[str, Any]
"""("ok", result) or ("refused", code)."""


class World:
    """A project folder and a Handrail over it with every toolset on."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        guides = self.project / ".handrail" / "guides"
        guides.mkdir(parents=True)
        self.home.mkdir()
        (guides / "broken-guide.yaml").write_text(BROKEN_GUIDE, encoding="utf-8")
        templates = self.project / ".handrail" / "templates"
        templates.mkdir()
        (templates / "broken-template.yaml").write_text(BROKEN_TEMPLATE, encoding="utf-8")
        self.given = given or {"profile": "all", "dynamic": True}
        self.place = WorkPlace(project=self.project, home=self.home, environ={})
        # Stands still at this moment: the command line, which has the world's own clock, still finds leases held.
        self.clock = FixedClock(time.time_ns() // 1_000_000)
        self._ledger = LazyLedger(self._open)

    def _open(self) -> Store:
        """The project's own file, with a clock that stands still and ids that count."""
        return own_store(self.project, self.home, clock=self.clock, ids=CountingIds())

    def handrail(self) -> Handrail:
        return assemble(self.place, settings_at(self.place, self.given), ledger=self._ledger)

    def before(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Makes the calls an example stands on."""
        for name, arguments in calls:
            outcome, value = through_handler(self, name, arguments)
            assert outcome == "ok", value

    def write(self, files: Mapping[str, str]) -> None:
        """Puts files into the project."""
        for path, text in files.items():
            (self.project / path).parent.mkdir(parents=True, exist_ok=True)
            (self.project / path).write_text(text, encoding="utf-8")

    def server(self) -> Server:
        return build_server(self.handrail())


def through_handler(world: World, name: str, arguments: Mapping[str, Any]) -> Outcome:
    handrail = world.handrail()
    operation = handrail.switch.find(name)
    assert operation is not None
    try:
        return "ok", invoke(operation, handrail.call, arguments, actor=Actor("tester", "test"))
    except Refusal as refusal:
        return "refused", refusal.code


def _serve(world: World, method: str, params: dict[str, Any], *, stateless: bool) -> Any:
    server = world.server()
    connection = Connection(lambda _: None)
    connection.revision = "2025-11-25"
    if stateless:
        params = {**params, "_meta": {META_VERSION: NEWEST, META_CAPABILITIES: {}}}
    return server.serve(server.open(connection, Request(1, method, params), connection.send))


NUMBERS = {-32602: "INVALID_PARAMS", -32001: "WORKFLOW_NOT_FOUND", -32002: "INVALID_WORKFLOW", -32003: "STEP_NOT_FOUND"}


def _code(error: RpcError) -> str:
    data = error.data or {}
    return str(data.get("code") or NUMBERS[error.code])


def through_tools_call(world: World, name: str, arguments: Mapping[str, Any], *, stateless: bool = False) -> Outcome:
    try:
        result = _serve(world, "tools/call", {"name": name, "arguments": dict(arguments)}, stateless=stateless)
    except RpcError as error:
        return "refused", _code(error)
    structured = result.get("structuredContent", msgspec.json.decode(result["content"][0]["text"]))
    assert msgspec.json.decode(result["content"][0]["text"]) == msgspec.json.decode(msgspec.json.encode(structured))
    return ("refused", structured["error"]["code"]) if result.get("isError") else ("ok", structured)


def through_stateless_call(world: World, name: str, arguments: Mapping[str, Any]) -> Outcome:
    return through_tools_call(world, name, arguments, stateless=True)


def through_bare_method(world: World, name: str, arguments: Mapping[str, Any]) -> Outcome:
    try:
        return "ok", _serve(world, name, dict(arguments), stateless=False)
    except RpcError as error:
        return "refused", _code(error)


def through_command_line(world: World, name: str, arguments: Mapping[str, Any]) -> Outcome:
    text = msgspec.json.encode(arguments).decode()
    toolsets = ["--toolsets", world.given["toolsets"]] if "toolsets" in world.given else []
    argv = ["call", name, text, "--root", str(world.project), "--json", "--dynamic", *toolsets]
    done = click.testing.CliRunner(env={"HOME": str(world.home)}).invoke(cli, argv)
    answer = msgspec.json.decode(done.stdout)
    if done.exit_code in (1, 2):
        return "refused", answer["error"]["code"]
    assert done.exit_code == 0, done.output
    return "ok", answer


SURFACES: dict[str, Callable[[World, str, Mapping[str, Any]], Outcome]] = {
    "handler": through_handler,
    "tools/call": through_tools_call,
    "tools/call 2026-07-28": through_stateless_call,
    "bare": through_bare_method,
    "command line": through_command_line,
}
