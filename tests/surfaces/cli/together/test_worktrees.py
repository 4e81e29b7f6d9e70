"""`handrail worktrees` as a person uses it, in a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli.main import cli

TASKS = [
    {"name": "one", "description": "", "sequence": 1},
    {"name": "two", "description": "", "sequence": 2, "depends_on": ["one"]},
]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n", encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\n.handrail/\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def run(project: Path, *argv: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "COLUMNS": "100", "NO_COLOR": "1"}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def call(project: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    done = run(project, "call", tool, msgspec.json.encode(arguments).decode(), "--json")
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = msgspec.json.decode(done.stdout)
    return answer


def two_worktrees(project: Path) -> list[dict[str, Any]]:
    """A worktree for each of two tasks, the second of which depends on the first; each with a commit."""
    workflow = call(project, "workflow_create", name="W", source_type="prompt", source_content="c")["id"]
    call(project, "workflow_set_plan", id=workflow, plan={"summary": "s", "approach": "a", "tasks": TASKS})
    shown = call(project, "plan_workflow_get", id=workflow, include_tasks=True)["tasks"]
    spaces = []
    for number, task in enumerate(reversed(shown), 1):
        space = call(project, "workspace_create", workflow_id=workflow, task_ids=[task["id"]], create=True)
        (Path(space["path"]) / f"{number}.txt").write_text("new\n", encoding="utf-8")
        git(Path(space["path"]), "add", "-A")
        git(Path(space["path"]), "commit", "-qm", f"work {number}")
        spaces.append(space)
    return spaces


def test_worktrees_are_listed_with_their_state(project: Path) -> None:
    first, second = two_worktrees(project)
    (Path(first["path"]) / "draft.txt").write_text("not yet\n", encoding="utf-8")
    lines = run(project, "worktrees").stdout
    for words in (first["branch"], second["branch"], "1 ahead and 0 behind main", "1 file not committed: draft.txt"):
        assert words in lines
    assert f"merge after {second['branch']}" in lines
    assert "on disk" in lines


def test_what_will_not_merge_is_said(project: Path) -> None:
    for number, space in enumerate(two_worktrees(project)):
        (Path(space["path"]) / "a.txt").write_text(f"{number}\n", encoding="utf-8")
    lines = " ".join(run(project, "worktrees").stdout.split())
    assert "will not merge: a.txt" in lines


def test_all_are_merged_in_order_and_cleared_up_only_when_told_to(project: Path) -> None:
    first, second = two_worktrees(project)
    merged = run(project, "worktrees", "merge").stdout.splitlines()
    assert [line.split()[1] for line in merged] == [second["id"], first["id"]]
    assert {path.name for path in project.glob("*.txt")} == {"a.txt", "1.txt", "2.txt"}
    (Path(first["path"]) / "build.log").write_text("kept\n", encoding="utf-8")
    said = " ".join(run(project, "worktrees", "clean").stdout.split())
    assert "would go" in said
    assert "Nothing was done" in said
    assert Path(second["path"]).is_dir()
    said = run(project, "worktrees", "clean", "--yes").stdout
    assert not Path(second["path"]).exists()
    assert (Path(first["path"]) / "build.log").exists(), "a file that git ignores keeps the folder"
    assert second["branch"] not in git(project, "branch", "--list", "--format=%(refname:short)").split()
    run(project, "worktrees", "clean", "--yes", "--ignored")
    assert not Path(first["path"]).exists()
    assert "nothing to clear up" in run(project, "worktrees", "clean").stdout


def test_what_is_abandoned_keeps_its_branch_and_what_was_not_committed(project: Path) -> None:
    first, _ = two_worktrees(project)
    (Path(first["path"]) / "draft.txt").write_text("half an idea\n", encoding="utf-8")
    assert "abandoned" in run(project, "worktrees", "abandon", first["id"]).stdout
    run(project, "worktrees", "clean", "--yes")
    assert not Path(first["path"]).exists()
    assert git(project, "show", f"{first['branch']}:draft.txt") == "half an idea\n"


def test_an_empty_list_says_how_to_make_one(project: Path) -> None:
    assert "workspace_create" in run(project, "worktrees").stdout
    assert "nothing to merge" in run(project, "worktrees", "merge").stdout


def test_why_says_that_what_was_done_in_a_worktree_will_not_merge(project: Path) -> None:
    first, second = two_worktrees(project)
    assert "will not merge" not in run(project, "why", "one").stdout
    for space, text in ((first, "mine\n"), (second, "yours\n")):
        (Path(space["path"]) / "a.txt").write_text(text, encoding="utf-8")
        git(Path(space["path"]), "commit", "-qam", "the same line")
    said = " ".join(run(project, "why", "one").stdout.split())
    assert f"But its worktree {second['branch']} will not merge with {first['branch']}: a.txt." in said
    assert "will not merge" in msgspec.json.decode(run(project, "why", "one", "--json").stdout)["sentence"]


def test_a_workspace_that_is_not_there_is_looked_for_by_a_command(project: Path) -> None:
    refused = run(project, "worktrees", "abandon", "ws_1")
    assert "`handrail worktrees` lists those there are" in refused.stderr
