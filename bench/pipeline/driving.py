"""Drives one run through the pipeline's tools, as an obedient agent does, and says how much processor time the calls
took. What agents write is written here, outside the measured time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.kernel.ledger import Actor
from handrail.surfaces.invocation import invoke
from handrail.wiring import Handrail

DRIVER = Actor("bench", "mcp")
REQUEST = "Imports must survive a lost connection: retry each batch, keep its place, and say so in the log."
PARAGRAPH = "The importer reads a batch, writes it in one transaction and notes how far it came. "
VERDICTS = {"design": "APPROVE_WITH_NOTES", "tasks": "APPROVE"}
FINDINGS = """
## Findings

**1. [MAJOR] importer/retry.py:40 retries without a limit when the connection is refused**
**2. [MINOR] the name of the log field differs between importer and queue**
"""
TASKS = """# Tasks

## Task 1: Note the place of each batch
mode: parallel
files:
- importer/place.py

## Task 2: Retry from that place
mode: sequential
depends_on: [1]
files:
- importer/retry.py

## Task 3: Say so in the log
mode: parallel
files:
- importer/log.py
"""
NOTES = """# Improvement report

- there is no test double for a connection that breaks
- the importer's settings are read in three places
"""


class Cpu:
    """Processor time of this process, its threads included."""

    def __init__(self) -> None:
        self.calls = 0
        self.us = 0.0

    def add(self, us: float) -> None:
        self.calls += 1
        self.us += us

    @property
    def per_call(self) -> float:
        return self.us / self.calls


class Driver:
    """One run, from its confirmation to its end."""

    def __init__(self, handrail: Handrail) -> None:
        self._handrail = handrail
        self._project = Path(handrail.call.here.repository)
        self.workspace = ""
        self.workflow = ""

    def confirm(self) -> float:
        """Begins the run; the processor time of the confirmation, in microseconds."""
        asked, _ = self.call("pipeline_init", arguments=REQUEST, current_branch="main")
        ready, us = self.call(
            "pipeline_init_with_context",
            workspace=asked["workspace"],
            task_text=asked["core_text"],
            flags=asked["flags"],
            user_confirmation={"effort": "L", "workspace_slug": "bench"},
        )
        self.workspace, self.workflow = ready["workspace"], ready["workflow_id"]
        (self._folder / "improvement.md").write_text(NOTES)
        return us

    @property
    def _folder(self) -> Path:
        return self._project / self.workspace

    def turns(self, cpu: Cpu) -> Iterator[dict[str, Any]]:
        """Every action of the run. The turns, each of which reports or answers the action before, are counted."""
        action = self.again()[0]
        while action["type"] != "done":
            yield action
            action, us = self._turn(action)
            cpu.add(us)

    def again(self) -> tuple[dict[str, Any], float]:
        """The present action asked for once more, with nothing to report."""
        return self.call("pipeline_next_action", workspace=self.workspace)

    def _turn(self, action: dict[str, Any]) -> tuple[dict[str, Any], float]:
        if action["type"] in ("checkpoint", "human_gate"):
            answer = action["options"][0]
            return self.call("pipeline_next_action", workspace=self.workspace, user_response=answer)
        if action["type"] == "spawn_agent":
            for number in action["parallel_task_ids"] or [action.get("task_id", "")]:
                name = action["output_file"].replace("{N}", number)
                (self._folder / name).write_text(document(name))
        reported = {"previous_action_complete": True, "previous_tokens": 12_000, "previous_duration_ms": 90_000}
        return self.call("pipeline_next_action", workspace=self.workspace, **reported)

    def call(self, name: str, **arguments: Any) -> tuple[Any, float]:
        operation = self._handrail.switch.find(name)
        assert operation is not None
        began = time.process_time_ns()
        answer = invoke(operation, self._handrail.call, arguments, actor=DRIVER)
        return answer, (time.process_time_ns() - began) / 1000


def document(name: str) -> str:
    """What an agent writes into the file of its phase."""
    if name == "tasks.md":
        return TASKS
    text = f"# {name.removesuffix('.md')}\n\n## What there is\n\n{PARAGRAPH * 30}\n"
    if not name.startswith("review-"):
        return text
    verdict = VERDICTS.get(name.removeprefix("review-").removesuffix(".md"), "PASS")
    return f"{text}{FINDINGS}\n## Verdict: {verdict}\n"
