"""`handrail search` as a person uses it, on both kinds of store."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.kernel.errors import InvalidParams
from handrail.store.store_move import found_at
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.see.search import since_ms
from tests.store.server import running, schema_of_its_own

TOOLSETS = "workflow,task,checkpoint,agent,message"
_schemas = itertools.count(1)
left_open = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""A command leaves its connections to the end of its process, and these run in ours."""


class Project:
    """A folder with a store, and commands run in it."""

    def __init__(self, folder: Path, db: tuple[str, ...] = ()) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.home = folder.parent / "home"
        self._db = db

    def run(self, *argv: str, color: bool = False, **environment: str) -> click.testing.Result:
        runner = click.testing.CliRunner(env={"HOME": str(self.home), "LOGNAME": "ann", **environment})
        end = argv.index("--") if "--" in argv else len(argv)
        every = [*argv[:end], *self._db, "--root", str(self.folder), *argv[end:]]
        return runner.invoke(cli, every, prog_name="handrail", color=color)

    def json(self, *argv: str) -> Any:
        done = self.run(argv[0], "--json", *argv[1:])
        assert done.exit_code == 0, done.output
        return msgspec.json.decode(done.stdout)

    def call(self, tool: str, **arguments: Any) -> Any:
        given = msgspec.json.encode(arguments).decode()
        return self.json("call", tool, given, "--toolsets", TOOLSETS)

    def search(self, *argv: str) -> list[tuple[str, str]]:
        return [(one["kind"], one["title"]) for one in self.json("search", *argv)["found"]]


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    with contextlib.ExitStack() as stack:
        db: tuple[str, ...] = ()
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            db = ("--db", stack.enter_context(schema_of_its_own(server, f"search_{os.getpid()}_{next(_schemas)}")))
        yield Project(tmp_path / "project", db)
        gc.collect()  # connections that were left open go here, where that is no fault


