"""Which snapshots are kept, and that giving up the others costs patches and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.journal.retention import Keeping, Worth, prune, worth_keeping
from handrail.kernel.clock import DAY_MS
from handrail.kernel.ledger import Actor
from handrail.outside.world import SystemClock
from tests.surfaces.cli.journalled import Project

DAY = DAY_MS // 60_000
"""In the minutes that the project's clock is told."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", now_ms=SystemClock().now_ms())


def finished(project: Project, workflow: str, name: str) -> str:
    task = project.task(workflow, name)
    project.write(f"{name}.txt", f"{name}\n")
    project.complete(task)
    return task


def worth(project: Project, days: int = 30, tasks: int = 200) -> Worth:
    return project.ledger.run(Actor("ann", "cli"), lambda unit: worth_keeping(unit, Keeping(days, tasks)))


def has_patch(project: Project, task: str) -> bool:
    return project.run("diff", task).exit_code == 0


def kept(project: Project) -> int:
    return len(list((project.top / ".handrail" / "snapshots").glob("*/kept/*.json")))


def test_the_newest_finished_tasks_and_every_open_one_are_kept(project: Project) -> None:
    workflow = project.workflow()
    for name in ("one", "two", "three"):
        finished(project, workflow, name)
    project.task(workflow, "open")
    found = worth(project, tasks=2)
    assert (found.open_tasks, found.finished_tasks, len(found.kept), len(found.beyond)) == (1, 2, 5, 2)
    assert not found.kept & {snapshot.id for snapshot in found.beyond}


def test_what_is_too_old_is_not_kept_however_few_there_are(project: Project) -> None:
    workflow = project.workflow()
    finished(project, workflow, "old")
    project.task(workflow, "open since long ago")
    project.tool("workflow_list", after=31 * DAY)
    finished(project, workflow, "young")
    found = worth(project)
    assert (found.open_tasks, found.finished_tasks, len(found.beyond)) == (1, 1, 0)
    assert found.oldest_ms == project.clock.now_ms() - 30 * DAY_MS


def test_a_task_that_took_longer_than_that_keeps_its_beginning(project: Project) -> None:
    task = project.task(project.workflow(), "long")
    project.clock.advance(40 * DAY_MS)
    project.complete(task)
    assert len(worth(project).kept) == 2


def test_a_task_that_was_ended_otherwise_is_not_open(project: Project) -> None:
    workflow = project.workflow()
    project.tool("task_update_status", id=project.task(workflow, "one"), status="completed", outcome="done")
    project.task(workflow, "two")
    assert worth(project).open_tasks == 1
    project.shown("done", workflow, "--abandon")
    assert worth(project).open_tasks == 0


def test_nothing_is_pruned_that_is_worth_keeping(project: Project) -> None:
    workflow = project.workflow()
    first, second = finished(project, workflow, "one"), finished(project, workflow, "two")
    prune(project.tracker(), worth(project))
    assert kept(project) == 4
    assert has_patch(project, first)
    assert has_patch(project, second)


def test_the_command_gives_up_what_is_beyond_and_says_what_it_freed(project: Project) -> None:
    workflow = project.workflow()
    first = finished(project, workflow, "one")
    finished(project, workflow, "two")
    done = project.json("db", "prune", "--count", "1")
    assert done["kept"] == {"open_tasks": 0, "finished_tasks": 1}
    assert kept(project) == 2
    done = project.json("db", "prune", "--count", "0")
    assert done["freed_bytes"] > 0
    assert (done["left_bytes"], kept(project)) == (0, 0)
    assert "not kept any more" in project.refused("diff", first)
    assert "one.txt" in project.shown("diff", first, "--stat")
    assert "one.txt" in project.shown("journal")


def test_settings_say_how_much_is_kept(project: Project) -> None:
    finished(project, project.workflow(), "one")
    project.write(".handrail/config.toml", "snapshot_count = 0\n")
    assert project.json("db", "prune")["left_bytes"] > 0  # a file that came along takes no evidence away
    project.json("trust", "--yes")
    assert project.json("db", "prune")["left_bytes"] == 0


def test_a_project_without_snapshots_has_nothing_to_prune(project: Project) -> None:
    project.workflow()
    assert project.shown("db", "prune") == "freed 0 bytes; kept 0 bytes, of 0 open and 0 finished tasks\n"


def test_check_says_what_snapshots_take(project: Project) -> None:
    project.workflow()
    assert project.json("db", "check")["snapshot_bytes"] == 0
    assert "snapshots of the working copies: 0 bytes" in project.shown("db", "check")
    finished(project, "wf_1", "one")
    used = project.json("db", "check")["snapshot_bytes"]
    assert used > 1000
    assert f"snapshots of the working copies: {used / 1000:.1f} kB" in project.shown("db", "check")
