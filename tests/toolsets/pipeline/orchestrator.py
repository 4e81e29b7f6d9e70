"""A scripted orchestrator: it does what the engine tells it, over whatever carries its calls, and writes real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

TASKS = """# Tasks

## Task 1: Wrap the fetch
mode: parallel
files:
- fetch.py
depends_on: []

## Task 2: Use it
mode: sequential
depends_on: [1]

## Task 3: Say so
mode: parallel
files:
- README.md
"""


class Orchestrator:
    """Does what it is told: writes the file of every phase, answers every gate with its first option."""

    def __init__(
        self, call: Callable[..., Any], project: Path, text: str = "Fix the auth timeout", effort: str = "M"
    ) -> None:
        self.call = call
        self.project = project
        begun = self.call("pipeline_init", arguments=text, current_branch="main")
        assert "errors" not in begun, begun
        self.flags = begun["flags"]
        ready = self.call(
            "pipeline_init_with_context",
            workspace=begun["workspace"],
            task_text=begun["core_text"],
            flags=self.flags,
            user_confirmation={"effort": effort, "workspace_slug": "work"},
        )
        assert ready["ready"] is True
        self.workspace: str = ready["workspace"]
        self.workflow: str = ready["workflow_id"]
        self.written: dict[str, list[str]] = {}
        """For a file, the texts to write into it, one after the other; the last one again and again."""
        self.answers: dict[str, list[str]] = {}
        self.seen: list[dict[str, Any]] = []
        self.version = 0

    def next(self, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("pipeline_next_action", workspace=self.workspace, **arguments)
        self.seen.append(answer)
        return answer

    def run(self, until: Callable[[dict[str, Any]], bool] = lambda action: action["type"] == "done") -> dict[str, Any]:
        action = self.next()
        for _ in range(200):
            if until(action):
                return action
            action = self.do(action)
        raise AssertionError("the run does not end")

    def do(self, action: dict[str, Any]) -> dict[str, Any]:
        """Carries out one action and reports it."""
        match action["type"]:
            case "checkpoint" | "human_gate":
                return self.next(user_response=self._answer(action))
            case "write_file":
                self.write(Path(action["path"]).name, action["content"])
            case "spawn_agent":
                for number in action["parallel_task_ids"] or [action.get("task_id", "")]:
                    self.produce(action["output_file"].replace("{N}", str(number)))
        return self.next(previous_action_complete=True, previous_tokens=100, previous_duration_ms=10)

    def _answer(self, action: dict[str, Any]) -> str:
        planned = self.answers.get(action["name"], [])
        return planned.pop(0) if planned else str(action["options"][0])

    def produce(self, name: str) -> None:
        planned = self.written.get(name, [])
        self.version += 1
        if planned:
            self.write(name, planned.pop(0) if len(planned) > 1 else planned[0])
        elif name == "tasks.md":
            self.write(name, TASKS)
        elif name.startswith("review-") and name.removesuffix(".md").rpartition("-")[2].isdigit():
            self.write(name, f"# Review {self.version}\n\n## Verdict: PASS\n")
        elif name.startswith("review-"):
            self.write(name, f"# Review {self.version}\n\n## Verdict: APPROVE\n")
        else:
            self.write(name, f"# Text {self.version}\n\n## Part\n")

    def write(self, name: str, text: str) -> None:
        folder = self.project / self.workspace
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    def phases(self) -> list[str]:
        return [action["phase"] for action in self.seen if action["type"] == "spawn_agent"]
