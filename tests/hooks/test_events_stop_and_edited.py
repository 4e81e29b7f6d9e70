"""The end of a turn and an edit, as hooks: an unfinished task is named once, an edited file is noted, no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import msgspec

from handrail.hooks.memory import notes_path
from tests.hooks.scene import Scene

STOP = {"hook_event_name": "Stop", "stop_hook_active": False}


def stopped(scene: Scene, *options: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    said = scene.said("stop", *options, given={**STOP, **(given or {})})
    found: dict[str, Any] = msgspec.json.decode(said)
    return found


def noted(scene: Scene) -> list[tuple[str, str, str]]:
    notes = apsw.Connection(notes_path(str(scene.store)), flags=apsw.SQLITE_OPEN_READONLY)
    return [tuple(row) for row in notes.execute("SELECT directory, path, agent FROM edited ORDER BY path")]


def test_an_unfinished_task_is_named_once_a_session(scene: Scene) -> None:
    task = scene.task()
    first = stopped(scene)
    assert list(first) == ["systemMessage"]
    assert f'"wrap" ({task})' in first["systemMessage"]
    assert scene.said("stop", given=STOP) == ""
    assert task in stopped(scene, given={"session_id": "another"})["systemMessage"]


def test_a_refusal_is_what_the_client_understands_and_comes_once(scene: Scene) -> None:
    task = scene.task('"quoted" \\ name')
    told = stopped(scene, "--refuse")
    assert told["decision"] == "block"
    assert task in told["reason"]
    assert '"quoted" \\ name' in told["reason"]
    assert scene.said("stop", "--refuse", given=STOP) == ""


def test_who_goes_on_because_of_a_hook_is_left_alone(scene: Scene) -> None:
    scene.task()
    assert scene.said("stop", "--refuse", given={**STOP, "stop_hook_active": True}) == ""


def test_a_helper_of_the_agent_is_never_refused(scene: Scene) -> None:
    scene.task()
    assert list(stopped(scene, "--refuse", given={"hook_event_name": "SubagentStop"})) == ["systemMessage"]
    assert stopped(scene, "--refuse")["decision"] == "block", "the agent itself is still told"


def test_a_paused_task_was_put_away(scene: Scene) -> None:
    task = scene.task()
    scene.call("task_update_status", id=task, status="paused")
    assert scene.said("stop", given=STOP) == ""
    assert "It is paused" in scene.said("start")


def test_what_others_do_elsewhere_is_not_named(scene: Scene) -> None:
    tree = scene.home / "tree"
    scene.git("worktree", "add", "-q", str(tree))
    scene.task("there", directory=tree)
    assert scene.said("stop", given=STOP) == ""


def test_edits_are_noted_for_the_working_copy(scene: Scene) -> None:
    scene.task()
    scene.edit("a.py")
    scene.edit("b.py", HANDRAIL_AGENT_ID="agent_1")
    scene.edit("a.py")
    here = str(scene.repo)
    assert noted(scene) == [(here, "a.py", ""), (here, "b.py", "agent_1")]
    assert "a.py, b.py" in scene.said("start")


def test_what_was_edited_before_a_task_is_not_its_own(scene: Scene) -> None:
    workflow = scene.workflow()
    first = scene.task("first", workflow=workflow)
    scene.edit("a.py")
    scene.call("complete_task", task_id=first, status="success", outcome={"summary": "done"})
    scene.task("second", workflow=workflow)
    scene.edit("b.py")
    told = scene.said("start")
    assert "b.py" in told
    assert "a.py" not in told


def test_only_an_edit_that_was_made_is_noted(scene: Scene) -> None:
    scene.task()
    outside = scene.home / "c.py"
    outside.write_text("", encoding="utf-8")
    for tool, path in (
        ("Read", scene.repo / "a.py"),
        ("Edit", scene.repo / "missing.py"),
        ("Edit", scene.repo / ".handrail" / "handrail.db"),
        ("Edit", scene.repo / ".git" / "config"),
        ("Edit", outside),
    ):
        given = {"tool_name": tool, "tool_input": {"file_path": str(path)}}
        assert scene.said("edited", given=given) == ""
    assert scene.said("edited", given={"tool_name": "Bash", "tool_input": {"command": "ls"}}) == ""
    assert not Path(notes_path(str(scene.store))).exists()


def test_an_edit_through_a_relative_path_and_other_clients_words_is_noted(scene: Scene) -> None:
    scene.task()
    scene.said("edited", given={"file_path": "a.py", "edits": []})
    assert [path for _, path, _ in noted(scene)] == ["a.py"]


def test_git_does_not_see_the_notes_nor_does_the_journal(scene: Scene) -> None:
    task = scene.task()
    scene.edit()
    stopped(scene)
    done = scene.call("complete_task", task_id=task, status="success", outcome={"summary": "done"})
    assert done["files_changed"] == {"added": [], "modified": ["a.py"], "deleted": []}
