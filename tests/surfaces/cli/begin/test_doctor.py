"""`handrail doctor` on set-ups that are broken in every way it knows: each is named, with a fix, and ends with 1."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import click.testing
import pytest

from handrail import __version__
from handrail.domain.setup.blocks import block
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.outside.server_probe import try_server, who_listens
from handrail.settings import Settings
from handrail.setup import place_checks, store_checks
from handrail.setup.findings import Patient
from handrail.store.lease_clock import Anchor, machine_time
from handrail.store.migrations import LATEST
from handrail.surfaces.cli.main import cli
from tests.own_store import own_engine
from tests.store.ground import older


class Ward:
    """A project that is looked at."""

    def __init__(self, folder: Path) -> None:
        self.project = (folder / "project").resolve()
        self.home = (folder / "home").resolve()
        for made in (self.project / ".git", self.home):
            made.mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.variables = {"HANDRAIL_HTTP": f"127.0.0.1:{free.getsockname()[1]}"}

    def run(self, *words: str) -> click.testing.Result:
        runner = click.testing.CliRunner(env={"HOME": str(self.home), **self.variables})
        return runner.invoke(cli, [*words, "--root", str(self.project)], prog_name="handrail")

    def doctor(self, *options: str) -> dict[str, list[dict[str, Any]]]:
        """What is found, by check; the exit code agrees with it."""
        done = self.run("doctor", "--json", *options)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        told = json.loads(done.stdout)
        assert done.exit_code == (1 if told["broken"] else 0)
        by_check: dict[str, list[dict[str, Any]]] = {}
        for finding in told["findings"]:
            by_check.setdefault(finding["check"], []).append(finding)
            assert finding["level"] == "ok" or finding["fix"]
        return by_check

    def broken(self, check: str, *options: str) -> dict[str, Any]:
        """The one broken thing of a check."""
        (finding,) = [one for one in self.doctor(*options).get(check, []) if one["level"] == "broken"]
        return finding

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def server(self, *words: str) -> None:
        """A client's server, set up by hand."""
        entry = {"command": words[0], "args": words[1:]}
        self.write(".mcp.json", json.dumps({"mcpServers": {"handrail": entry}}))

    def store(self, path: Path | None = None) -> Path:
        """A store, made by the engine; its file."""
        db = "" if path is None else str(path)
        own_engine(self.project, self.home, db=db, version=__version__).close()
        return path or self.project / ".handrail/handrail.db"

    def patient(self, **more: Any) -> Patient:
        environ = {**os.environ, **self.variables}
        files = ClientFiles(self.project, this_machine(self.home, environ))
        given = {"now_ms": 0, **more}
        return Patient(project=self.project, home=self.home, environ=environ, files=files, **given)


@pytest.fixture
def ward(tmp_path: Path) -> Ward:
    return Ward(tmp_path)


def test_what_init_wrote_is_well(ward: Ward) -> None:
    assert ward.run("init", "--all", "--yes").exit_code == 0
    found = ward.doctor()
    assert [one for findings in found.values() for one in findings if one["level"] == "broken"] == []
    assert "17 tools" in found["claude-code"][0]["what"]
    assert {"codex", "zed", "windsurf", "hooks", "instructions", "store", "git", "http"} <= set(found)


def test_for_people_it_says_the_fix_and_ends_with_1(ward: Ward) -> None:
    ward.server("/nowhere/python", "-m", "handrail", "serve")
    done = ward.run("doctor")
    assert done.exit_code == 1
    assert "broken claude-code" in done.output
    assert "fix: handrail init --client claude-code" in done.output
    assert "1 broken" in done.output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["/nowhere/python", "serve"], "is not there"),
        (["no-such-program-anywhere"], "is not there"),
        ([sys.executable, "-c", "raise SystemExit('wrong module')"], "wrong module"),
        ([sys.executable, "-P", "-m", "handrail", "serve", "--root", "/nowhere"], "/nowhere, which is not there"),
        ([sys.executable, "-P", "-m", "handrail", "serve", "--profile", "nope"], "before it answered"),
        ([sys.executable, "-c", 'print(\'{"id": 1, "error": {"message": "go away"}}\')'], "go away"),
        (
            [
                sys.executable,
                "-c",
                'print(\'{"id":1,"result":{"protocolVersion":"1999-01-01"}}\\n{"id":2,"result":{}}\')',
            ],
            "1999-01-01",
        ),
    ],
)
def test_a_server_that_does_not_start_as_it_is_set_up(ward: Ward, words: list[str], why: str) -> None:
    ward.server(*words)
    finding = ward.broken("claude-code", "--start")
    assert why in finding["what"]
    assert finding["fix"] == "handrail init --client claude-code"


