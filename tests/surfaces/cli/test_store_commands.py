"""`handrail db`, `log` and `undo` as a person uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import click.testing
import msgspec
import pytest

from handrail.store.migrations import LATEST
from handrail.surfaces.cli.main import cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(project.parent / "home"), "LOGNAME": "ann"})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def run_json(project: Path, *argv: str) -> Any:
    done = run(project, *argv, "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def create(project: Path, name: str = "Import") -> str:
    made = run_json(
        project,
        "call",
        "workflow_create",
        f"name={name}",
        "source_type=prompt",
        "source_content=x",
        "--toolsets",
        "workflow",
    )
    return str(made["id"])


def workflows(project: Path) -> list[str]:
    listed = run_json(project, "call", "workflow_list", "--toolsets", "workflow")["workflows"]
    return [workflow["name"] for workflow in listed]


def test_the_path_is_told_without_making_anything(project: Path) -> None:
    assert run_json(project, "db", "path")["path"] == str(project / ".handrail" / "handrail.db")
    assert run_json(project, "db", "path", "--db", "postgresql://h/d")["path"] == "postgresql://h/d"
    assert not (project / ".handrail").exists()


def test_guides_need_no_store(project: Path) -> None:
    run_json(project, "guide", "list")
    run_json(project, "call", "workflow_list")
    assert not (project / ".handrail").exists()


def test_who_only_looks_makes_no_store(project: Path) -> None:
    assert run_json(project, "log") == []
    run_json(project, "watch")
    assert not (project / ".handrail").exists()


def test_the_first_write_makes_the_store_and_tells_git_to_ignore_it(project: Path) -> None:
    create(project)
    ignored = (project / ".handrail" / ".gitignore").read_text(encoding="utf-8")
    assert "handrail.db*" in ignored
    assert "guides" not in ignored


def test_the_log_says_who_did_what_through_which_channel(project: Path) -> None:
    workflow = create(project)
    (event,) = run_json(project, "log")
    assert (event["actor"], event["channel"], event["kind"]) == ("ann", "call", "workflow.created")
    assert (event["stream"], event["seq"], event["position"]) == (workflow, 1, 1)
    shown = run(project, "log").stdout
    assert "ann" in shown
    assert "workflow.created" in shown
    assert run_json(project, "log", "--actor", "nobody") == []
    assert len(run_json(project, "log", "--stream", workflow)) == 1


def test_undo_takes_back_your_last_write_once(project: Path) -> None:
    create(project, "keep")
    create(project, "mistake")
    assert run(project, "undo").exit_code == 0
    assert workflows(project) == ["keep"]
    again = run(project, "undo")
    assert again.exit_code == 1
    assert "NOTHING_TO_UNDO" in again.stderr
    assert [event["kind"] for event in run_json(project, "log")][-1] == "ledger.undo"
    assert run(project, "db", "verify").exit_code == 0


def test_a_sound_store_is_called_sound(project: Path) -> None:
    create(project)
    assert run(project, "db", "check").exit_code == 0
    assert run_json(project, "db", "verify") == {"problems": []}
    assert run_json(project, "db", "upgrade")["schema"] == LATEST


def test_verify_finds_a_row_that_no_event_explains(project: Path) -> None:
    create(project, "honest")
    connection = apsw.Connection(str(project / ".handrail" / "handrail.db"))
    connection.execute("UPDATE workflow SET name = 'forged'")
    connection.close()
    done = run(project, "db", "verify")
    assert done.exit_code == 1
    assert "disagree about name" in done.stdout


def test_a_backup_brings_back_what_was_there(project: Path, tmp_path: Path) -> None:
    create(project, "before")
    copy = tmp_path / "copy.db"
    assert run(project, "db", "backup", str(copy)).exit_code == 0
    assert run(project, "db", "backup", str(copy)).exit_code == 2
    create(project, "after")
    assert run(project, "db", "restore", str(copy), "--yes").exit_code == 0
    assert workflows(project) == ["before"]
    kept = project / ".handrail" / "handrail.db.before-restore"
    assert run(project, "db", "restore", str(kept), "--yes").exit_code in (0, 2)


def test_restore_asks_first(project: Path, tmp_path: Path) -> None:
    create(project, "now")
    copy = tmp_path / "copy.db"
    run(project, "db", "backup", str(copy))
    assert run(project, "db", "restore", str(copy)).exit_code == 1


def test_a_damaged_backup_is_refused_and_nothing_changes(project: Path, tmp_path: Path) -> None:
    create(project, "now")
    broken = tmp_path / "broken.db"
    run(project, "db", "backup", str(broken))
    raw = bytearray(broken.read_bytes())
    raw[:16] = b"not a database!!"
    broken.write_bytes(raw)
    done = run(project, "db", "restore", str(broken), "--yes")
    assert done.exit_code == 2
    assert "not a sound backup" in done.stderr
    assert workflows(project) == ["now"]


def test_an_unknown_address_is_refused(project: Path) -> None:
    done = run(project, "db", "check", "--db", "mysql://h/d")
    assert done.exit_code == 1
    assert "STORE_UNUSABLE" in done.stderr
