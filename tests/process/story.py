"""Stories: transcripts in YAML that are walked over real processes and a real working copy.

A step is one of:
  start: NAME, options: […]     a server process
  kill: NAME                    SIGKILL
  at: NAME, tool, arguments, shows | refused, keep     a call, what its answer must show, values to keep
  soon: NAME, tool, …           the same, asked again until its answer shows it: for what time brings about
  git: […words…]                a git command in the project, or in the folder that `in` names
  write: {path: text}, delete: [path]     files, as an agent changes them, there too
  reads: {path: text}           files as they must be, there too
`$name` stands for a kept value.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from tests.examples import shows
from tests.process.peer import ServerProcess, handrail_serve

STORIES = Path(__file__).parent.parent / "golden" / "transcripts"
DEADLINE_S = 30.0
LOOK_AGAIN_S = 0.05
SOMEBODY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
}


def walk(name: str, project: Path) -> None:
    """Takes every step of a story."""
    steps = yaml.safe_load((STORIES / f"{name}.yaml").read_text(encoding="utf-8"))
    with contextlib.ExitStack() as ends:
        walker = Walk(project, ends)
        for number, step in enumerate(steps, 1):
            try:
                walker.take(step)
            except AssertionError as failed:
                raise AssertionError(f"{name}, step {number}: {step}\n{failed}") from failed


class Walk:
    """The processes that run, and the values that were kept."""

    def __init__(self, project: Path, ends: contextlib.ExitStack) -> None:
        self._project = project
        self._ends = ends
        self._running: dict[str, ServerProcess] = {}
        self._kept: dict[str, Any] = {}

    def take(self, step: dict[str, Any]) -> None:
        match step:
            case {"start": name}:
                self._start(name, step.get("options", []))
            case {"kill": name}:
                server = self._running.pop(name)
                server.process.kill()
                server.process.wait()
            case {"git": words}:
                env = {**os.environ, **SOMEBODY, "HOME": str(self._project.parent)}
                subprocess.run(["git", *words], cwd=self._folder(step), env=env, check=True, capture_output=True)
            case {"write": files}:
                for path, text in files.items():
                    (self._folder(step) / path).parent.mkdir(parents=True, exist_ok=True)
                    (self._folder(step) / path).write_text(text, encoding="utf-8")
            case {"delete": paths}:
                for path in paths:
                    (self._folder(step) / path).unlink()
            case {"reads": files}:
                for path, text in files.items():
                    assert (self._folder(step) / path).read_text(encoding="utf-8") == text
            case {"soon": name}:
                self._call_until({**step, "at": name})
            case _:
                self._call(step)

    def _folder(self, step: dict[str, Any]) -> Path:
        return Path(self._filled(step["in"])) if "in" in step else self._project

    def _start(self, name: str, options: list[str]) -> None:
        env = {"HOME": str(self._project.parent)}
        server = self._ends.enter_context(handrail_serve(self._project, *options, env=env))
        server.initialize()
        self._running[name] = server

    def _call_until(self, step: dict[str, Any]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                self._call(step)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                threading.Event().wait(LOOK_AGAIN_S)
            else:
                return

    def _call(self, step: dict[str, Any]) -> None:
        arguments = self._filled(step.get("arguments", {}))
        reply = self._running[step["at"]].ask("tools/call", {"name": step["tool"], "arguments": arguments})
        assert "result" in reply, reply
        answer = reply["result"]["structuredContent"]
        if "refused" in step:
            assert answer["error"]["code"] == step["refused"], answer
            return
        assert not reply["result"].get("isError"), answer
        assert shows(self._filled(step.get("shows", {})), answer), answer
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
