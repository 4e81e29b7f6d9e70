"""`handrail diff` in real repositories: exactly what one task changed, byte for byte, or an honest word why not."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from handrail.outside.tracking.large_files import Limits
from handrail.outside.world import SystemClock
from handrail.surfaces.cli.see.diff import Counted, terminal_lines
from tests.surfaces.cli.journalled import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", now_ms=SystemClock().now_ms())


def worked(project: Project) -> str:
    """A task that commits one file, leaves others, goes on with what somebody had left, and deletes one."""
    project.write("src/old.py", "".join(f"line {n}\n" for n in range(20)))
    project.commit("old")
    project.write("dirty.txt", "left alone\n")
    task = project.task(project.workflow())
    project.write("src/auth.py", "def check():\n    return True\n")
    project.commit("auth")
    project.write("dirty.txt", "left alone\nand then not\n")
    project.write("latin\udce9.txt", b"caf\xe9\r\n\x1b[31mred\n")
    project.remove("src/old.py")
    return task


def applied(project: Project, patch: bytes, folder: Path) -> dict[str, bytes]:
    """What a copy of the repository at its second commit has after the patch."""
    project.git("worktree", "add", "-q", str(folder), "HEAD~1")
    (folder / "dirty.txt").write_bytes(b"left alone\n")
    project.git("apply", "-", at=folder, given=patch)
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".git"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if ".handrail" not in path.parts}


def test_a_patch_is_what_git_apply_takes_and_nothing_else(project: Project, tmp_path: Path) -> None:
    task = worked(project)
    project.complete(task)
    project.write("later.txt", "of nobody\n")
    done = project.run("diff", task)
    assert (done.exit_code, done.stderr) == (0, "")
    assert applied(project, done.stdout_bytes, tmp_path / "copy") == {
        "readme.md": b"# Project\n",
        "dirty.txt": b"left alone\nand then not\n",
        "latin\udce9.txt": b"caf\xe9\r\n\x1b[31mred\n",
        "src/auth.py": b"def check():\n    return True\n",
    }


def test_of_an_open_task_it_shows_what_it_has_changed_so_far(project: Project) -> None:
    task = worked(project)
    assert [change["path"] for change in project.json("diff", task)["files"]] == [
        "dirty.txt",
        '"latin\\351.txt"',
        "src/auth.py",
        "src/old.py",
    ]
    project.remove("src/auth.py")
    found = project.json("diff", task)
    assert (found["open"], found["status"], found["task_name"]) == (True, "in_progress", "Setup JWT")
    assert "src/auth.py" not in [change["path"] for change in found["files"]]
    kept = list((project.top / ".handrail" / "snapshots").glob("git-*/kept/*.json"))
    assert len(kept) == 1, "a look leaves no snapshot behind"


def test_json_is_the_report_with_totals(project: Project) -> None:
    task = worked(project)
    head = project.git("rev-parse", "HEAD")
    project.complete(task)
    found = project.json("diff", task)
    assert (found["open"], found["after"], found["snapshot_type"]) == (False, head, "git")
    assert found["totals"] == {"files": 4, "lines_added": 5, "lines_removed": 20, "uncounted": 0}
    assert found["verification"]["scope_match"] is True
    assert found["commits"] == [head]


def test_stat_and_names_fit_a_terminal(project: Project) -> None:
    task = worked(project)
    project.write("new\nline\x1b[2J.txt", "x\n")
    project.complete(task)
    assert project.shown("diff", task, "--stat").splitlines() == [
        "M dirty.txt                 +1",
        'A "latin\\351.txt"           +2',
        'A "new\\012line\\033[2J.txt"  +1',
        "A src/auth.py               +2",
        "D src/old.py                −20",
        "5 files, +6 −20",
    ]
    assert project.shown("diff", task, "--name-only").splitlines()[2] == '"new\\012line\\033[2J.txt"'


def test_a_task_is_meant_by_the_beginning_of_its_name(project: Project) -> None:
    worked(project)
    assert project.json("diff", "Setup")["task_id"] == "task_1"


def test_a_task_that_changed_nothing_says_so_and_prints_no_patch(project: Project) -> None:
    task = project.task(project.workflow())
    done = project.run("diff", task)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "It has changed nothing so far.\n")
    project.complete(task)
    assert project.run("diff", task).stderr == "It changed nothing.\n"
    assert project.shown("diff", task, "--stat") == "It changed nothing.\n"


def test_a_renamed_file_is_all_there(project: Project) -> None:
    project.write("old.py", "".join(f"line {n}\n" for n in range(50)))
    project.commit("old")
    task = project.task(project.workflow())
    project.git("mv", "old.py", "new.py")
    project.complete(task)
    done = project.run("diff", task)
    assert (done.exit_code, done.stderr) == (0, "")
    assert project.json("diff", task)["renamed"] == [{"from": "old.py", "to": "new.py", "similarity": 100}]


def test_a_file_too_large_to_keep_is_named(project: Project) -> None:
    task = project.task(project.workflow())
    project.write("large.bin", b"\0" * (Limits().file_bytes + 1))
    project.write("small.txt", "x\n")
    project.complete(task)
    done = project.run("diff", task)
    assert done.exit_code == 0
    assert "# large.bin: changed, content not kept\n" in done.stdout
    assert done.stderr == (
        "1 of 2 changed files are not in this patch, 1 of them are only named: --stat has all of them\n"
    )


# -- where there is none ----------------------------------------------------------------------------------------------


def test_once_its_snapshots_are_given_up_there_is_a_list_and_no_patch(project: Project) -> None:
    task = worked(project)
    project.complete(task)
    shutil.rmtree(project.top / ".handrail" / "snapshots")
    said = project.refused("diff", task)
    assert "NOT_FOUND: what this patch would be made from is not kept any more; 4 files changed" in said
    assert "--stat" in said
    assert "4 files" in project.shown("diff", task, "--stat")


def test_a_task_that_was_never_journalled_has_no_snapshot(project: Project) -> None:
    made = project.tool("workflow_create", name="Plan", source_type="prompt", source_content="x")
    plan = {"summary": "s", "approach": "a", "tasks": [{"name": "one", "description": "", "sequence": 1}]}
    project.tool("workflow_set_plan", id=made["id"], plan=plan)
    assert 'no snapshot was taken when "one" began' in project.refused("diff", "one")


def test_a_workflow_has_no_patch(project: Project) -> None:
    key = project.workflow()
    assert f"{key} is a workflow" in project.refused("diff", key, code=2)
    assert "NOT_FOUND" in project.refused("diff", "nothing")


def test_outside_git_there_are_names_and_no_patch(tmp_path: Path) -> None:
    project = Project(tmp_path / "plain", is_git=False)
    task = project.task(project.workflow())
    project.write("new.txt", "x\n")
    project.complete(task)
    assert "is no git repository" in project.refused("diff", task)
    assert project.shown("diff", task, "--name-only") == "new.txt\n"


def test_a_working_copy_that_is_gone_is_named(project: Project, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    task = project.task(project.workflow(), directory=str(tmp_path / "tree"))
    shutil.rmtree(tmp_path / "tree")
    assert "is not there any more" in project.refused("diff", task)


def test_a_task_that_was_ended_otherwise_is_shown_up_to_now_and_says_so(project: Project) -> None:
    task = worked(project)
    project.tool("task_update_status", id=task, status="completed", outcome="done")
    done = project.run("diff", task)
    assert done.exit_code == 0
    assert "it ended without complete_task" in done.stderr
    assert "src/auth.py" in done.stdout


def test_a_task_in_a_worktree_is_looked_at_there(project: Project, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    task = project.task(project.workflow(), directory=str(tmp_path / "tree"))
    (tmp_path / "tree" / "there.txt").write_bytes(b"x\n")
    project.write("here.txt", "x\n")
    assert [change["path"] for change in project.json("diff", task)["files"]] == ["there.txt"]


def test_another_repositorys_task_is_found_in_a_store_for_many(tmp_path: Path) -> None:
    store = str(tmp_path / "shared.db")
    mine = Project(tmp_path / "mine", db=store)
    task = mine.task(mine.workflow())
    mine.write("new.txt", "x\n")
    mine.complete(task)
    other = Project(tmp_path / "other", db=store)
    assert "+++ b/new.txt" in other.shown("diff", task)


# -- on a terminal ----------------------------------------------------------------------------------------------------


def test_on_a_terminal_lines_are_coloured_and_command_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    patch = [b"diff --git a/x b/x\n@@ -1 +1 @@\n-caf\xe9\n+\x1b[2Jnew\tone\r\n sa", b"me\n"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(terminal_lines(patch)) == [
        "diff --git a/x b/x",
        "@@ -1 +1 @@",
        "-caf\N{REPLACEMENT CHARACTER}",
        "+\N{REPLACEMENT CHARACTER}[2Jnew        one",
        " same",
    ]
    monkeypatch.delenv("NO_COLOR")
    coloured = list(terminal_lines(patch))
    assert coloured[2] == "\x1b[31m-caf\N{REPLACEMENT CHARACTER}\x1b[0m"
    assert coloured[4] == " same"


@pytest.mark.parametrize("size", [1, 2, 5, 11, 1000])
def test_files_are_counted_however_the_patch_is_cut(size: int) -> None:
    patch = (
        b"# big: changed, content not kept\ndiff --git a/x b/x\n+diff --git no\n+# no\n"
        b"diff --git a/y b/z\nsimilarity index 90%\nrename from y\nrename to z\n"
    )
    counted = Counted([patch[start : start + size] for start in range(0, len(patch), size)])
    assert b"".join(counted) == patch
    assert (counted.files, counted.named) == (3, 1)


def test_help_says_what_it_takes(project: Project) -> None:
    shown: Any = project.run("diff", "--help").output
    assert all(option in shown for option in ("--stat", "--name-only", "--json", "--root"))


def test_a_repository_that_appeared_in_the_task_is_in_its_patch(project: Project) -> None:
    task = project.task(project.workflow())
    inner = project.at("vendor")
    inner.top.mkdir()
    inner.git("init", "-q")
    inner.write("code.py", "code\n")
    project.complete(task)
    shown = project.run("diff", task)
    assert shown.exit_code == 0, shown.output
    assert "+++ b/vendor/code.py" in shown.stdout


def test_files_known_by_name_alone_are_refused_for_that_reason(project: Project) -> None:
    task = project.task(project.workflow())
    project.write("huge.bin", b"\1" * 3_000_000)
    project.complete(task)
    shown = project.run("diff", task)
    assert shown.exit_code == 1
    assert "no content was kept" in shown.stderr