def test_another_installation_is_pointed_out(ward: Ward) -> None:
    hello = {
        "id": 1,
        "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "handrail", "version": "0.0.1"}},
    }
    lines = "\n".join([json.dumps(hello), '{"id": 2, "result": {"tools": []}}'])
    ward.server(sys.executable, "-c", f"print({lines!r})")
    (finding,) = ward.doctor("--start")["claude-code"]
    assert finding["level"] == "look"
    assert "0.0.1" in finding["what"]


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["touch", "{mark}"], {}),
        ([sys.executable, "-c", "open('{mark}', 'w')"], {}),
        ([sys.executable, "-P", "-m", "handrail", "serve"], {"PYTHONPATH": "{project}"}),
        (
            [
                sys.executable,
                "-P",
                "-m",
                "handrail",
                *("call", "start_workflow", "name=a", "description=b"),
                "--db={mark}",
            ],
            {},
        ),
    ],
)
def test_what_a_repository_brings_along_is_not_run(
    ward: Ward, words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    mark = tmp_path / "it-ran"
    ward.write("handrail/__init__.py", f"open({str(mark)!r}, 'w')")
    filled = [word.replace("{mark}", str(mark)) for word in words]
    env = {name: value.replace("{project}", str(ward.project)) for name, value in variables.items()}
    entry = {"command": filled[0], "args": filled[1:], "env": env}
    ward.write(".mcp.json", json.dumps({"mcpServers": {"handrail": entry}}))
    (finding,) = ward.doctor()["claude-code"]
    assert (finding["level"], mark.exists()) == ("look", False)
    assert "was not started" in finding["what"]
    ward.doctor("--start")
    assert mark.exists()


def test_a_hooks_program_that_a_repository_brings_along_is_not_run(ward: Ward, tmp_path: Path) -> None:
    mark = tmp_path / "it-ran"
    script = ward.write("python", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    command = f"{script} -m handrail.hooks stop"
    ward.write(".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": [{"command": command}]}]}}))
    (finding,) = ward.doctor()["hooks"]
    assert (finding["level"], mark.exists()) == ("look", False)
    ward.doctor("--start")
    assert mark.exists()


def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    silent = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    trial = try_server(silent, folder=str(tmp_path), environ=os.environ, protocol="2025-11-25", timeout_s=0.5)
    assert trial.problem == "it did not answer within 0.5 s"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (['{"id": 1, "error": "no"}'], "it refused to connect: no reason given"),
        (['{"id": 1, "result": []}'], "it did not list its tools"),
        (['{"id": 1, "result": {"serverInfo": "x"}}', '{"id": 2, "result": 7}'], "it did not list its tools"),
        (['{"id": 1, "result": {}}', '{"id": 2, "result": {"tools": 7}}'], ""),
        (["7", "[]", "null"], "it ended with 0 before it answered"),
    ],
)
def test_a_program_that_answers_otherwise_is_told(tmp_path: Path, lines: list[str], problem: str) -> None:
    code = f"print({chr(10).join(lines)!r})"
    trial = try_server(
        [sys.executable, "-c", code], folder=str(tmp_path), environ=os.environ, protocol="2025-11-25", timeout_s=30
    )
    assert trial.problem == problem


def test_a_clients_file_that_it_cannot_read(ward: Ward) -> None:
    ward.write(".codex/config.toml", "[mcp_servers.handrail")
    assert "not valid TOML" in ward.broken("codex")["what"]


def test_a_server_where_claude_code_never_looks(ward: Ward) -> None:
    (ward.home / ".claude").mkdir()
    (ward.home / ".claude/settings.json").write_text('{"mcpServers": {"handrail": {"command": "x"}}}', encoding="utf-8")
    assert "reads none from there" in ward.broken("claude-code")["what"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/nowhere/python -m handrail.hooks stop", "/nowhere/python, which is not there"),
        (f"{shlex.quote(sys.executable)} -m handrail.hoooks stop", "runs handrail.hoooks"),
        ("'unclosed -m handrail", "is no command"),
    ],
)
def test_a_hook_that_points_nowhere(ward: Ward, command: str, why: str) -> None:
    theirs = {"hooks": [{"type": "command", "command": "/nowhere/of-others"}]}
    ours = {"hooks": [{"type": "command", "command": command}]}
    ward.write(".claude/settings.json", json.dumps({"hooks": {"Stop": [theirs, ours]}}))
    finding = ward.broken("hooks")
    assert why in finding["what"]
    assert "of-others" not in finding["what"]


def test_an_old_block_of_instructions(ward: Ward) -> None:
    file = ward.write("AGENTS.md", block("yesterday's rules\n"))
    assert "another Handrail" in ward.broken("instructions")["what"]
    file.write_text(block().replace("end -->", ""), encoding="utf-8")
    assert "do not pair" in ward.broken("instructions")["what"]
    file.write_text(block().replace("five", "nine"), encoding="utf-8")
    assert [one["level"] for one in ward.doctor()["instructions"]] == ["look"]


