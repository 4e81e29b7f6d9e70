"""`handrail token` as a person uses it: made, listed, revoked; the secret is shown once and kept nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.setup.clients import CLIENTS
from handrail.domain.setup.http_entries import PLACES
from handrail.outside.token_files import REVOCATIONS, revocation_mark
from handrail.settings import Settings
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.serve.up import client_url, team_line, welcome

HTTP_TITLES = [client.title for client in CLIENTS if client.name in {place.client for place in PLACES}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def home(project: Path) -> Path:
    return project.parent / "home"


def mark(project: Path) -> int:
    return revocation_mark(str(home(project) / REVOCATIONS))


def run(project: Path, *argv: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(home(project)), "LOGNAME": "ann"})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def run_json(project: Path, *argv: str) -> Any:
    done = run(project, *argv, "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def test_a_token_is_made_with_the_rights_to_read_and_write_and_shown_once(project: Path) -> None:
    made = run_json(project, "token", "create", "Ann Lee")
    assert (made["name"], made["rights"], made["agent_id"]) == ("Ann Lee", ["read", "write"], None)
    assert made["token"].startswith(f"hr_{made['id'].removeprefix('tok_')}_")
    secret = made["token"].split("_", 2)[2]
    assert len(secret) >= 32
    for command in (("token", "list"), ("token", "list", "--json"), ("log",), ("log", "--json")):
        shown = run(project, *command)
        assert shown.exit_code == 0
        assert secret not in shown.output


def test_two_tokens_have_two_secrets(project: Path) -> None:
    first, second = (run_json(project, "token", "create", name)["token"] for name in ("ann", "bob"))
    assert first.split("_", 2)[2] != second.split("_", 2)[2]


def test_a_person_sees_the_token_and_how_it_is_used(project: Path) -> None:
    shown = run(project, "token", "create", "ann", "--rights", " read ").stdout
    assert "for ann: read\n" in shown
    assert "\n  hr_" in shown
    assert "shown only now" in shown
    assert "Authorization: Bearer" in shown


def test_a_token_that_decides_is_made_by_a_person_at_a_terminal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run(project, "token", "create", "ann", "--rights", "decide")
    assert refused.exit_code == 1
    assert "NOT_ALLOWED" in refused.output
    assert run_json(project, "token", "list")["tokens"] == []
    monkeypatch.setattr("handrail.surfaces.cli.serve.token.sits_at_terminal", lambda: True)
    shown = run(project, "token", "create", "ann", "--rights", "decide").stdout
    assert "signs its owner in to the page" in shown
    assert "Bearer" not in shown


def test_the_list_has_every_token_with_its_rights_and_its_end(project: Path) -> None:
    assert "handrail token create NAME" in run(project, "token", "list").stdout
    for name, rights in (("ann", "read,write"), ("bot", "read")):
        run(project, "token", "create", name, "--rights", rights)
    run(project, "token", "revoke", "bot")
    ann, bot = run_json(project, "token", "list")["tokens"]
    assert set(ann) == {"id", "name", "rights", "agent_id", "created_at", "revoked_at"}
    assert (ann["name"], ann["rights"], ann["revoked_at"]) == ("ann", ["read", "write"], None)
    assert bot["revoked_at"] >= bot["created_at"]
    head, *rows = run(project, "token", "list").stdout.splitlines()
    assert head.split() == ["id", "name", "rights", "agent", "made", "revoked"]
    assert rows[0].split()[:4] == [ann["id"], "ann", "read,write", "-"]
    assert rows[0].endswith("-")
    assert rows[1].endswith(" ago")


def test_a_token_is_revoked_by_id_and_by_name_and_servers_here_are_told(project: Path) -> None:
    made = [run_json(project, "token", "create", name) for name in ("ann", "bot")]
    before = mark(project)
    for which in (made[0]["id"], "bot"):
        gone = run_json(project, "token", "revoke", which)
        assert gone["revoked_at"] is not None
        assert "token" not in gone
        assert mark(project) != before
        before = mark(project)
    again = run(project, "token", "revoke", made[0]["id"])
    assert again.exit_code == 0
    assert "was revoked before" in again.stdout


def test_what_was_done_is_in_the_ledger_under_the_persons_name(project: Path) -> None:
    made = run_json(project, "token", "create", "bot")
    run(project, "token", "revoke", "bot")
    told = [(event["kind"], event["actor"], event["stream"]) for event in run_json(project, "log")]
    assert told == [("token.created", "ann", made["id"]), ("token.revoked", "ann", made["id"])]
    assert run(project, "db", "verify").exit_code == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("create", "ann", "--rights", "reed"), 2, "did you mean read?"),
        (("create", "ann", "--rights", ""), 2, "rights: read, write, decide"),
        (("create", "ann", "--rights", "write"), 2, "must also read"),
        (("create", "", "--rights", "read"), 2, "printable characters"),
        (("create", "ann", "--agent", "agent_nope"), 1, "there is no agent agent_nope"),
        (("create", "ann", "--agent", "agent_nope"), 1, "no agent has come here yet"),
        (("revoke", "nobody"), 1, "handrail token create"),
        (("revoke", "\udcff"), 1, "there is no token"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(
    project: Path, argv: tuple[str, ...], code: int, said: str
) -> None:
    done = run(project, "token", *argv)
    assert done.exit_code == code
    assert said in done.stderr
    assert run_json(project, "token", "list") == {"tokens": []}


def test_tokens_are_in_the_store_that_was_named(project: Path, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "other.db")
    run_json(project, "token", "create", "ann", "--db", elsewhere)
    assert run_json(project, "token", "list")["tokens"] == []
    assert [one["name"] for one in run_json(project, "token", "list", "--db", elsewhere)["tokens"]] == ["ann"]
    run_json(project, "token", "create", "bob", "--global")
    assert [one["name"] for one in run_json(project, "token", "list", "--global")["tokens"]] == ["bob"]


@pytest.mark.parametrize(
    ("bound", "shown"),
    [
        ("http://0.0.0.0:8765/mcp", "http://box.example:8765/mcp"),
        ("http://[::]:1/mcp", "http://box.example:1/mcp"),
        ("http://127.0.0.1:8765/mcp", "http://127.0.0.1:8765/mcp"),
        ("http://10.0.0.7:8765/mcp", "http://10.0.0.7:8765/mcp"),
    ],
)
def test_up_shows_the_address_that_clients_use(bound: str, shown: str) -> None:
    assert client_url(bound, Settings(allow_hosts=("box.example", "other.example"))) == shown


def test_up_says_how_others_get_a_token_and_never_repeats_the_stores_address() -> None:
    told = team_line(Settings(db="postgresql://ann:password@db.example/handrail"))
    assert "handrail token create NAME --db" in told
    assert "password" not in told
    assert "db.example" not in told
    assert "--db" not in team_line(Settings())


def test_what_up_says_has_every_client_and_ends_with_what_a_person_looks_for() -> None:
    told = welcome(
        "http://127.0.0.1:8765/mcp", "T" * 43, Path("/srv/notes"), "PAGE\n  LINK", "On: plan.", team_line(Settings())
    )
    assert told.endswith("PAGE\n  LINK")
    assert [name for name in (*HTTP_TITLES, "Claude Code", "Codex") if name not in told] == []
    last = told[told.rindex("Authorization") :].splitlines()[1:]
    assert sum(1 + len(line) // 100 for line in last) <= 8, "nobody has to scroll for the page"


def test_where_no_token_works_the_hint_makes_one(project: Path) -> None:
    run(project, "token", "create", "ann")
    assert "newest: ann" in run(project, "token", "revoke", "nobody").stderr
    run(project, "token", "revoke", "ann")
    refused = run(project, "token", "revoke", "nobody")
    assert "no token works at present; `handrail token create NAME` makes one" in " ".join(refused.stderr.split())
