"""`handrail next` and `handrail why` about tasks that are not safe together: which to start, and why not the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.surfaces.cli.together.test_agents import call, run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def plan(project: Path, *tasks: tuple[str, list[str]], at_once: int = 3) -> list[str]:
    """A workflow with these tasks and the files they touch; their ids."""
    asked = ("name=W", "source_type=prompt", "source_content=c", f"max_parallel_tasks={at_once}")
    workflow = call(project, "workflow_create", *asked)["id"]
    whole = [
        {"name": name, "description": "", "sequence": number, "files_likely_affected": files}
        for number, (name, files) in enumerate(tasks, 1)
    ]
    laid = msgspec.json.encode({"summary": "s", "approach": "a", "tasks": whole}).decode()
    call(project, "workflow_set_plan", f"id={workflow}", f"plan={laid}")
    return [task["id"] for task in call(project, "workflow_next_tasks", "limit=50")["tasks"]]


def keep(project: Path, *paths: str) -> None:
    agent = call(project, "agent_register", "name=Anna", "runtime=codex")["id"]
    asked = msgspec.json.encode(list(paths)).decode()
    assert call(project, "reserve_paths", f"agent_id={agent}", f"paths={asked}")["granted"]


def test_the_ones_to_start_are_named_by_their_places(project: Path) -> None:
    plan(project, ("wrap", ["src/fetch.py"]), ("log", ["src/"]), ("count", ["docs/"]))
    lines = run(project, "next").stdout
    assert "3 may run at once, 0 are under way: start 1 and 3 together" in lines
    words = " ".join(lines.split())
    assert 'do not start "log" together with "wrap": both touch src/fetch.py' in words
    assert "both touch src/fetch.py (src/ and src/fetch.py)" in words


def test_the_first_ones_are_the_first_ones(project: Path) -> None:
    plan(project, ("wrap", ["src/fetch.py"]), ("log", ["docs/"]), ("count", ["docs/"]), at_once=2)
    assert "start the first 2\n" in run(project, "next").stdout


def test_what_says_nothing_is_said_to_say_nothing(project: Path) -> None:
    plan(project, ("wrap", ["src/fetch.py"]), ("log", []))
    assert run(project, "next").stdout.count("does not say what it touches") == 1


def test_a_reservation_is_told_with_how_long_it_lasts(project: Path) -> None:
    plan(project, ("wrap", ["src/fetch.py"]), at_once=1)
    keep(project, "src/")
    lines = " ".join(run(project, "next").stdout.split())
    assert "1 may run at once, 0 are under way: none is safe to start now" in lines
    assert '"wrap" has to wait: Anna has reserved src/fetch.py for another ' in lines
    assert " minutes (src/fetch.py and src/)" in lines


def test_a_task_under_way_is_told_too(project: Path) -> None:
    first, *_ = plan(project, ("wrap", ["src/fetch.py"]), ("log", ["src/"]), ("count", ["docs/"]))
    call(project, "task_update_status", f"id={first}", "status=in_progress")
    lines = " ".join(run(project, "next").stdout.split())
    assert "3 may run at once, 1 is under way: start 2 " in lines
    assert '"log" has to wait: "wrap" is under way, and both touch src/fetch.py' in lines


def test_what_is_not_shown_is_in_no_batch(project: Path) -> None:
    ids = plan(project, ("wrap", ["a.py"]), ("log", ["b.py"]), ("count", ["b.py"]))
    shown: dict[str, Any] = msgspec.json.decode(run(project, "next", "--limit", "2", "--json").stdout)["workflows"][0]
    assert (shown["batch"], shown.get("conflicts", [])) == (ids[:2], [])


def test_why_names_what_is_in_the_way_of_a_ready_task(project: Path) -> None:
    first, second, third = plan(project, ("wrap", ["src/fetch.py"]), ("log", ["src/"]), ("count", ["docs/"]))
    call(project, "task_update_status", f"id={first}", "status=in_progress")
    keep(project, "src/", "README.md")
    words = " ".join(run(project, "why", second).stdout.split())
    assert '"log" is ready, but has to wait: "wrap" is under way, and both touch src/fetch.py' in words
    assert "; and 1 more conflict." in words
    assert "has to wait" not in run(project, "why", third).stdout
