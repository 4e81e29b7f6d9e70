"""What a task changed, on the page: real repositories, unusual names, bounds, and an honest word where nothing is
kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import NotFound
from handrail.outside.world import SystemClock
from handrail.surfaces.web import diffs
from tests.surfaces.cli.journalled import Project
from tests.surfaces.web.visiting import Page


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", now_ms=SystemClock().now_ms())


def diff(project: Project, task: str, **query: str) -> Any:
    return Page(project._call).get(f"/api/tasks/{task}/diff", **query)


def by_path(found: Any) -> dict[str, Any]:
    return {file["path"]: file for file in found["files"]}


def test_each_file_has_its_own_patch_whatever_it_is_called(project: Project) -> None:
    project.write("src/old name.py", "".join(f"line {n}\n" for n in range(30)))
    project.write("gone.txt", "x\n")
    project.commit("old")
    head = project.git("rev-parse", "HEAD")
    task = project.task(project.workflow(), areas=["src/"])
    project.git("mv", "src/old name.py", "src/new name.py")
    project.write("src/new name.py", "".join(f"line {n}\n" for n in range(1, 32)))
    project.remove("gone.txt")
    project.write("src/auth.py", "diff --git a/readme.md b/readme.md\n<script>\n")
    project.write('tab\tquote".txt', "y\n")
    project.write("héllo b/ü.txt", "z\n")
    project.write("latin\udce9.txt", b"caf\xe9\n")
    project.write("data.bin", b"\0\1\2")
    for is_open in (True, False):
        found = diff(project, task)
        files = by_path(found)
        assert (found["is_open"], found["base"]["commit"]) == (is_open, head)
        assert (files["src/new name.py"]["status"], files["src/new name.py"]["old_path"]) == (
            "renamed",
            "src/old name.py",
        )
        assert (files["src/new name.py"]["added"], files["src/new name.py"]["removed"]) == (2, 1)
        assert "rename to src/new name.py" in files["src/new name.py"]["patch"]
        assert "+diff --git a/readme.md" in files["src/auth.py"]["patch"]
        assert "+<script>" in files["src/auth.py"]["patch"]
        assert "+y" in files['tab\tquote".txt']["patch"]
        assert "+z" in files["héllo b/ü.txt"]["patch"]
        assert "+caf\ufffd" in files['"latin\\351.txt"']["patch"]
        assert "-x" in files["gone.txt"]["patch"]
        assert (files["data.bin"]["binary"], files["data.bin"]["patch"]) == (True, None)
        assert (files["src/auth.py"]["in_scope"], files["gone.txt"]["in_scope"]) == (True, False)
        assert "src/old name.py" not in files
        if is_open:
            project.complete(task)


def test_a_large_file_comes_when_it_is_asked_for(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    task = project.task(project.workflow())
    project.write("large.txt", "a line of some length\n" * 5000)
    project.write("small.txt", "x\n")
    project.complete(task)
    files = by_path(diff(project, task))
    assert files["large.txt"]["patch"] is None
    assert files["large.txt"]["added"] == 5000
    assert "+x" in files["small.txt"]["patch"]
    (alone,) = diff(project, task, file="large.txt")["files"]
    assert alone["patch"].count("\n+a line") == 5000
    monkeypatch.setattr(diffs, "ALONE", 2000)
    cut = diff(project, task, file="large.txt")
    assert len(cut["files"][0]["patch"]) <= 2000
    assert "beginning" in cut["note"]
    with pytest.raises(NotFound):
        diff(project, task, file="../../etc/passwd")


def test_many_files_are_bounded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "FILES", 3)
    task = project.task(project.workflow())
    for number in range(5):
        project.write(f"{number}.txt", "x\n")
    found = diff(project, task)
    assert (len(found["files"]), found["more"], found["added"]) == (3, 2, 5)


def test_what_is_not_kept_is_said_and_the_files_are_still_named(project: Project) -> None:
    task = project.task(project.workflow())
    project.write("new.txt", "x\n")
    project.complete(task)
    shutil.rmtree(project.top / ".handrail" / "snapshots")
    found = diff(project, task)
    assert [(file["path"], file["patch"]) for file in found["files"]] == [("new.txt", None)]
    assert "not kept any more" in found["note"]


def test_a_folder_that_is_gone_and_a_task_without_a_journal_are_notes(project: Project, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    key = project.workflow()
    task = project.task(key, directory=str(tmp_path / "tree"))
    shutil.rmtree(tmp_path / "tree")
    found = diff(project, task)
    assert (found["files"], found["is_open"]) == ([], True)
    assert "is not there any more" in found["note"]
    plain = project.tool("workflow_add_tasks", id=key, tasks=[{"name": "p", "description": "", "sequence": 2}])
    task = plain["tasks"][0]["id"]
    assert diff(project, task)["note"] == diffs.NOT_BEGUN
    project.tool("task_update_status", id=task, status="in_progress")
    assert diff(project, task)["note"] == diffs.NEVER_LOOKED


def test_outside_git_there_are_names_and_no_patches(tmp_path: Path) -> None:
    project = Project(tmp_path / "plain", is_git=False)
    task = project.task(project.workflow())
    project.write("new.txt", "x\n")
    project.complete(task)
    found = diff(project, task)
    assert [file["path"] for file in found["files"]] == ["new.txt"]
    assert "is no git repository" in found["note"]


def test_a_task_that_changed_nothing_says_so(project: Project) -> None:
    task = project.task(project.workflow())
    assert diff(project, task)["note"] == "It has changed nothing so far."
