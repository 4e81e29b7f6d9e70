"""A repository whose store a real server has made, and hooks run in it as a client runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from tests.process.peer import ServerProcess, handrail_serve

HOOK = [sys.executable, "-m", "handrail.hooks"]
PLAN = {"approach": "A decorator", "steps": ["write it", "use it", "tell of it"]}


class Scene:
    """A repository with one commit, a home that is somewhere else, and a server where one is started."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.repo = (folder / "repo").resolve()
        self.home.mkdir()
        self.repo.mkdir()
        (self.repo / "a.py").write_text("a = 1\n", encoding="utf-8")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "begin")
        self._server: ServerProcess | None = None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL_", "CLAUDE_"))}
        return {**kept, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

    @property
    def store(self) -> Path:
        return self.repo / ".handrail" / "handrail.db"

    def git(self, *words: str, at: Path | None = None) -> None:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
        subprocess.run(command, cwd=at or self.repo, env=self.environment, check=True, capture_output=True)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A tool of the server that runs here, which the first call starts."""
        if self._server is None:
            self._server = handrail_serve(self.repo, "--profile", "team", env={"HOME": str(self.home)})
            self._server.initialize()
        result = self._server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def stop_server(self, *, kill: bool = False) -> None:
        if self._server is not None:
            if not kill:
                self._server.end_input()
                self._server.wait()
            self._server.__exit__(None, None, None)
            self._server = None

    def workflow(self, name: str = "Retry imports") -> str:
        made = self.call("start_workflow", name=name, description="Make imports survive a lost connection.")
        return str(made["workflow_id"])

    def task(self, name: str = "wrap", *, workflow: str | None = None, directory: Path | None = None) -> str:
        """A journalled task in progress."""
        started = self.call(
            "start_task",
            workflow_id=workflow or self.workflow(),
            name=name,
            goal=f"Get {name} done",
            directory=str(directory or self.repo),
        )
        return str(started["task_id"])

    def planned(self, *tasks: dict[str, Any]) -> str:
        """The first of some tasks of a plan, which can be started."""
        workflow = self.call("workflow_create", name="Retry", source_type="prompt", source_content="Survive.")["id"]
        listed = [{"description": "-", "sequence": 1, **task} for task in tasks]
        self.call("workflow_set_plan", id=workflow, plan={"summary": "s", "approach": "a", "tasks": listed})
        return str(self.call("workflow_next_tasks", workflow_id=workflow)["tasks"][0]["id"])

    def hook(
        self, event: str, *options: str, given: dict[str, Any] | bytes | None = None, **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        """The hook as a client runs it: its event on standard input."""
        if given is None or isinstance(given, dict):
            given = msgspec.json.encode({"session_id": "s1", "cwd": str(self.repo), **(given or {})})
        return subprocess.run(
            [*HOOK, event, *options],
            cwd=self.home,
            env={**self.environment, **environ},
            input=given,
            capture_output=True,
            timeout=30,
            check=False,
        )

    def said(self, event: str, *options: str, given: dict[str, Any] | None = None, **environ: str) -> str:
        """What a hook printed. It always ends well, and never complains."""
        done = self.hook(event, *options, given=given, **environ)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def edit(self, path: str = "a.py", **environ: str) -> None:
        """The agent edits a file, and its client runs the hook."""
        (self.repo / path).write_text("b = 2\n", encoding="utf-8")
        given = {"tool_name": "Edit", "tool_input": {"file_path": str(self.repo / path), "new_string": "b = 2"}}
        assert self.said("edited", given=given, **environ) == ""

    def files(self) -> set[str]:
        """Everything in the repository but git's own."""
        return {
            str(path.relative_to(self.repo))
            for path in self.repo.rglob("*")
            if ".git" not in path.relative_to(self.repo).parts
        }
