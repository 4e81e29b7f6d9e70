"""What a shipped store authenticates with proves nothing, even after its records were trusted."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.hostile.shipped_store.scene import Machine, Shipped, call
from tests.process.http_peer import DEADLINE_S, Peer
from tests.process.page_peer import Browser


@contextmanager
def up(machine: Machine) -> Iterator[str]:
    """A real `handrail up`; its address."""
    command = [sys.executable, "-m", "handrail", "up", "--http", "127.0.0.1:0", "--set", "approvals=human", "--json"]
    process = subprocess.Popen(
        command,
        cwd=machine.repo,
        env=machine.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield str(msgspec.json.decode(process.stdout.readline())["url"])
    finally:
        process.kill()
        process.wait(DEADLINE_S)
        process.stdout.close()


def signs_in(url: str, token: str) -> tuple[int, str]:
    with Browser(url.rpartition("/")[0]) as browser:
        status, answer = browser.post("/api/session", {"token": token})
        return status, str(answer)


def test_the_shipped_tokens_open_nothing_unless_a_person_lets_them_in(shipped: Shipped, cloned: Machine) -> None:
    trusted = cloned.run("db", "trust", "--yes")
    assert trusted.code == 0, trusted
    assert "2 tokens and the secret of 1 agent in it were not made on this machine" in trusted.said
    assert "Shipped" in cloned.run("status").said, "its records are there"
    with up(cloned) as url:
        with Peer(url, shipped.writer) as peer, peer.open("POST", _initialize()) as opened:
            assert opened.status == 403
            assert "was not made on this machine" in str(opened.body())
        status, answer = signs_in(url, shipped.judge)
        assert (status, "was not made on this machine" in answer) == (403, True), answer
    refused = cloned.run("db", "trust", "--credentials", "--yes")
    assert (refused.code, "NOT_ALLOWED" in refused.said) == (1, True)
    let_in = cloned.typed("db", "trust", "--credentials", "--yes")
    assert let_in.code == 0, let_in
    with up(cloned) as url:
        with Peer(url, shipped.writer) as peer, peer.open("POST", _initialize()) as opened:
            assert opened.status == 200
        assert signs_in(url, shipped.judge)[0] == 200
    assert cloned.run("db", "verify").code == 0


def _initialize() -> dict[str, object]:
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}


def test_the_shipped_agents_secret_proves_nothing(shipped: Shipped, unpacked: Machine) -> None:
    assert unpacked.run("db", "trust", "--yes").code == 0
    with unpacked.serve("--set", "identity=strict") as server:
        by_secret = {"agent_id": shipped.agent, "agent_secret": shipped.secret}
        refused = call(server, "start_workflow", name="Mine", description="-", **by_secret)
        assert refused["code"] == "IDENTITY_UNPROVEN"
        assert "not given out on this machine" in refused["message"]
        shown = call(server, "agent_get", id=shipped.agent)
        assert shown["status"] == "offline", "no lease from elsewhere keeps it present"
        own = call(server, "agent_register", name="own", runtime="custom")
    with unpacked.serve("--set", "identity=strict") as another:
        by_secret = {"agent_id": own["id"], "agent_secret": own["secret"]}
        made = call(another, "start_workflow", name="Mine", description="-", **by_secret)
        assert made.get("workflow_id"), "what this machine gave out outlives the process"


def test_rows_that_are_forged_prove_nothing(shipped: Shipped, unpacked: Machine) -> None:
    """A bare hash, as older Handrails kept it; another token's word; more rights than a token was made with."""
    assert unpacked.run("db", "trust", "--yes").code == 0
    own = unpacked.token("own")
    with apsw.Connection(str(unpacked.store)) as connection:
        kept = dict(connection.execute("SELECT name, secret_hash FROM token"))
        assert all(len(verifier) == 129 for verifier in kept.values())
        change = "UPDATE token SET secret_hash = ? WHERE name = ?"
        connection.execute(change, (kept["writer"][:64], "writer"))
        connection.execute(change, (kept["judge"][:64] + kept["own"][64:], "judge"))
        connection.execute("UPDATE token SET rights = '[\"decide\"]' WHERE name = 'own'")
    with up(unpacked) as url:
        for token in (shipped.writer, own):
            with Peer(url, token) as peer, peer.open("POST", _initialize()) as opened:
                assert (opened.status, b"not made on this machine" in opened.body()) == (403, True)
        for token in (shipped.judge, own):
            assert signs_in(url, token)[0] == 403


def test_another_machines_backup_brings_its_records_and_no_credentials(shipped: Shipped, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    shutil.copyfile(shipped.machine.store, backup)
    victim = Machine(tmp_path / "victim", tmp_path / "own")
    for made in victim:
        made.mkdir()
    assert victim.run("call", "start_workflow", "name=Own", "description=d").code == 0
    done = victim.run("db", "restore", str(backup), "--yes")
    assert done.code == 0, done
    assert "2 tokens and the secret of 1 agent in it were not made on this machine" in done.said
    assert "Shipped" in victim.run("status").said
    with up(victim) as url, Peer(url, shipped.writer) as peer, peer.open("POST", _initialize()) as opened:
        assert opened.status == 403


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("TRIGGER t AFTER INSERT ON workflow BEGIN UPDATE workflow SET name = 'x'; END", "trigger t on workflow"),
        ("INDEX i ON workflow (upper(name))", "index i on workflow"),
        ("TABLE other (x)", "table other"),
    ],
)
def test_a_store_that_holds_more_is_not_taken_over(unpacked: Machine, made: str, named: str) -> None:
    with apsw.Connection(str(unpacked.store)) as connection:
        connection.execute(f"CREATE {made}")
    done = unpacked.run("db", "trust", "--yes")
    assert (done.code, f"{named} is not part of a store" in done.said) == (1, True), done


def test_who_moves_such_a_store_is_told_again(unpacked: Machine, tmp_path: Path) -> None:
    assert unpacked.run("db", "trust", "--yes").code == 0
    done = unpacked.run("db", "move", str(tmp_path / "moved.db"), "--yes")
    assert (done.code, "2 tokens and the secret of 1 agent in it were not made on" in done.said) == (0, True), done


def test_the_key_is_private_and_one(unpacked: Machine) -> None:
    assert unpacked.run("db", "trust", "--yes").code == 0
    key = unpacked.home / ".handrail" / "machine-key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"[0-9a-f]{64}\n", key.read_text())
    key.rename(key.with_name("elsewhere"))
    key.symlink_to(key.with_name("elsewhere"))
    done = unpacked.run("status")
    assert (done.code, "symbolic link" in done.said) == (1, True)