def test_a_schema_of_tomorrow_and_one_of_yesterday(ward: Ward) -> None:
    file = ward.store()
    assert f"schema {LATEST}" in ward.doctor()["store"][0]["what"]
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        connection.execute(f"PRAGMA user_version = {LATEST + 1}").fetchall()
        connection.execute("UPDATE meta SET value = '9.9' WHERE key = 'needs'").fetchall()
    newer = ward.broken("store")
    assert f"schema {LATEST + 1}" in newer["what"]
    assert "9.9" in newer["fix"]
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        connection.execute(f"PRAGMA user_version = {LATEST}").fetchall()
    older(file, LATEST - 1)
    (told,) = ward.doctor()["store"]
    assert (told["level"], told["fix"]) == ("look", "handrail db upgrade")
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        connection.execute("DELETE FROM meta WHERE key LIKE 'made_on:%'").fetchall()
    (told,) = ward.doctor()["store"]
    assert "handrail db trust" in told["fix"], "which upgrades it, too"


def test_a_store_with_a_trigger_in_it(ward: Ward) -> None:
    file = ward.store()
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        connection.execute("CREATE TRIGGER sly AFTER INSERT ON workflow BEGIN SELECT 1; END")
    told = ward.broken("store")
    assert "trigger sly on workflow is not part of a store" in told["what"]
    assert "handrail db rebuild" in told["fix"]


def test_a_store_that_has_moved(ward: Ward) -> None:
    ward.store()
    assert ward.run("db", "move", str(ward.project / "elsewhere.db"), "--yes").exit_code == 0
    found = ward.doctor()
    assert [one["level"] for one in found["store"]] == ["ok"]
    assert "elsewhere.db" in found["store"][0]["what"]
    assert [one for one in found.get("stores", []) if one["level"] == "broken"] == []
    (ward.project / ".handrail/config.toml").unlink()
    old = ward.broken("store")
    assert "has moved to" in old["what"]
    assert "elsewhere.db" in old["fix"]


def test_a_file_that_is_no_store(ward: Ward) -> None:
    ward.write(".handrail/handrail.db", "this is not a database, though it is long enough to be looked at" * 20)
    assert "cannot be read" in ward.broken("store")["what"]


def test_a_database_of_something_else(ward: Ward) -> None:
    ward.write("other.db", "").unlink()
    with contextlib.closing(apsw.Connection(str(ward.project / "other.db"))) as connection:
        connection.execute("CREATE TABLE mine (x)").fetchall()
    ward.variables["HANDRAIL_DB"] = "other.db"
    assert "something else" in ward.broken("store")["what"]


def test_a_database_that_is_gone_while_its_log_is_there(ward: Ward) -> None:
    ward.write(".handrail/handrail.db-wal", "x")
    assert "handrail.db-wal is still there" in ward.broken("store")["what"]


def test_two_stores_by_a_variable(ward: Ward) -> None:
    own = ward.store()
    ward.variables["HANDRAIL_DB"] = str(ward.store(ward.home / "other.db"))
    finding = ward.broken("stores")
    assert str(own) in finding["what"]
    assert "other.db" in finding["what"]


def test_two_stores_because_the_global_one_has_work_of_this_repository(ward: Ward) -> None:
    ward.store()
    everybodys = ward.store(ward.home / ".handrail/handrail.db")
    assert [one for one in ward.doctor().get("stores", []) if one["level"] == "broken"] == []
    done = ward.run("call", "start_workflow", '{"name": "Elsewhere"}', "--global")
    assert done.exit_code == 0, done.output
    finding = ward.broken("stores")
    assert str(everybodys) in finding["what"]
    assert "1 workflows" in finding["what"]


def test_a_store_that_went_astray(ward: Ward) -> None:
    (ward.project / "part/.handrail").mkdir(parents=True)
    stray = ward.store(ward.project / "part/.handrail/handrail.db")
    (finding,) = ward.doctor()["stores"]
    assert (finding["level"], str(stray) in finding["what"]) == ("look", True)


def test_a_gate_that_somebody_keeps_shut(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "GATE_S", 0.05)
    gate = Path(f"{ward.store()}.gate")
    with gate.open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        finding = ward.broken("lock")
    assert f"process {os.getpid()}" in finding["what"]
    assert "kill" in finding["fix"]
    assert "lock" in ward.doctor()
    assert [one["level"] for one in ward.doctor()["lock"]] == ["ok"]


