"""An agent whose context was wiped finds its open task within two calls, knowing only what the server tells a client
that connects: its instructions and its tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.process.peer import ServerProcess, handrail_serve

PLAN = {
    "summary": "Retry with backoff",
    "approach": "Wrap, then test",
    "tasks": [
        {"name": "wrap", "description": "Wrap the fetch in a retry", "sequence": 1},
        {"name": "test", "description": "Test with a server that hangs up", "sequence": 1},
    ],
}


class WipedAgent:
    """Reads the instructions, calls the tool they name for this case, and where that finds no task or several, takes
    what the answer offers first. It knows nothing else."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        told = server.initialize()["result"]["instructions"]
        tools = {tool["name"]: tool for tool in server.ask("tools/list")["result"]["tools"]}
        sentence = next(part for part in re.split(r"(?<=[.;])\s+", told) if re.search(r"clear|compact|wiped", part))
        self._tool = next(name for name in re.findall(r"[a-z_]+", sentence) if name in tools)
        self._id = next(iter(tools[self._tool]["inputSchema"]["properties"]))
        self.calls = 0

    def find_thread(self) -> dict[str, Any]:
        answer = self._call({})
        if "error" in answer:
            answer = self._call({self._id: answer["error"]["details"]["open"][0]["id"]})
        elif answer["current_task"] is None:
            answer = self._call({self._id: answer["ready"][0]["id"]})
        return answer

    def _call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        reply = self._server.ask("tools/call", {"name": self._tool, "arguments": arguments})
        answer: dict[str, Any] = reply["result"]["structuredContent"]
        return answer


def work(project: Path, *started: str) -> None:
    """Another agent plans, starts some tasks, notes where it is, and dies."""
    with handrail_serve(project, "--profile", "team", env={"HOME": str(project)}) as server:
        server.initialize()

        def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
            assert not result.get("isError"), result
            answer: dict[str, Any] = result["structuredContent"]
            return answer

        created = call("workflow_create", name="Retry", source_type="prompt", source_content="Make imports survive.")
        call("workflow_set_plan", id=created["id"], plan=PLAN)
        call("workflow_set_parallelism", id=created["id"], max_parallel_tasks=2)
        for task in call("workflow_next_tasks")["tasks"]:
            if task["name"] in started:
                call("task_update_status", id=task["id"], status="in_progress")
                call("checkpoint_add", task_id=task["id"], type="progress", summary=f"half of {task['name']} is done")
        server.process.kill()


def found(project: Path) -> tuple[dict[str, Any], int]:
    with handrail_serve(project, env={"HOME": str(project)}) as server:
        agent = WipedAgent(server)
        return agent.find_thread(), agent.calls


def test_the_only_open_task_is_found_at_once(tmp_path: Path) -> None:
    work(tmp_path, "wrap")
    bundle, calls = found(tmp_path)
    assert calls == 1
    assert bundle["current_task"]["name"] == "wrap"
    assert bundle["current_task"]["checkpoints"][-1]["summary"] == "half of wrap is done"


def test_one_of_several_is_found_by_what_the_refusal_offers(tmp_path: Path) -> None:
    work(tmp_path, "wrap", "test")
    bundle, calls = found(tmp_path)
    assert calls == 2
    assert bundle["current_task"]["status"] == "in_progress"


def test_where_nothing_is_in_progress_the_next_task_is_found(tmp_path: Path) -> None:
    work(tmp_path)
    bundle, calls = found(tmp_path)
    assert calls == 2
    assert bundle["current_task"]["name"] == "wrap"
