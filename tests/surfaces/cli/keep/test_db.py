"""`handrail db`, `log` and `undo` as a person uses them."""

from __future__ import annotations

import subprocess
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
    assert "/handrail.db-wal" in ignored.splitlines()
    assert "guides" not in ignored


def test_the_log_says_who_did_what_through_which_channel(project: Path) -> None:
    workflow = create(project)
    (event,) = run_json(project, "log")
    assert (event["actor"], event["channel"], event["kind"]) == ("ann", "call", "workflow.created")
    assert (event["stream"], event["seq"], event["position"]) == (workflow, 1, 1)
    shown = run(project, "log").stdout
    assert "ann" in shown
    assert "created" in shown
    assert len(run_json(project, "log", "--actor", "ann")) == 1
    assert len(run_json(project, "log", "--stream", workflow)) == 1


def test_undo_takes_back_your_writes_one_after_the_other(project: Path) -> None:
    create(project, "keep")
    create(project, "mistake")
    assert run(project, "undo").exit_code == 0
    assert workflows(project) == ["keep"]
    assert run(project, "undo").exit_code == 0
    assert workflows(project) == []
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
    create(project, "later")
    assert run_json(project, "db", "restore", str(kept), "--yes")["kept"] == f"{kept}-2"
    assert sorted(workflows(project)) == ["after", "before"]
    assert kept.exists()


def test_nothing_is_kept_of_a_store_that_was_empty(project: Path, tmp_path: Path) -> None:
    """A copy brought to a new folder: there is nothing to lose, so nothing to ask and nothing to keep."""
    create(project, "before")
    copy, elsewhere = tmp_path / "copy.db", tmp_path / "elsewhere"
    run(project, "db", "backup", str(copy))
    elsewhere.mkdir()
    assert run_json(elsewhere, "db", "restore", str(copy)) == {"restored": str(copy), "kept": None}
    assert workflows(elsewhere) == ["before"]
    assert not list((elsewhere / ".handrail").glob("*before-restore*"))


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


@pytest.mark.parametrize(
    "argv",
    [("check",), ("vacuum",), ("verify",), ("upgrade",), ("backup", "copy.db"), ("prune",)],
    ids=lambda argv: argv[0],
)
@pytest.mark.parametrize("named", [(), ("--db", "nothere.db")], ids=["own", "named"])
def test_looking_after_a_store_that_is_not_there_makes_none(
    project: Path, argv: tuple[str, ...], named: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    done = run(project, "db", *argv, *named)
    assert done.exit_code == 1
    assert f"there is no store at {project / (named[1] if named else '.handrail/handrail.db')}" in done.stderr
    assert not list(project.iterdir())


@pytest.mark.parametrize(
    "argv", [("status",), ("log",), ("search", "x"), ("next",), ("decisions",)], ids=lambda argv: argv[0]
)
def test_a_file_that_is_named_and_not_there_is_told_to_who_looks(project: Path, argv: tuple[str, ...]) -> None:
    done = run(project, *argv, "--db", "mistyped.db")
    assert done.exit_code == 1
    assert f"there is no store at {project / 'mistyped.db'} yet" in done.stderr
    (project / ".handrail").mkdir()
    (project / ".handrail" / "config.toml").write_text('db = "later.db"\n', encoding="utf-8")
    assert "there is no store" not in run(project, *argv).stderr, "the project's own word: nobody has begun yet"
    assert not (project / "mistyped.db").exists()
    assert not (project / "later.db").exists()


def test_a_refused_backup_is_called_by_its_own_name(project: Path, tmp_path: Path) -> None:
    create(project)
    other = tmp_path / "letter.txt"
    other.write_text("dear all, " * 100, encoding="utf-8")
    done = run(project, "db", "restore", str(other), "--yes")
    assert f"{other} is no database" in done.stderr
    assert "copy.db" not in done.stderr


def test_a_copy_that_git_would_take_along_is_said(project: Path, tmp_path: Path) -> None:
    create(project)
    assert "git does" not in run(project, "db", "backup", str(project / "first.db")).stdout, (
        "git does not look after it"
    )
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    assert "git does not ignore copy.db" in run(project, "db", "backup", str(project / "copy.db")).stdout
    (project / ".gitignore").write_text("*.db\n", encoding="utf-8")
    assert "git does" not in run(project, "db", "backup", str(project / "ignored.db")).stdout
    assert "git does" not in run(project, "db", "backup", str(tmp_path / "outside.db")).stdout