def test_a_lock_that_a_killed_git_left(ward: Ward) -> None:
    lock = ward.write(".git/index.lock", "")
    made = lock.stat().st_mtime_ns // 1_000_000
    fresh = place_checks.check_git(ward.patient(now_ms=made + 1000))
    assert [one for one in fresh if one.check == "lock"] == []
    old = place_checks.check_git(ward.patient(now_ms=made + 11 * 60_000))
    (finding,) = [one for one in old if one.check == "lock"]
    assert finding.level == "broken"
    assert "11 min ago" in finding.what


def test_git_that_is_missing_or_too_old(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_checks, "git_version", lambda: (2, 25))
    (old,) = place_checks.check_git(ward.patient())
    assert (old.level, old.fix) == ("broken", "install git 2.39 or newer")
    assert "git 2.25 is too old" in old.what
    monkeypatch.setattr(place_checks, "git_program", lambda: None)
    (missing,) = place_checks.check_git(ward.patient())
    assert missing.level == "broken"
    (ward.project / ".git").rmdir()
    (without,) = place_checks.check_git(ward.patient())
    assert without.level == "look"


@contextlib.contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """Somebody at a port who says this to whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with peer:
                        peer.recv(4096)
                        peer.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def test_an_address_that_somebody_else_has(ward: Ward) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\nhello") as port:
        ward.variables["HANDRAIL_HTTP"] = f"127.0.0.1:{port}"
        finding = ward.broken("http")
        assert f"127.0.0.1:{port} is taken" in finding["what"]
        unasked = ward.patient(timeout_s=1.0)
        unasked = Patient(project=ward.project, home=ward.home, environ={}, files=unasked.files, now_ms=0)
        (default,) = place_checks.check_address(unasked, Settings(http=f"127.0.0.1:{port}"))
        assert default.level == "look"


def test_an_address_where_handrail_serves(ward: Ward) -> None:
    challenge = b'HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm="handrail"\r\n\r\n'
    with answering(challenge) as port:
        assert who_listens("127.0.0.1", port, timeout_s=5) == "handrail"
    assert who_listens("127.0.0.1", int(ward.variables["HANDRAIL_HTTP"].rpartition(":")[2]), timeout_s=5) is None


def test_one_who_answers_drop_by_drop_is_not_listened_to_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        left = threading.Event()

        def drip() -> None:
            peer, _ = listening.accept()
            with peer, contextlib.suppress(OSError):
                while not left.wait(0.05):
                    peer.sendall(b"x")

        threading.Thread(target=drip, daemon=True).start()
        try:
            assert who_listens("127.0.0.1", listening.getsockname()[1], timeout_s=0.5) == "other"
        finally:
            left.set()


def test_settings_that_cannot_be_read(ward: Ward) -> None:
    ward.write(".handrail/config.toml", "prfile = 'solo'")
    assert "there is no setting prfile" in ward.broken("settings")["what"]


def test_a_state_folder_that_cannot_be_used(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ward.project / ".handrail"
    folder.symlink_to(ward.home)
    assert "symbolic link" in ward.broken("folder")["what"]
    folder.unlink()
    folder.mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    (finding,) = store_checks.check_state_folder(ward.patient())
    assert (finding.level, "cannot be written" in finding.what) == ("broken", True)


def test_a_store_on_a_network_file_system(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "network_file_system", lambda path: "nfs4")
    assert "nfs4" in ward.broken("store")["what"]


def test_a_note_of_init_that_cannot_be_read_and_a_file_that_is_gone(ward: Ward) -> None:
    assert ward.run("init", "--client", "cursor", "--yes").exit_code == 0
    (ward.project / ".cursor/mcp.json").unlink()
    (gone,) = ward.doctor()["init"]
    assert (gone["level"], ".cursor/mcp.json" in gone["what"]) == ("look", True)
    ward.write(".handrail/init.json", "{")
    assert "init.json cannot be read" in ward.broken("init")["what"]


def test_looking_changes_nothing(ward: Ward) -> None:
    ward.write(".claude/settings.json", "{}")
    before = sorted(ward.project.rglob("*"))
    ward.doctor()
    assert sorted(ward.project.rglob("*")) == before


def test_a_database_server_that_does_not_answer_is_broken_and_its_password_is_not_told(ward: Ward) -> None:
    ward.variables["HANDRAIL_DB"] = "postgresql://anna:s3cret@127.0.0.1:1/db"
    finding = ward.broken("store")
    assert "does not answer" in finding["what"]
    assert "s3cret" not in str(finding)


def test_a_clock_that_was_set_is_told(ward: Ward) -> None:
    path = ward.store()
    at = machine_time()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        kept = Anchor(at.boot, 0, at.wall_ms - at.since_ms + 3_600_000)
        connection.execute("INSERT INTO meta (key, value) VALUES ('lease_clock', ?)", (kept.text,))
    (finding,) = ward.doctor()["clock"]
    assert finding["level"] == "look"
    assert "back" in finding["what"]
