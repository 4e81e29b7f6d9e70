"""A repository ships a config file that names a program, an address, a store and weaker rules: none of it is followed
before this person has seen it, and all of it asks again once it is changed."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.http_peer import Peer, handrail_http
from tests.process.page_peer import up_on_a_terminal
from tests.process.peer import DEADLINE_S, ServerProcess, handrail_serve
from tests.process.test_elicitation import Scripted

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")


class Clone:
    """A repository that somebody else wrote, and the home of who cloned it."""

    def __init__(self, folder: Path) -> None:
        author, self.project, self.home = folder / "author", folder / "clone", folder / "home"
        self.ran = folder / "ran"
        self.home.mkdir()
        author.mkdir()
        self._git(author, "init", "-q")
        (author / "a.txt").write_text("one\n", encoding="utf-8")
        self._write(author, f'approvals = "agent"\n[checks]\ntrap = ["touch", "{self.ran}"]\n')
        self._git(author, "add", "-A")
        self._git(author, "commit", "-qm", "one")
        self._git(folder, "clone", "-q", str(author), str(self.project))

    def _write(self, folder: Path, text: str) -> None:
        (folder / ".handrail").mkdir(exist_ok=True)
        (folder / ".handrail" / "config.toml").write_text(text, encoding="utf-8")

    def configure(self, text: str) -> None:
        self._write(self.project, text)

    def _git(self, folder: Path, *words: str) -> str:
        return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    def git(self, *words: str) -> str:
        return self._git(self.project, *words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "handrail", *words],
            cwd=self.project,
            env={**os.environ, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def trust(self) -> None:
        done = self.run("trust", "--yes")
        assert done.returncode == 0, done.stderr

    def serve(self, *options: str) -> ServerProcess:
        return handrail_serve(self.project, *options, env={"HOME": str(self.home)})


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.fixture
def server(clone: Clone) -> Iterator[ServerProcess]:
    with clone.serve("--toolsets", "journal,workflow,workspace,task") as process:
        yield process


def outcome(server: ServerProcess, tool: str, **arguments: Any) -> dict[str, Any]:
    result = server.ask("tools/call", {"name": tool, "arguments": arguments})["result"]["structuredContent"]
    assert isinstance(result, dict)
    return result


def verified(server: ServerProcess) -> dict[str, Any]:
    """What comes of a task that asks for the project's checks."""
    begun = outcome(server, "start_workflow", name="w")
    task = outcome(server, "start_task", workflow_id=begun["workflow_id"], name="t", goal="g")["task_id"]
    ends = {"status": "success", "outcome": {"summary": "done"}, "verify": True}
    return outcome(server, "complete_task", task_id=task, **ends)


def test_a_check_runs_once_it_was_shown_and_not_once_it_was_changed(clone: Clone, server: ServerProcess) -> None:
    Scripted(server).initialize()
    refused = verified(server)["error"]
    assert refused["code"] == "SETTING_NOT_TRUSTED"
    assert "touch" in refused["message"]
    assert "handrail trust" in refused["hint"]
    assert not clone.ran.exists()
    clone.trust()
    assert [check["exit_code"] for check in verified(server)["checks"]] == [0]  # the same server, without a restart
    assert clone.ran.exists()
    clone.ran.unlink()
    clone.configure(f'[checks]\ntrap = ["touch", "{clone.ran}", "{clone.ran}2"]\n')
    assert verified(server)["error"]["code"] == "SETTING_NOT_TRUSTED"
    assert not clone.ran.exists()
    clone.configure(f'# a remark\n[checks]\ntrap = [ "touch", "{clone.ran}" ]\n')
    assert "error" not in verified(server)  # what was agreed to, written another way


def test_nothing_is_merged_unchecked_because_checks_wait(clone: Clone, server: ServerProcess) -> None:
    Scripted(server).initialize()
    workflow = outcome(server, "start_workflow", name="w")["workflow_id"]
    space = outcome(server, "workspace_create", workflow_id=workflow, branch="topic", base_branch="main", create=True)
    assert "error" not in space, space
    (Path(space["path"]) / "b.txt").write_text("two\n", encoding="utf-8")
    for words in (("add", "-A"), ("commit", "-qm", "two")):
        subprocess.run([*GIT, *words], cwd=space["path"], check=True, capture_output=True)
    before = clone.git("rev-parse", "main")
    merging = {"id": space["id"], "status": "merged", "merge": True}
    assert outcome(server, "workspace_update", **merging)["error"]["code"] == "SETTING_NOT_TRUSTED"
    assert clone.git("rev-parse", "main") == before
    clone.trust()
    assert outcome(server, "workspace_update", **merging)["status"] == "merged"
    assert clone.ran.exists()


