"""One piece of work through every vocabulary, over two processes, one of which is killed in the middle.

The story is `tests/golden/transcripts/one_thread.yaml`; this module only walks it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import yaml

from tests.examples import shows
from tests.process.peer import ServerProcess, handrail_serve

STORY = Path(__file__).parent.parent / "golden" / "transcripts" / "one_thread.yaml"


class Walk:
    """The processes that run, and the values that were kept."""

    def __init__(self, project: Path, ends: contextlib.ExitStack) -> None:
        self._project = project
        self._ends = ends
        self._running: dict[str, ServerProcess] = {}
        self._kept: dict[str, Any] = {}

    def take(self, step: dict[str, Any]) -> None:
        if "start" in step:
            env = {"HOME": str(self._project)}
            server = self._ends.enter_context(handrail_serve(self._project, *step["options"], env=env))
            server.initialize()
            self._running[step["start"]] = server
        elif "kill" in step:
            server = self._running.pop(step["kill"])
            server.process.kill()
            server.process.wait()
        else:
            self._call(step)

    def _call(self, step: dict[str, Any]) -> None:
        arguments = self._filled(step.get("arguments", {}))
        reply = self._running[step["at"]].ask("tools/call", {"name": step["tool"], "arguments": arguments})
        answer = reply["result"]["structuredContent"]
        if "refused" in step:
            assert answer["error"]["code"] == step["refused"], answer
            return
        assert not reply["result"].get("isError"), answer
        assert shows(self._filled(step["shows"]), answer), answer
        for name, path in step.get("keep", {}).items():
            value = answer
            for part in path.split("."):
                value = value[int(part)] if part.isdigit() else value[part]
            self._kept[name] = value

    def _filled(self, value: Any) -> Any:
        """The value with `$name` in the place of what was kept under that name."""
        if isinstance(value, dict):
            return {key: self._filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner) for inner in value]
        return self._kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def test_one_thread_runs_through_every_vocabulary_and_a_killed_process(tmp_path: Path) -> None:
    steps = yaml.safe_load(STORY.read_text(encoding="utf-8"))
    with contextlib.ExitStack() as ends:
        walk = Walk(tmp_path, ends)
        for step in steps:
            walk.take(step)