@pytest.fixture
def plain(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def planned(project: Project) -> tuple[str, str]:
    made = project.call(
        "workflow_create", name="Import", source_type="prompt", source_content="imports survive a lost connection"
    )
    tasks = [{"name": "Choose a queue", "description": "retryLimit is three, see src/queue/limits.py", "sequence": 1}]
    (task,) = project.call("workflow_add_tasks", id=made["id"], tasks=tasks)["tasks"]
    project.call("task_update_status", id=task["id"], status="in_progress")
    notes = {"decision": "A queue of our own", "error": "The queue lost a message", "progress": "数据库迁移"}
    for kind, summary in notes.items():
        project.call("checkpoint_add", task_id=task["id"], type=kind, summary=summary, detail={"why": f"about {kind}"})
    return made["id"], task["id"]


@left_open
def test_everything_that_was_written_is_found(project: Project) -> None:
    workflow, task = planned(project)
    assert set(project.search("queue")) == {
        ("task", "Choose a queue"),
        ("decision", "A queue of our own"),
        ("finding", "The queue lost a message"),
    }
    assert project.search("retrylimit") == [("task", "Choose a queue")]
    assert project.search("limits.py") == [("task", "Choose a queue")]
    assert project.search("数据库") == [("checkpoint", "数据库迁移")]
    assert project.search("queue", "-message", "--kind", "finding") == []
    assert project.search("queue", "--workflow", workflow[:12], "--since", "1h", "--limit", "1") != []
    (hit,) = project.json("search", "about decision", "--kind", "decision")["found"]
    assert hit["show"] == hit["task_id"] == task
    assert (hit["workflow_name"], hit["task_name"]) == ("Import", "Choose a queue")
    assert hit["snippet"] == "about decision"
    assert hit["id"].startswith("cp_")


@left_open
def test_what_comes_later_is_found_and_what_is_undone_is_not(project: Project) -> None:
    planned(project)
    assert project.search("zebra") == []
    project.call("workflow_create", name="Zebra", source_type="prompt", source_content="x")
    assert project.search("zebra") == [("workflow", "Zebra")]
    assert project.run("undo").exit_code == 0
    assert project.search("zebra") == []


@left_open
def test_messages_to_people_are_found_and_those_between_agents_are_not(project: Project) -> None:
    ada = project.call("agent_register", name="ada", runtime="codex")["id"]
    ben = project.call("agent_register", name="ben", runtime="codex")["id"]
    for recipient in ("human", ben):
        project.call(
            "message_send", sender_id=ada, recipient_id=recipient, message_type="query", body=f"zebra for {recipient}"
        )
    (hit,) = project.json("search", "zebra")["found"]
    assert (hit["kind"], hit["snippet"]) == ("message", "zebra for human")
    assert project.run("message", "read", hit["show"]).exit_code == 0


def test_people_see_where_it_stands_and_the_found_words_bold(plain: Project) -> None:
    _, task = planned(plain)
    lines = plain.run("search", "message", color=True).stdout.splitlines()
    assert lines[0].startswith("finding     The queue lost a \x1b[1mmessage\x1b[0m")
    assert "Import › Choose a queue" in lines[-1]
    assert task in lines[-1]
    without = plain.run("search", "message", color=True, NO_COLOR="1").stdout
    assert "\x1b" not in without
    assert without.splitlines()[0].endswith("ago")


def test_what_agents_wrote_moves_no_cursor(plain: Project) -> None:
    plain.call("workflow_create", name="evil\x1b[2Jname", source_type="prompt", source_content="zebra \x1b[31m\x07 red")
    shown = plain.run("search", "zebra", color=True).stdout
    assert "\x1b[2J" not in shown
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown


def test_nothing_found_says_what_to_try(plain: Project) -> None:
    planned(plain)
    done = plain.run("search", "zebra", "--kind", "task")
    assert done.exit_code == 0
    assert done.stdout.startswith("Nothing has this. Try another word")
    assert "without --kind" in done.stdout.replace("\n", " ")
    some = plain.run("search", "queue", "zebra").stdout
    assert some.startswith("No text has all of this. These have some of it:\n")


def test_more_than_is_shown_is_said(plain: Project) -> None:
    planned(plain)
    assert "1 of 3, the best; --limit shows more" in plain.run("search", "queue", "--limit", "1").stdout


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-redis"], "only words to leave out"),
        (["***"], "no word to look for"),
        (["queue", "--since", "yesterday"], "is not a time"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(plain: Project, argv: list[str], said: str) -> None:
    done = plain.run("search", *argv)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "hint" in done.stderr


def test_a_workflow_that_is_not_there_is_refused(plain: Project) -> None:
    planned(plain)
    done = plain.run("search", "queue", "--workflow", "Imporz")
    assert done.exit_code == 1
    assert "Did you mean" in done.stderr or "Import" in done.stderr


def test_words_that_begin_with_a_minus_are_no_options(plain: Project) -> None:
    planned(plain)
    assert plain.search("queue", "-own", "-help", "-go", "-x", "--kind", "decision") == []
    assert plain.search("--", "queue", "-own", "-message", "-imports") == [("task", "Choose a queue")]
    assert "Usage:" in plain.run("search", "-h").stdout


def test_looking_makes_no_store(plain: Project) -> None:
    assert plain.search("anything") == []
    assert not (plain.folder / ".handrail").exists()
    assert not plain.home.exists()


@left_open
def test_looking_at_an_empty_server_makes_nothing_there(tmp_path: Path, postgres_server: str) -> None:
    with schema_of_its_own(postgres_server, f"search_{os.getpid()}_{next(_schemas)}") as address:
        project = Project(tmp_path / "project", ("--db", address))
        assert project.search("anything") == []
        assert project.run("status").exit_code == 0
        assert "there is no store at" in project.run("db", "check").stderr
        assert found_at(address, project.folder).schema == 0
        assert not project.home.exists()
        gc.collect()


def test_git_ignores_the_index(plain: Project) -> None:
    subprocess.run(["git", "init", "-q", str(plain.folder)], check=True)
    planned(plain)
    plain.search("queue")
    assert (plain.folder / ".handrail" / "handrail.db-search").stat().st_mode & 0o777 == 0o600
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=plain.folder, check=True, capture_output=True, text=True
    )
    assert status.stdout == "?? .handrail/.gitignore\n"


@left_open
def test_the_index_of_a_server_lies_in_the_users_folder(tmp_path: Path, postgres_server: str) -> None:
    with schema_of_its_own(postgres_server, f"search_{os.getpid()}_{next(_schemas)}") as address:
        project = Project(tmp_path / "project", ("--db", address))
        planned(project)
        assert project.search("daemon") == []
        (kept,) = (project.home / ".handrail").glob("handrail.db-search-*")
        assert kept.stat().st_mode & 0o777 == 0o600
        assert not (project.folder / ".handrail").exists()
        gc.collect()


def test_a_store_for_several_repositories_shows_only_this_one(tmp_path: Path) -> None:
    one, other = (Project(tmp_path / name, ("--db", str(tmp_path / "shared.db"))) for name in ("one", "other"))
    for project in (one, other):
        planned(project)
    assert len(one.search("queue")) == len(other.search("queue")) == 3


def test_a_restored_backup_is_searched_as_it_is(plain: Project, tmp_path: Path) -> None:
    planned(plain)
    copy = tmp_path / "copy.db"
    assert plain.run("db", "backup", str(copy)).exit_code == 0
    plain.call("workflow_create", name="Zebra", source_type="prompt", source_content="x")
    assert plain.search("zebra") != []
    assert plain.run("db", "restore", str(copy), "--yes").exit_code == 0
    plain.call("workflow_create", name="Giraffe", source_type="prompt", source_content="x")
    assert plain.search("zebra") == []
    assert plain.search("giraffe") == [("workflow", "Giraffe")]


@pytest.mark.parametrize(
    ("text", "at"),
    [("1m", 999_940_000), ("2h", 992_800_000), ("1d", 913_600_000), ("1w", 395_200_000), ("1970-01-02", 86_400_000)],
)
def test_times_are_understood(text: str, at: int) -> None:
    assert since_ms(text, 1_000_000_000) == at


@pytest.mark.parametrize("text", ["", "d", "7", "7y", "2026-13-01", "-7d", "٧d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams):
        since_ms(text, 1_000_000_000)
