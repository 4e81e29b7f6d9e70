"""A pipeline over real server processes, each killed with SIGKILL after every action: the next one goes on where the
run stood, in a real repository. And two of them that want to drive one run."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.peer import ServerProcess, handrail_serve
from tests.process.story import SOMEBODY
from tests.toolsets.pipeline.orchestrator import Orchestrator

TOOLSETS = ("--toolsets", "pipeline,plan")


class Mortal:
    """A client whose server dies whenever it is told to, and is started again by the next call."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._context: Any = None
        self._server: ServerProcess | None = None
        self.deaths = 0

    def call(self, tool: str, **arguments: Any) -> Any:
        if self._server is None:
            self._context = handrail_serve(self._project, *TOOLSETS, env={"HOME": str(self._project.parent)})
            self._server = self._context.__enter__()
            self._server.initialize()
        reply = self._server.ask("tools/call", {"name": tool, "arguments": arguments})
        result = reply["result"]
        assert not result.get("isError"), result["structuredContent"]
        return result["structuredContent"]

    def kill(self) -> None:
        if self._server is not None:
            self._server.process.kill()
            self._server.process.wait()
            self._context.__exit__(None, None, None)
            self._server = None
            self.deaths += 1


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    project = tmp_path / "project"
    project.mkdir()
    env = {**SOMEBODY, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(["git", *words], cwd=project, env=env, check=True, capture_output=True)
    client = Mortal(project)
    yield client
    client.kill()


@pytest.mark.parametrize(
    ("effort", "every"), [("S", 5), ("M", 5), ("L", 4), pytest.param("L", 1, marks=pytest.mark.torture)]
)
def test_a_run_survives_kills(mortal: Mortal, tmp_path: Path, effort: str, every: int) -> None:
    """After some of its actions; in the torture after every one of the longest run."""
    run = Orchestrator(mortal.call, tmp_path / "project", effort=effort)
    run.written["review-2.md"] = ["1\n## Verdict: FAIL\n", "2\n## Verdict: PASS\n"]
    run.written["review-design.md"] = ["1\n## Verdict: REVISE\n", "2\n## Verdict: APPROVE\n"]
    seen: list[tuple[str, str]] = []
    action = run.next()
    while action["type"] != "done":
        if len(seen) % every == 0:
            mortal.kill()
        again = run.next()
        same = [key for key in action if key not in ("report_result", "warning")]
        assert {key: again[key] for key in same} == {key: action[key] for key in same}, "the same is to be done"
        seen.append((action["type"], action.get("phase") or action["name"]))
        action = run.do(action)
        assert len(seen) < 100
    assert action["summary"].startswith("Pipeline completed")
    assert mortal.deaths >= len(seen) // every
    info = mortal.call("state_resume_info", workspace=run.workspace)
    assert info["status"] == "completed"
    assert ("checkpoint", "checkpoint-a") in seen
    assert seen.count(("spawn_agent", "phase-5")) >= 3, "one task failed its review and was done again"
    assert ("exec", "pr-creation") in seen
    progress = mortal.call("workflow_progress", workflow_id=run.workflow)
    assert progress["by_status"]["completed"] == 3


@contextlib.contextmanager
def serving(project: Path, name: str) -> Iterator[ServerProcess]:
    """A server of its own for a client of this name."""
    with handrail_serve(project, *TOOLSETS, env={"HOME": str(project.parent)}) as server:
        introduced = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        server.ask("initialize", introduced)
        yield server


def asked(server: ServerProcess, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer, or the error it was refused with."""
    result: dict[str, Any] = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
    content: dict[str, Any] = result["structuredContent"]
    return {"refused": content["error"]} if result.get("isError") else content


def test_of_two_orchestrators_one_drives_until_it_is_gone_or_replaced(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".handrail").mkdir(parents=True)
    with serving(project, "first") as first, serving(project, "second") as second, serving(project, "third") as third:
        run = Orchestrator(lambda tool, **arguments: asked(first, tool, **arguments), project)
        action = run.next()
        refused = asked(second, "pipeline_next_action", workspace=run.workspace)["refused"]
        assert refused["code"] == "WORKSPACE_HELD"
        assert refused["message"].startswith(f"first drives {run.workspace}")
        assert refused["details"]["held_by"]["name"] == "first"
        first.process.kill()
        first.process.wait()
        after = asked(second, "pipeline_next_action", workspace=run.workspace)
        assert (after["phase"], after["prompt"]) == (action["phase"], action["prompt"]), "it goes on at once"
        assert asked(third, "pipeline_next_action", workspace=run.workspace)["refused"]["code"] == "WORKSPACE_HELD"
        taken = asked(third, "pipeline_next_action", workspace=run.workspace, take_over=True)
        assert taken["phase"] == action["phase"]
        refused = asked(second, "pipeline_report_result", workspace=run.workspace, phase="phase-1")["refused"]
        assert refused["message"].startswith("third drives")
        second.end_input()
        assert second.wait() == 0
        run.call = lambda tool, **arguments: asked(third, tool, **arguments)
        assert run.run()["summary"].startswith("Pipeline completed")
