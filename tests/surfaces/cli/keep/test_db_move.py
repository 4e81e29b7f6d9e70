"""`handrail db move`, `release`, `vacuum` and `upgrade` as a person uses them: what is asked, said and written, and
that no password is ever printed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import click
import click.testing
import pytest

from handrail.outside.config_file import with_db, without_db
from handrail.store.migrations import LATEST
from handrail.store.open_engine import holds_password, shown_address
from handrail.surfaces.cli.main import cli
from tests.store.ground import older
from tests.store.server import running, schema_of_its_own
from tests.surfaces.cli.keep.test_db import create, run, run_json, workflows

SECRET = "s3cr3t"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"cli_move_{abs(hash(request.node.nodeid))}"
    with running() as server, schema_of_its_own(server, name) as address:
        yield address


def answered(project: Path, answers: str, *argv: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(project.parent / "home"), "LOGNAME": "ann"})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail", input=answers)


def elsewhere(project: Path, *argv: str) -> None:
    """A process of its own: its connections go with it."""
    command = [sys.executable, "-m", "handrail", *argv, "--root", str(project)]
    home = {**os.environ, "HOME": str(project.parent / "home")}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, env=home)


def test_there_and_back_with_the_config_written(project: Path, schema: str, tmp_path: Path) -> None:
    create(project, "before")
    config = project / ".handrail" / "config.toml"
    config.write_text("# ours\ndurable = false\n", encoding="utf-8")
    plain = schema.replace("postgres:@", "postgres@")  # the test server's address has an empty password
    told = run_json(project, "db", "move", plain, "--yes")
    assert (told["events"], told["moved_to"], told["config"]) == (1, plain, str(config))
    assert f'db = "{plain}"' in config.read_text(encoding="utf-8")
    assert "# ours" in config.read_text(encoding="utf-8")
    given = {"name": "on the server", "source_type": "prompt", "source_content": "x"}
    words = [f"{name}={value}" for name, value in given.items()]
    elsewhere(project, "call", "workflow_create", *words, "--toolsets", "workflow")

    back = project / "back.db"
    done = run(project, "db", "move", str(back), "--yes")
    assert done.exit_code == 0, done.output
    assert "2 events" in done.stdout
    assert "verified" in done.stdout
    assert 'db = "back.db"' in config.read_text(encoding="utf-8")
    assert sorted(workflows(project)) == ["before", "on the server"]

    refused = run(project, "db", "check", "--db", plain)
    assert refused.exit_code == 1
    assert f"has moved to {back}" in refused.stderr
    assert run_json(project, "db", "release", "--db", plain, "--yes")["moved_to"] == str(back)
    assert run(project, "db", "check", "--db", plain).exit_code == 0


def test_it_asks_before_it_moves_and_before_it_writes(project: Path, tmp_path: Path) -> None:
    create(project)
    target = tmp_path / "new.db"
    assert answered(project, "n\n", "db", "move", str(target)).exit_code == 1
    assert not target.exists()
    done = answered(project, "y\nn\n", "db", "move", str(target))
    assert done.exit_code == 0, done.output
    assert not (project / ".handrail" / "config.toml").exists()
    assert "write db = " in done.stdout
    assert answered(project, "n\n", "db", "release").exit_code == 1
    assert "has moved to" in run(project, "log").stderr


def test_a_target_that_is_there_is_refused(project: Path, tmp_path: Path) -> None:
    create(project)
    (tmp_path / "other.txt").write_text("mine", encoding="utf-8")
    for target in (tmp_path / "other.txt", project / ".handrail" / "handrail.db", tmp_path / "no" / "folder.db"):
        assert run(project, "db", "move", str(target), "--yes").exit_code == 1
    assert (tmp_path / "other.txt").read_text(encoding="utf-8") == "mine"
    create(project, "the store goes on")
    assert run(project, "db", "move", "mysql://h/d", "--yes").exit_code == 2


def test_without_a_store_there_is_nothing_to_move(project: Path, tmp_path: Path) -> None:
    assert "no store here yet" in run(project, "db", "move", str(tmp_path / "new.db"), "--yes").stderr
    assert not (project / ".handrail").exists()


def test_a_kept_copy_configures_nothing(project: Path, tmp_path: Path) -> None:
    create(project, "one")
    told = run_json(project, "db", "move", str(tmp_path / "copy.db"), "--keep", "--yes")
    assert (told["kept"], told["config"]) == (True, None)
    create(project, "two")
    assert sorted(workflows(project)) == ["one", "two"]


def test_who_named_the_store_is_told_to_name_the_new_one(project: Path, tmp_path: Path) -> None:
    named = str(tmp_path / "named.db")
    run_json(project, "call", "workflow_create", "name=x", "source_type=prompt", "source_content=x", "--db", named)
    done = run(project, "db", "move", str(tmp_path / "new.db"), "--yes", "--db", named)
    assert "--db" in done.stdout
    assert not (project / ".handrail" / "config.toml").exists()


def test_a_password_goes_into_no_file_and_onto_no_screen(
    project: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(project)
    address = schema.replace("postgres:@", f"postgres:{SECRET}@")
    done = run(project, "db", "move", address, "--yes")
    assert done.exit_code == 0, done.output
    assert "HANDRAIL_DB" in done.stdout
    shown = [done.output]
    for argv in (
        ("db", "path", "--db", address),
        ("db", "check", "--db", address),
        ("db", "check", "--db", address, "--json"),
        ("db", "upgrade", "--db", address),
        ("db", "vacuum", "--db", address),
        ("db", "verify", "--db", address),
        ("db", "move", address, "--yes", "--db", address),
        ("db", "release", "--db", address),
        ("db", "check"),
        ("db", "check", "--db", f"postgresql://u:{SECRET}@localhost:1/nowhere"),
        ("db", "check", "--db", f"postgresql://u:{SECRET}@localhost:port/nowhere"),
        ("db", "move", f"postgresql://u:{SECRET}@localhost:1/nowhere", "--yes"),
    ):
        shown.append(run(project, *argv).output)
    monkeypatch.setenv("HANDRAIL_DB", f"postgresql://u:{SECRET}@localhost:1/nowhere")
    shown += [run(project, *argv).output for argv in (("doctor",), ("status",), ("log",), ("db", "path"))]
    assert not [text for text in shown if SECRET in text]
    for file in project.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_a_password_in_the_query_goes_nowhere_either(project: Path, schema: str) -> None:
    create(project)
    address = f"{schema.replace('postgres:@', 'postgres@')}&password={SECRET}@2"
    done = run(project, "db", "move", address, "--yes")
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output
    for odd in (f"postgresql://u:{SECRET}/x@localhost/db", f"postgresql://u:p@{SECRET}:w0rd@localhost"):
        for argv in (("status",), ("db", "check"), ("db", "path"), ("settings",), ("doctor",)):
            assert SECRET not in run(project, *argv, "--db", odd).output, argv
    for file in project.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_a_target_is_looked_at_before_anything_is_asked(project: Path, tmp_path: Path) -> None:
    create(project)
    (tmp_path / "taken.db").write_text("theirs", encoding="utf-8")
    done = answered(project, "", "db", "move", str(tmp_path / "taken.db"))
    assert "is there already" in done.stderr
    assert "Writers wait" not in done.output


def test_one_event_is_one_and_git_is_spoken_of(project: Path) -> None:
    create(project)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    done = run(project, "db", "move", str(project / "new.db"), "--yes")
    assert "1 event, 1 row; verified" in done.stdout
    assert "git does not ignore new.db" in done.stdout


def test_who_goes_back_is_offered_the_config_too(project: Path) -> None:
    create(project)
    config = project / ".handrail" / "config.toml"
    config.write_text("durable = false\n", encoding="utf-8")
    old = ("--db", ".handrail/handrail.db")
    assert run(project, "db", "move", str(project / "new.db"), "--yes").exit_code == 0
    done = answered(project, "y\nn\n", "db", "release", *old)
    assert done.exit_code == 0, done.output
    assert "still says db" in done.stdout
    assert 'db = "new.db"' in config.read_text(encoding="utf-8")

    (project / "new.db").unlink()
    config.write_text("durable = false\n", encoding="utf-8")
    assert run(project, "db", "move", str(project / "new.db"), "--yes").exit_code == 0
    assert run_json(project, "db", "release", "--yes", *old)["config"] == str(config)
    assert config.read_text(encoding="utf-8") == "durable = false\n"
    assert workflows(project) == ["Import"]


def test_who_moved_by_mistake_goes_back_without_naming_anything(project: Path, tmp_path: Path) -> None:
    create(project, "before")
    config = project / ".handrail" / "config.toml"
    config.write_text("durable = false\n", encoding="utf-8")
    assert run(project, "db", "move", str(tmp_path / "new.db"), "--yes").exit_code == 0
    assert run_json(project, "db", "release", "--yes")["config"] == str(config)
    assert config.read_text(encoding="utf-8") == "durable = false\n"
    assert workflows(project) == ["before"]
    again = run(project, "db", "release", "--yes")
    assert (again.exit_code, "has not moved" in again.stderr) == (1, True)


def test_a_config_that_cannot_be_written_does_not_hide_the_move(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(project)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("handrail.outside.config_file.write_whole", full)
    done = run(project, "db", "move", str(project / "new.db"), "--yes")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "1 event, 1 row; verified" in said
    assert "No space left on device; write db = " in said


def test_a_config_that_names_another_store_is_left_alone(project: Path) -> None:
    create(project)
    run(project, "db", "move", str(project / "new.db"), "--yes")
    config = project / ".handrail" / "config.toml"
    config.write_text('db = "third.db"\n', encoding="utf-8")
    done = run_json(project, "db", "release", "--yes", "--db", ".handrail/handrail.db")
    assert done["config"] is None
    assert config.read_text(encoding="utf-8") == 'db = "third.db"\n'


def test_a_store_that_moves_while_restoring_is_asked_about_stays_moved(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(project)
    copy, new = tmp_path / "copy.db", tmp_path / "new.db"
    run(project, "db", "backup", str(copy))

    def meanwhile(*_: object, **__: object) -> bool:
        elsewhere(project, "db", "move", str(new), "--yes")
        return True

    monkeypatch.setattr(click, "confirm", meanwhile)
    done = run(project, "db", "restore", str(copy))
    assert done.exit_code == 1
    assert f"has moved to {new}" in done.stderr
    assert not list((project / ".handrail").glob("*before-restore*"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('db = "x"\n', ""),
        ('# ours\ndb="y" # old\ndurable = true\n[t]\ndb = 1\n', "# ours\ndurable = true\n[t]\ndb = 1\n"),
        ('db = """\ny"""\n', None),
        ("[t]\ndb = 1\n", None),
        ("", None),
    ],
)
def test_one_line_of_the_config_goes(before: str, after: str | None) -> None:
    assert without_db(before) == after


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:pw@h:5/d", "postgresql://u@h:5/d"),
        ("postgres://u:p%40w%2Fx@h/d?sslmode=require", "postgres://u@h/d?sslmode=require"),
        ("postgres://u:p@w/x?y@h/d?sslmode=require", "postgres://…"),
        ("postgresql://h/d?user=u&password=pw&sslpassword=pw", "postgresql://h/d?user=u"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert shown_address(address, Path("/p")) == shown
    assert holds_password(address, Path("/p")) == (address != shown)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'db = "x"\n'),
        ('profile = "a"\n', 'db = "x"\nprofile = "a"\n'),
        ('profile = "a"\ndb="y" # old\n[t]\ndb = 1\n', 'profile = "a"\ndb = "x"\n[t]\ndb = 1\n'),
        ('db = """\ny"""\n', None),
        ("not toml", None),
    ],
)
def test_one_line_of_the_config_changes(before: str, after: str | None) -> None:
    assert with_db(before, "x") == after


def test_vacuum_gives_room_back_and_forgets_old_keys(project: Path) -> None:
    create(project)
    connection = apsw.Connection(str(project / ".handrail" / "handrail.db"))
    connection.execute("INSERT INTO idempotency VALUES ('s', 'old', 'h', x'7b7d', 1)")
    connection.execute("INSERT INTO idempotency VALUES ('s', 'new', 'h', x'7b7d', 1 << 60)")
    connection.execute("CREATE TABLE bulky (x); INSERT INTO bulky VALUES (zeroblob(5000000)); DROP TABLE bulky")
    connection.close()
    done = run_json(project, "db", "vacuum")
    assert done["keys"] == 1
    assert done["before_bytes"] - done["after_bytes"] > 4_000_000
    assert "now" in run(project, "db", "vacuum").stdout
    assert run_json(project, "db", "verify") == {"problems": []}


def test_check_says_what_takes_how_much_room(project: Path) -> None:
    create(project)
    told = run_json(project, "db", "check")
    sizes = {size["what"]: size for size in told["sizes"]}
    assert sizes["events"]["rows"] == sizes["workflow"]["rows"] == 1
    assert sizes["events"]["bytes"] > 0
    assert sum(size["bytes"] for size in told["sizes"]) >= Path(told["location"]).stat().st_size
    assert "events" in run(project, "db", "check").stdout


def test_upgrade_says_what_it_did_and_keeps_the_old_file(project: Path) -> None:
    create(project)
    file = project / ".handrail" / "handrail.db"
    assert run_json(project, "db", "upgrade")["from"] == LATEST
    assert "nothing to do" in run(project, "db", "upgrade").stdout
    older(file, LATEST - 1)
    told = run_json(project, "db", "upgrade")
    assert (told["from"], told["schema"]) == (LATEST - 1, LATEST)
    kept = Path(told["backup"])
    assert kept.name == f"handrail.db.schema-{LATEST - 1}"
    with contextlib.closing(apsw.Connection(str(kept))) as connection:
        assert connection.execute("PRAGMA user_version").get == LATEST - 1