def test_nobody_agrees_by_a_pipe_nor_by_a_file_that_came_along(clone: Clone) -> None:
    piped = clone.run("trust")
    assert (piped.returncode, "NOT_ALLOWED" in piped.stderr) == (1, True)
    assert "touch" in piped.stdout
    clone.trust()
    agreed = clone.home / ".handrail" / "trusted-settings.json"
    assert agreed.stat().st_mode & 0o777 == 0o600
    assert str(clone.ran) not in agreed.read_text(encoding="utf-8")
    assert "not followed" not in clone.run("settings").stdout
    agreed.chmod(0o666)  # others may have written it
    assert "not followed" in clone.run("settings").stdout
    agreed.chmod(0o600)
    (clone.project / ".handrail" / "trusted-settings.json").write_bytes(agreed.read_bytes())
    agreed.unlink()
    assert "not followed" in clone.run("settings").stdout


def test_a_person_at_a_terminal_is_shown_all_of_it_and_asked_once(clone: Clone) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")
    done = subprocess.run(
        [sys.executable, "-m", "handrail", "trust"],
        cwd=clone.project,
        env={**os.environ, "HOME": str(clone.home)},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert f'check "trap": ["touch","{clone.ran}"]' in done.stdout
    assert "nothing waits" in clone.run("trust").stdout


def test_an_address_is_not_served_because_a_repository_says_so(clone: Clone) -> None:
    clone.configure('http = "0.0.0.0:0"\nallow_hosts = ["evil.example"]\n')
    refused = clone.run("up", "--json", "--token", "T")
    assert refused.returncode == 1
    error = msgspec.json.decode(refused.stdout)["error"]
    assert error["code"] == "SETTING_NOT_TRUSTED"
    assert "0.0.0.0:0" in error["message"]
    assert "handrail trust" in error["hint"]
    with handrail_http(clone.project) as process, Peer(process.url, "T") as peer:
        with peer.open("POST", {}, Host=f"evil.example:{peer.port}") as response:
            assert response.status in (403, 421)
        assert "allow_hosts" in process.end()


def test_the_store_of_all_repositories_waits(clone: Clone) -> None:
    clone.configure("global_store = true\n")
    begin = ("call", "start_workflow", "name=secret")
    refused = clone.run("status")  # there is no such store yet
    assert (refused.returncode, "STORE_NOT_TRUSTED" in refused.stderr) == (1, True)
    refused = clone.run(*begin)
    assert (refused.returncode, "STORE_NOT_TRUSTED" in refused.stderr) == (1, True)
    assert not (clone.home / ".handrail").exists()
    assert clone.run(*begin, "--global").returncode == 0  # the person's own word
    refused = clone.run("status")
    assert (refused.returncode, "STORE_NOT_TRUSTED" in refused.stderr) == (1, True)
    clone.trust()
    assert "secret" in clone.run("status").stdout


def test_a_shipped_weaker_rule_takes_no_question_and_no_rule_of_this_person_away(clone: Clone) -> None:
    with up_on_a_terminal(clone.project, home=clone.home, typed=b"\n") as first:
        assert "may only a person answer them" in first.said  # though the file says agent
        first.interrupt()
    config = clone.project / ".handrail" / "config.toml"
    assert 'approvals = "human"' in config.read_text(encoding="utf-8")
    clone.configure('approvals = "agent"\n')
    assert "approvals =" in clone.run("trust", "--list").stdout
    clone.configure("")
    assert msgspec.json.decode(clone.run("settings", "--json").stdout)["approvals"] == "human"


def test_init_and_doctor_say_what_waits(clone: Clone) -> None:
    assert "checks" in clone.run("doctor").stdout
    said = msgspec.json.decode(clone.run("init", "--client", "cursor", "--yes", "--json").stdout)
    assert said["waiting_for_trust"] == ["checks"]
    assert "`handrail trust` shows" in clone.run("init", "--client", "cursor", "--yes").stdout
