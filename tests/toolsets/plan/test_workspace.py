"""Workspaces that git makes and merges, through the tools; what is only recorded; what refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import (
    ChecksFailed,
    ClaimHeld,
    IllegalTransition,
    InvalidParams,
    MergeConflict,
    MergeOrder,
    WorktreeRefused,
    WouldLoseWork,
)
from tests.toolsets.plan.planned import Desk

CHAIN = ({"name": "one"}, {"name": "two", "depends_on": ["one"]})


def git(folder: Path | str, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n", encoding="utf-8")
    (folder / ".gitignore").write_text(".handrail/\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def commit(space: dict[str, Any], name: str, text: str) -> None:
    (Path(space["path"]) / name).write_text(text, encoding="utf-8")
    git(space["path"], "add", "-A")
    git(space["path"], "commit", "-qm", name)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    repository(tmp_path / "project")
    return desk


def made(desk: Desk, *task_ids: str) -> dict[str, Any]:
    answer: dict[str, Any] = desk.call("workspace_create", workflow_id="wf_1", task_ids=list(task_ids), create=True)
    return answer


def test_a_worktree_is_made_on_a_branch_of_its_own(desk: Desk, tmp_path: Path) -> None:
    desk.plan(*CHAIN)
    space = made(desk, "task_1")
    assert git(space["path"], "branch", "--show-current") == space["branch"]
    assert space["base_branch"] == "main"
    assert desk.task("task_1")["workspace_id"] == space["id"]
    assert git(tmp_path / "project", "status", "--porcelain") == "", "the user's working copy shows nothing of it"


def test_making_it_again_after_a_crash_finds_what_was_made(desk: Desk) -> None:
    """The worktree is there and no record: the process died in between."""
    desk.plan(*CHAIN)
    first = made(desk, "task_1")
    assert isinstance(
        desk.refusal("workspace_create", workflow_id="wf_1", task_ids=["task_1"], create=True), WorktreeRefused
    )
    desk.call("workspace_update", id=first["id"], status="abandoned")
    again = made(desk, "task_1")
    assert (again["path"], again["branch"]) == (first["path"], first["branch"])
    assert again["id"] != first["id"]


def test_a_claim_makes_room_where_the_workflow_wants_it(desk: Desk) -> None:
    desk.plan(*CHAIN, auto_create_workspaces=True)
    agent = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    claimed = desk.call("task_claim", task_id="task_1", agent_id=agent, start=True)
    assert Path(claimed["workspace"]["path"], "a.txt").exists()
    again = desk.call("task_claim", task_id="task_1", agent_id=agent, start=True)
    assert again["workspace"] == claimed["workspace"]
    assert desk.task("task_1")["workspace_id"] == claimed["workspace"]["id"]


def test_a_claim_without_git_is_granted_and_says_why_there_is_no_worktree(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plan(*CHAIN, auto_create_workspaces=True)
    agent = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    claimed = desk.call("task_claim", task_id="task_1", agent_id=agent, start=True)
    assert claimed["success"] is True
    assert claimed["warnings"][0].startswith("no worktree was made")


def test_workspaces_are_merged_in_the_order_their_tasks_depend_on_each_other(desk: Desk, tmp_path: Path) -> None:
    desk.plan(*CHAIN)
    one, two = made(desk, "task_1"), made(desk, "task_2")
    commit(one, "one.txt", "1\n")
    commit(two, "two.txt", "2\n")
    refusal = desk.refusal("workspace_update", id=two["id"], status="merged", merge=True)
    assert isinstance(refusal, MergeOrder)
    assert refusal.details["first"] == [one["id"]]
    for space in (one, two):
        answer = desk.call("workspace_update", id=space["id"], status="merged", merge=True, remove=True)
        assert answer["removal"]["removed"] is True
        assert git(tmp_path / "project", "rev-parse", "main") == answer["merge_commit"]
    assert (tmp_path / "project" / "two.txt").read_text(encoding="utf-8") == "2\n"


def test_a_conflict_is_foreseen_and_refused(desk: Desk, tmp_path: Path) -> None:
    desk.plan({"name": "one"}, {"name": "two"})
    one, two = made(desk, "task_1"), made(desk, "task_2")
    commit(one, "a.txt", "one\n")
    commit(two, "a.txt", "two\n")
    listed = desk.call("workspace_list", workflow_id="wf_1")
    assert listed["conflicts"] == [{"one": one["id"], "other": two["id"], "paths": ["a.txt"]}]
    desk.call("workspace_update", id=one["id"], status="merged", merge=True)
    before = git(tmp_path / "project", "rev-parse", "main")
    assert isinstance(desk.refusal("workspace_update", id=two["id"], status="merged", merge=True), MergeConflict)
    assert git(tmp_path / "project", "rev-parse", "main") == before
    listed = desk.call("workspace_list", workflow_id="wf_1", status=["active"])
    assert listed["conflicts"] == [{"one": "base", "other": two["id"], "paths": ["a.txt"]}]


def test_what_is_not_committed_is_not_left_behind(desk: Desk) -> None:
    desk.plan(*CHAIN)
    space = made(desk, "task_1")
    (Path(space["path"]) / "draft.txt").write_text("d\n", encoding="utf-8")
    refusal = desk.refusal("workspace_update", id=space["id"], status="merged", merge=True)
    assert isinstance(refusal, WouldLoseWork)
    answer = desk.call("workspace_update", id=space["id"], status="abandoned", remove=True)
    assert git(Path(space["path"]).parents[2], "show", f"{space['branch']}:draft.txt") == "d"
    assert answer["removal"]["kept_commit"]


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, False)])
def test_the_projects_checks_run_on_the_merged_result(tmp_path: Path, code: int, passes: bool) -> None:
    check = ["python3", "-c", f"import pathlib, sys; sys.exit({code} if pathlib.Path('one.txt').exists() else 9)"]
    desk = Desk(tmp_path, checks={"there": check})
    repository(tmp_path / "project")
    desk.plan(*CHAIN)
    space = made(desk, "task_1")
    commit(space, "one.txt", "1\n")
    if passes:
        answer = desk.call("workspace_update", id=space["id"], status="merged", merge=True)
        assert [(check["name"], check["passed"]) for check in answer["checks"]] == [("there", True)]
        return
    before = git(tmp_path / "project", "rev-parse", "main")
    assert isinstance(desk.refusal("workspace_update", id=space["id"], status="merged", merge=True), ChecksFailed)
    assert git(tmp_path / "project", "rev-parse", "main") == before


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("workspace_create", {"workflow_id": "wf_1", "path": "/srv/x"}),
        ("workspace_update", {"id": "ws_1", "merge": True}),
        ("workspace_update", {"id": "ws_1", "status": "active", "remove": True}),
    ],
)
def test_what_does_not_go_together_is_refused(desk: Desk, tool: str, arguments: dict[str, Any]) -> None:
    desk.plan(*CHAIN)
    assert isinstance(desk.refusal(tool, **arguments), InvalidParams)


def test_a_place_that_git_does_not_know_is_listed_with_the_reason(desk: Desk, tmp_path: Path) -> None:
    desk.plan(*CHAIN)
    where = {"path": str(tmp_path / "nowhere"), "branch": "b", "base_branch": "main"}
    desk.call("workspace_create", workflow_id="wf_1", **where)
    (listed,) = desk.call("workspace_list", workflow_id="wf_1")["workspaces"]
    assert listed["state"]["exists"] is False


def test_what_is_refused_has_not_been_done(desk: Desk, tmp_path: Path) -> None:
    desk.plan(*CHAIN)
    space = made(desk, "task_1")
    commit(space, "one.txt", "1\n")
    desk.call("workspace_update", id=space["id"], status="abandoned")
    before = git(tmp_path / "project", "rev-parse", "main")
    refusal = desk.refusal("workspace_update", id=space["id"], status="merged", merge=True)
    assert isinstance(refusal, IllegalTransition)
    assert git(tmp_path / "project", "rev-parse", "main") == before


def test_nobody_takes_a_worktree_from_under_an_agent_that_works_in_it(desk: Desk) -> None:
    desk.plan(*CHAIN, auto_create_workspaces=True)
    agent = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    space = desk.call("task_claim", task_id="task_1", agent_id=agent, start=True)["workspace"]
    refusal = desk.refusal("workspace_update", id=space["id"], status="abandoned", remove=True)
    assert isinstance(refusal, ClaimHeld)
    assert Path(space["path"]).is_dir()
    desk.call("workspace_update", id=space["id"], status="abandoned", remove=True, agent_id=agent)
    again = desk.call("task_claim", task_id="task_1", agent_id=agent, start=True)["workspace"]
    assert again["id"] != space["id"]
    assert Path(again["path"], "a.txt").is_file(), "where it is said to be, it is"


def test_commits_beside_the_branch_are_not_left_behind(desk: Desk) -> None:
    desk.plan(*CHAIN)
    space = made(desk, "task_1")
    git(space["path"], "checkout", "-q", "--detach")
    commit(space, "one.txt", "1\n")
    assert isinstance(desk.refusal("workspace_update", id=space["id"], status="merged", merge=True), WouldLoseWork)


def test_two_worktrees_without_tasks_have_places_of_their_own(desk: Desk) -> None:
    desk.plan(*CHAIN)
    assert made(desk)["path"] != made(desk)["path"]
