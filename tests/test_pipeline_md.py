"""Every payload of pipeline.md, held against a real `handrail serve`.

A reply has every key the document shows, in its order, in the same types, with equal values where the document
determines them; more keys are welcome. Where a value differs on purpose, DEVIATIONS says what stands there and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.examples import shows
from tests.process.peer import ServerProcess, handrail_serve

FOLDER = Path(__file__).parent / "golden" / "pipeline_md"
ISSUE = "https://github.com/owner/repo/issues/42"
OWN_FLOW = """name: bare
phases:
  - {id: phase-5, label: Implementation, kind: tasks, plan: tasks.md, agent: implementer, output: "impl-{N}.md"}
"""
LISTED = """name: listed
phases:
  - {id: phase-4, label: Task Decomposition, kind: agent, agent: task-decomposer, output: tasks.md}
  - {id: phase-5, label: Implementation, kind: tasks, plan: tasks.md, agent: implementer, output: "impl-{N}.md"}
"""
GATED = "# Tasks\n\n## Task 3: Merge the other pull request\nmode: human_gate\n"

DEVIATIONS: dict[tuple[str, str], tuple[Any, str]] = {
    ("resume", "workspace"): (..., "the run that is there"),
    ("new", "workspace"): (".specs/...-https-github-com-owner-repo-issues-42", "today's date"),
    ("confirmation", "needs_user_confirmation.message"): (
        'Detected effort="M": ...',
        "a colon, since what decided follows (the issue asks for it)",
    ),
    ("checkpoint", "present_to_user"): (
        "## Human Reviews Design\n\n...",
        "the document's own label of checkpoint-a in its skip lists",
    ),
    ("human_gate", "name"): ("task-3", "the document's name is one task's; tasks have numbers here"),
    ("write_file", "path"): (..., "the run that is there"),
    ("done", "summary"): ("Pipeline completed: ... phases, ... skipped", "as many as this run has"),
    ("done", "summary_path"): (".specs/.../summary.md", "the run that is there"),
}


def payload(name: str) -> Any:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())


def differences(name: str, shown: Any, real: Any, path: str = "") -> Iterator[str]:
    """What is not as the document has it."""
    if (name, path) in DEVIATIONS:
        shown = DEVIATIONS[name, path][0]
        if shown is ...:
            return
    if isinstance(shown, dict):
        if not isinstance(real, dict):
            yield f"{path}: {real!r} is no object"
            return
        there = [key for key in real if key in shown]
        if there != list(shown):
            yield f"{path}: keys {there}, not {list(shown)}"
            return
        for key, value in shown.items():
            yield from differences(name, value, real[key], f"{path}.{key}".lstrip("."))
    elif isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        for number, (one, other) in enumerate(zip(shown, real, strict=True)):
            yield from differences(name, one, other, f"{path}[{number}]")
    elif not shows(shown, real):
        yield f"{path}: {real!r}, not {shown!r}"


class Played:
    """A server and what it answered."""

    def __init__(self, server: ServerProcess, project: Path) -> None:
        self._server, self._project = server, project

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self._server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result["structuredContent"]
        return result["structuredContent"]

    def begin(self, name: str, **more: Any) -> str:
        confirmed = {"effort": "M", "workspace_slug": name, **more}
        ready = self.call(
            "pipeline_init_with_context",
            workspace=".specs/20260401-x",
            task_text="Fix auth",
            user_confirmation=confirmed,
        )
        workspace: str = ready["workspace"]
        return workspace

    def step(self, workspace: str, **files: str) -> Any:
        """Writes files, named without `.md`, and reports."""
        for name, text in files.items():
            (self._project / workspace / f"{name.replace('_', '-')}.md").write_text(text, encoding="utf-8")
        return self.call("pipeline_next_action", workspace=workspace, previous_action_complete=True)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    project = tmp_path_factory.mktemp("pipeline") / "project"
    flows = project / ".handrail" / "flows"
    flows.mkdir(parents=True)
    (flows / "bare.yaml").write_text(OWN_FLOW, encoding="utf-8")
    (flows / "listed.yaml").write_text(LISTED, encoding="utf-8")
    with handrail_serve(project, "--toolsets", "pipeline", env={"HOME": str(project.parent)}) as server:
        server.initialize()
        yield Played(server, project)


def replies(played: Played) -> Iterator[tuple[str, Any]]:
    """Each payload of the document with what is really answered, in the order of a run."""
    yield "new", played.call("pipeline_init", arguments=ISSUE, current_branch="main")
    yield "errors", played.call("pipeline_init", arguments="x")
    text = {"workspace": ".specs/20260401-x", "task_text": "implement login feature"}
    yield "confirmation", played.call("pipeline_init_with_context", **text, flags={"current_branch": "main"})
    yield "discussion", played.call("pipeline_init_with_context", **text, flags={"discuss": True})
    ready = played.call(
        "pipeline_init_with_context",
        workspace=".specs/20260401-https-github-com-owner-repo-issues-42",
        source_id="42",
        source_url=ISSUE,
        external_context={"github_title": "Fix auth timeout", "github_body": "requests timeout after 30s"},
        user_confirmation={"effort": "M", "workspace_slug": "fix-auth-timeout"},
    )
    yield "ready", ready
    yield "resume", played.call("pipeline_init", arguments=ready["workspace"])
    workspace = played.begin("fix-auth")
    action = played.call("pipeline_next_action", workspace=workspace)
    yield "wrapped", action
    yield "spawn_agent", action
    played.step(workspace, analysis="# Analysis")
    played.step(workspace, investigation="# Investigation")
    played.step(workspace, design="# Design\n\n## Parts")
    review = "## Verdict: APPROVE_WITH_NOTES\n**[MINOR] Consider adding error context to...**"
    action = played.step(workspace, review_design=review)
    yield "report", action["report_result"]
    yield "checkpoint", action
    played.call("pipeline_next_action", workspace=workspace, user_response="approve")
    played.step(workspace, tasks="# Tasks\n\n## Task 1: Do it\n")
    played.step(workspace, impl_1="done")
    played.step(workspace, review_1="## Verdict: PASS")
    played.step(workspace, comprehensive_review="fine")
    push = played.step(workspace, final_verification="fine")
    assert (push["commands"][:2], push["setup_only"]) == (["git", "push"], True)
    yield "exec", played.step(workspace)
    played.step(workspace)
    played.step(workspace, summary="Done.")
    played.step(workspace)
    played.step(workspace)
    yield "done", played.step(workspace)
    yield "write_file", played.call("pipeline_next_action", workspace=played.begin("bare", flow="bare"))
    gated = played.begin("gated", flow="listed")
    played.call("pipeline_next_action", workspace=gated)
    yield "human_gate", played.step(gated, tasks=GATED)


def test_every_payload_is_as_the_document_has_it(played: Played) -> None:
    told: dict[str, list[str]] = {}
    for name, real in replies(played):
        told[name] = list(differences(name, payload(name), real))
    assert {name: found for name, found in told.items() if found} == {}
    assert set(told) == {file.stem for file in FOLDER.glob("*.json")}, "every payload of the document is played"
