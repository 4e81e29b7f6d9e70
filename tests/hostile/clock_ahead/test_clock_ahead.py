"""A clock that is five minutes ahead takes no live claim, one that is set back lets none live for ever, and it is told:
real servers on one file and on one PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.process.peer import DEADLINE_S, ServerProcess
from tests.process.served import Served
from tests.store.server import running, schema_of_its_own

ROOT = Path(__file__).parent.parent.parent.parent
AHEAD_S = 5 * 60 + 20
TOOLSETS = "introspection,workflow,task,agent,orchestration"
PLAN = {"summary": "s", "approach": "a", "tasks": [{"name": "one", "description": "the only one", "sequence": 1}]}
_schemas = count(1)


class Scene:
    """A project, the clock of its machine, and servers there. With PostgreSQL a server may be on another machine."""

    def __init__(self, folder: Path, options: tuple[str, ...], stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.options = options
        self._stack = stack
        self._machines = count(1)
        self.machine = self.new_machine()

    def new_machine(self, off_s: int = 0) -> Path:
        file = self.folder / f"clock_{next(self._machines)}"
        self.set_clock(off_s, file)
        return file

    def set_clock(self, off_s: int, machine: Path | None = None) -> None:
        file = machine or self.machine
        whole = file.with_suffix(".part")
        whole.write_text(str(off_s))
        whole.replace(file)

    def command(self, machine: Path, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tests.hostile.clock_ahead.shifted", str(machine), *arguments]

    @property
    def env(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT), "HOME": str(self.folder)}

    def serve(self, machine: Path, heartbeat_ms: int) -> tuple[ServerProcess, Served]:
        options = ("--toolsets", TOOLSETS, *self.options, "--set", f"heartbeat_ms={heartbeat_ms}")
        process = ServerProcess(self.command(machine, "serve", *options), cwd=self.folder, env=self.env)
        self._stack.enter_context(process)
        return process, Served(process)

    def doctor(self, machine: Path) -> list[dict[str, Any]]:
        env = {**os.environ, **self.env, **({"HANDRAIL_DB": self.options[1]} if self.options else {})}
        done = subprocess.run(
            self.command(machine, "doctor", "--json"),
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return [finding for finding in found if finding["check"] == "clock"]


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with contextlib.ExitStack() as stack:
        options: tuple[str, ...] = ()
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            address = stack.enter_context(schema_of_its_own(server, f"clock_{os.getpid()}_{next(_schemas)}"))
            options = ("--db", address)
        yield Scene(tmp_path, options, stack)


def begun(agent: Served) -> tuple[str, str]:
    """A workflow with one task, and who may take it: both ids."""
    made = agent.call("workflow_create", name="W", source_type="prompt", source_content="x")
    agent.call("workflow_set_plan", id=made["id"], plan=PLAN)
    (task,) = agent.call("workflow_next_tasks", workflow_id=made["id"])["tasks"]
    return str(task["id"]), agent.register("anna")


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, "it never came"
        threading.Event().wait(0.05)


def test_a_clock_ahead_takes_no_live_claim_and_is_told(scene: Scene) -> None:
    """On a file the clock of the one machine is set; on PostgreSQL another machine's clock is ahead from the start."""
    _, anna = scene.serve(scene.machine, 30_000)
    task, agent = begun(anna)
    claim = anna.call("task_claim", task_id=task, agent_id=agent)
    assert claim["success"]
    assert anna.call("mcp_info").get("warnings", []) == [], "a clock that is right is not spoken of"
    machine = scene.machine
    if scene.options:
        machine = scene.new_machine(AHEAD_S)
    else:
        scene.set_clock(AHEAD_S)
    process, ben = scene.serve(machine, 30_000)
    other = ben.register("ben")
    assert ben.call("task_claim", task_id=task, agent_id=other)["success"] is False
    assert ben.call("task_get_available", agent_id=other)["tasks"] == []
    (warning,) = ben.call("mcp_info")["warnings"]
    assert "5 minutes ahead" in warning
    (finding,) = scene.doctor(machine)
    assert (finding["level"], finding["what"]) == ("look", warning)
    done = anna.call("task_update_status", id=task, status="in_progress", agent_id=agent, fence=claim["fence"])
    assert done
    process.end_input()
    assert process.wait() == 0
    assert f"handrail: {warning}" in process.errors().splitlines()


def test_a_clock_set_back_lets_no_claim_live_for_ever(scene: Scene) -> None:
    _, anna = scene.serve(scene.machine, 200)
    task, agent = begun(anna)
    assert anna.call("task_claim", task_id=task, agent_id=agent)["success"]
    scene.set_clock(-3600)
    _, ben = scene.serve(scene.machine, 200)
    other = ben.register("ben")
    until(lambda: bool(ben.call("task_claim", task_id=task, agent_id=other)["success"]))
