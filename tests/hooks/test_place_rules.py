"""What hooks know by themselves, held against the rings they cannot load: places, and where a task stands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.recovery.material import RecoveryMaterial, gather
from handrail.domain.recovery.options import Include
from handrail.domain.recovery.pieces import next_sentence
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.workflow import CLOSED
from handrail.hooks import open_tasks
from handrail.hooks.context_text import next_move
from handrail.hooks.event_input import parse
from handrail.hooks.place import Options, find_place, find_project
from handrail.hooks.place import Place as HookPlace
from handrail.hooks.provenance import own_key
from handrail.hooks.task_position import SOLVING, OpenTaskFacts
from handrail.kernel.ledger import Actor
from handrail.outside import project
from handrail.outside.machine_key import machine_key
from handrail.store import marks, sqlite
from handrail.toolsets.here import UNDER_WAY
from handrail.wiring import WorkPlace, assemble, settings_at
from tests.hooks.scene import PLAN, Scene


def domain_view(scene: Scene, task_id: str) -> RecoveryMaterial:
    place = WorkPlace(project=scene.repo, home=scene.home, environ={})
    ledger = assemble(place, settings_at(place, {})).ledger

    def look(unit: Any) -> RecoveryMaterial:
        task = unit.get(Task, task_id)
        assert task is not None
        return gather(unit, task, Include())

    return ledger.run(Actor("t", "test"), look)


def place_in(scene: Scene) -> HookPlace:
    """Where a hook in this scene finds itself."""
    key = own_key(str(scene.home))
    assert key is not None
    repo = str(scene.repo)
    return HookPlace(folder=repo, project=repo, store=str(scene.store), shared=False, agent="", key=key)


def check_agreement(scene: Scene, task_id: str) -> None:
    """The hook's view of a task is the domain's."""
    material = domain_view(scene, task_id)
    connection = open_tasks.open_store(place_in(scene))
    assert connection is not None
    ours = OpenTaskFacts(connection, task_id, material.workflow.id)
    status = material.task.status
    assert next_move(ours, status, ours.open_parts(), 0) == next_sentence(material, {})
    assert {note.id for note in ours.decisions} == {decision.checkpoint.id for decision in material.decisions}
    own = [issue.error.id for issue in material.issues if issue.task.id == task_id and issue.error is not None]
    assert [note.id for note in ours.errors] == own
    assert {name for name, _ in ours.needs()} == {need.name for need in material.needs if need.outcome is not None}
    connection.close()


def test_where_a_task_stands_is_what_the_domain_says(scene: Scene) -> None:
    """One task through everything that changes what comes next; the two are compared after each."""
    task = scene.planned({"name": "wrap"}, {"name": "test", "sequence": 2, "depends_on": ["wrap"]})
    workflow = scene.call("task_get", id=task)["workflow_id"]

    def note(kind: str, summary: str, **detail: Any) -> str:
        made = scene.call("checkpoint_add", task_id=task, type=kind, summary=summary, detail=detail)
        check_agreement(scene, task)
        return str(made["id"])

    scene.call("task_update_status", id=task, status="planning")
    check_agreement(scene, task)
    scene.call("task_set_plan", id=task, plan=PLAN)
    check_agreement(scene, task)
    scene.call("task_update_status", id=task, status="in_progress")
    check_agreement(scene, task)
    first = note("decision", "Retry three times")
    note("decision", "Retry five times", supersedes=first)
    note("progress", "Written", step=1)
    note("error", "It hangs")
    note("error", "It hangs again", resolution="waited longer")
    note("error", "It hangs again, and nobody knows why", resolution="-", requires_human_review=True)
    note("recovery", "It hangs no more", step=[2])
    note("progress", "Told", step=[3, 99, "x"])
    scene.call("task_update_status", id=task, status="paused")
    check_agreement(scene, task)
    scene.call("task_update_status", id=task, status="in_progress")
    scene.call("start_task", workflow_id=workflow, name="a part", goal="-", parent_task_id=task)
    check_agreement(scene, task)


def test_after_many_notes_earlier_marks_count_as_made(scene: Scene) -> None:
    task = scene.planned({"name": "wrap"})
    scene.call("task_set_plan", id=task, plan={"approach": "-", "steps": [f"step {number}" for number in range(1, 70)]})
    scene.call("task_update_status", id=task, status="in_progress")
    for number in range(1, 60):
        scene.call("checkpoint_add", task_id=task, type="progress", summary=f"{number}", detail={"step": number})
    check_agreement(scene, task)


def test_the_words_are_the_domains() -> None:
    assert open_tasks.UNDER_WAY == UNDER_WAY
    assert set(UNDER_WAY) == set(RUNNING)
    assert set(CLOSED) == {"completed", "abandoned"}
    assert open_tasks.APPLICATION_ID == sqlite.APPLICATION_ID
    assert open_tasks.MOVED == marks.MOVED
    assert set(SOLVING) == {"recovery", "complete", "replan"}


def test_a_project_is_found_as_the_server_finds_it(scene: Scene) -> None:
    tree, inner = scene.home / "tree", scene.repo / "inner"
    scene.git("worktree", "add", "-q", str(tree))
    inner.mkdir()
    (tree / "deep").mkdir()
    odd = scene.home / "odd"
    odd.mkdir()
    (odd / ".git").write_text("gitdir: nowhere\n", encoding="utf-8")
    for folder in (scene.repo, inner, tree, tree / "deep", odd, scene.home):
        assert find_project(os.path.realpath(folder)) == str(project.find_project(folder))


@pytest.mark.parametrize(
    ("written", "environ"),
    [
        ("", {}),
        ("approvals = 'human'\n", {}),
        ("db = 'other.db'\n", {}),
        ('"\\u0064b" = "other.db"\n', {}),
        ("# db = 'other.db'\n", {}),
        ("global_store = true\n", {}),
        ("global_store = true\n", {"HANDRAIL_DB": "other.db"}),
        ("global_store = true\n", {"HANDRAIL_GLOBAL_STORE": "false"}),
        ("db = 'other.db'\n", {"HANDRAIL_GLOBAL_STORE": "1"}),
        ("db = 'other.db'\n", {"HANDRAIL_DB": ""}),
        ("", {"HANDRAIL_DB": "other.db"}),
    ],
)
def test_a_store_is_meant_as_the_settings_mean_it(
    tmp_path: Path, written: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from handrail.outside.trusted_settings import agree
    from handrail.store.open_engine import database_path
    from handrail.wiring import store_address

    home, top = tmp_path / "home", (tmp_path / "top").resolve()
    for folder in (home / ".handrail", top / ".handrail"):
        folder.mkdir(parents=True)
        (folder / "handrail.db").touch(mode=0o600)
    (top / "other.db").touch(mode=0o600)
    machine_key(home)
    (top / ".handrail" / "config.toml").write_text(written, encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    place = WorkPlace(project=top, home=home, environ=environ)
    if written.startswith("global_store") and not environ:
        assert find_place(str(top), Options([]), os.environ) is None
        agree(top, home, {"global_store": True}, now_ms=0)
    settings = settings_at(place, {})
    meant = database_path(store_address(place, settings), top)
    found = find_place(str(top), Options([]), os.environ)
    assert found is not None
    assert found.store == str(meant)
    assert found.shared == assemble(place, settings).call.here.shared


def test_the_members_of_an_event() -> None:
    given = parse('{"cwd": "/x", "session_id": "s", "stop_hook_active": true, "tool_input": {"notebook_path": "n"}}')
    assert (given.cwd, given.session, given.again, given.files) == ("/x", "s", True, ["n"])
    assert not parse('{"stop_hook_active": false}').again
    assert not parse("{}").again
