"""Tokens of people and agents with real `handrail up` processes: what each may do, and that a revoked one may not."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.process.http_peer import DEADLINE_S, Peer, Session, request_of
from tests.store.server import running, schema_of_its_own

PING = request_of("ping")
NEW = {"source_type": "prompt", "source_content": "x"}


class Host(NamedTuple):
    """A machine: a home, a project in it, and the store it shares or has for itself."""

    home: Path
    project: Path
    store: tuple[str, ...]

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LOGNAME": "ann"}

    def run(self, *argv: str) -> Any:
        command = [sys.executable, "-m", "handrail", *argv, *self.store, "--json"]
        ours, theirs = pty.openpty()  # what only a person does is done at a terminal
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environ,
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        os.close(ours)
        os.close(theirs)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return msgspec.json.decode(done.stdout)

    def token(self, name: str, *options: str) -> str:
        return str(self.run("token", "create", name, *options)["token"])


class Up(NamedTuple):
    """A running `handrail up`: its address, and the token of whoever started it."""

    url: str
    own: str

    @contextlib.contextmanager
    def peer(self, token: str) -> Iterator[Peer]:
        with Peer(self.url, token) as peer:
            yield peer


def host_at(folder: Path, *store: str) -> Host:
    project = folder / "project"
    project.mkdir(parents=True)
    return Host(folder, project, store)


@contextlib.contextmanager
def up(host: Host, *options: str) -> Iterator[Up]:
    command = [
        sys.executable,
        "-m",
        "handrail",
        "up",
        "--http",
        "127.0.0.1:0",
        "--toolsets",
        "workflow,agent",
        "--json",
    ]
    process = subprocess.Popen(
        [*command, *host.store, *options],
        cwd=host.project,
        env=host.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        told = msgspec.json.decode(process.stdout.readline())
        yield Up(told["url"], told["token"])
        process.terminate()
        assert process.wait(DEADLINE_S) == 0
        assert b"Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return host_at(tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def server(host: Host) -> Iterator[Up]:
    with up(host) as serving:
        yield serving


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Two machines that share nothing but a store on a server. One in a file is the machine's that made it."""
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(running())
        store = stack.enter_context(schema_of_its_own(address, f"tokens_{os.getpid()}"))
        yield host_at(tmp_path / "one", "--db", store), host_at(tmp_path / "two", "--db", store)


def status(peer: Peer) -> int:
    """200 where the token is let in, in the stateless era."""
    with peer.stateless("tools/list") as response:
        return response.status


def refused_before_long(peer: Peer) -> None:
    """Asks until the token is refused, as it must be."""
    pause, deadline = threading.Event(), time.monotonic() + DEADLINE_S
    while status(peer) != 401:
        assert time.monotonic() < deadline, "the token goes on working"
        pause.wait(0.05)


def call(client: Peer | Session, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """A tool call in the client's own era, to what it says."""
    ask = client.stateless if isinstance(client, Peer) else client.ask
    answer = ask("tools/call", name=tool, arguments=arguments).answer()
    assert "result" in answer, answer
    said = answer["result"]["structuredContent"]
    assert isinstance(said, dict)
    return said


def refused(client: Peer | Session, tool: str, /, **arguments: Any) -> str:
    """The code of a call that must be refused."""
    return str(call(client, tool, **arguments)["error"]["code"])


def test_a_token_works_in_both_eras_and_what_it_does_bears_its_name(host: Host, server: Up) -> None:
    with server.peer(host.token("Ann Lee")) as peer:
        session = peer.session()
        for client in (peer, session):
            made = call(client, "workflow_create", name="x", **NEW)
            events = host.run("log", "--stream", made["id"])
            assert [(event["actor"], event["channel"]) for event in events] == [("Ann Lee", "mcp")]
        assert session.end() == 200


def test_the_token_of_whoever_started_the_server_goes_on_working(server: Up) -> None:
    with server.peer(server.own) as peer:
        assert call(peer, "workflow_create", name="x", **NEW)["id"]
        assert call(peer.session(), "workflow_create", name="x", **NEW)["id"]


def test_a_token_that_may_only_read_reads_and_is_told_why_it_does_not_write(host: Host, server: Up) -> None:
    with server.peer(host.token("looker", "--rights", "read")) as peer:
        names = [tool["name"] for tool in peer.stateless("tools/list").answer()["result"]["tools"]]
        assert "workflow_list" in names
        assert "workflow_create" not in names
        session = peer.session()
        assert "workflows" in call(peer, "workflow_list")
        assert "workflows" in call(session, "workflow_list")
        whole: dict[str, Any] = {"name": "workflow_create", "arguments": {"name": "no", **NEW}}
        for declined in (
            peer.stateless("tools/call", **whole).answer(),
            session.ask("tools/call", **whole).answer(),
            session.ask("workflow_create", **whole["arguments"]).answer(),
            peer.at("/mcp/x/workflow").stateless("tools/call", **whole).answer(),
        ):
            assert "the token looker may only read" in declined["error"]["message"]
            assert "--rights read,write" in declined["error"]["message"]


def test_a_token_that_only_decides_calls_nothing_and_is_told_what_it_is_for(host: Host, server: Up) -> None:
    with server.peer(host.token("judge", "--rights", "decide")) as peer:
        for body in (PING, request_of("initialize", protocolVersion="2025-11-25", capabilities={})):
            response = peer.open("POST", body)
            assert response.status == 403
            assert "signs its owner in to the page" in response.error()["data"]["details"]


def test_a_wrong_token_is_refused_however_it_is_wrong(host: Host, server: Up) -> None:
    right = host.token("right")
    unknown, needed = "this token is not known here, or it was revoked", "a bearer token is needed"
    for wrong, said in (
        (right[:-1], unknown),
        (f"{right}x", unknown),
        ("hr_01_x", unknown),
        (f"hr_{'0' * 26}_x", unknown),
        (right.upper(), needed),
        ("x" * 10_000, needed),
    ):
        with server.peer(wrong) as peer:
            response = peer.open("POST", PING)
            assert response.status == 401
            assert said in response.error()["data"]["details"]


def test_a_revoked_token_is_refused_at_once_on_this_machine_and_its_session_with_it(host: Host, server: Up) -> None:
    with server.peer(host.token("gone")) as peer, server.peer(host.token("stays")) as other:
        session = peer.session()
        with session.standing() as channel:
            assert (channel.status, status(peer), session.ask("ping").status) == (200, 200, 200)
            host.run("token", "revoke", "gone")
            assert status(peer) == 401
            assert session.ask("ping").status == 401
            assert peer.open("GET", Mcp_Session_Id=session.id).status == 401
        assert status(other) == 200


def test_a_session_is_its_owners_alone(host: Host, server: Up) -> None:
    with server.peer(host.token("owner")) as owner, server.peer(host.token("thief")) as thief:
        session = owner.session()
        for other in (thief, Peer(server.url, server.own)):
            assert other.status("POST", PING, Mcp_Session_Id=session.id) == 404
        assert session.ask("ping").status == 200


def test_an_agents_token_proves_its_agent(tmp_path: Path) -> None:
    host = host_at(tmp_path / "host")
    with up(host, "--set", "identity=strict") as server, server.peer(server.own) as peer:
        agent = call(peer, "agent_register", name="Otter", runtime="custom")["id"]
        other = call(peer, "agent_register", name="Heron", runtime="custom")["id"]
        assert refused(peer, "workflow_create", name="no", agent_id=agent, **NEW) == "IDENTITY_UNPROVEN"
        with server.peer(host.token("otter", "--agent", agent)) as otter:
            for client in (otter, otter.session()):
                for given in ({"agent_id": agent}, {}):
                    made = call(client, "workflow_create", name="yes", **given, **NEW)
                    assert [event["actor"] for event in host.run("log", "--stream", made["id"])] == [agent]
                assert refused(client, "workflow_create", name="no", agent_id=other, **NEW) == "IDENTITY_UNPROVEN"
        with server.peer(host.token("somebody")) as somebody:
            assert refused(somebody, "workflow_create", name="no", agent_id=agent, **NEW) == "IDENTITY_UNPROVEN"


def test_machines_that_share_a_store_share_its_tokens(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    with up(one) as first, up(two) as second:
        token = one.token("ann")
        with first.peer(token) as here, second.peer(token) as there:
            made = call(here, "workflow_create", name="shared", **NEW)
            assert call(there, "workflow_get", id=made["id"])["name"] == "shared"
            session = there.session()
            one.run("token", "revoke", "ann")
            assert status(here) == 401
            refused_before_long(there)
            assert session.ask("ping").status == 401
        for server, foreign in ((first, second.own), (second, first.own)):
            with server.peer(foreign) as stranger:
                assert status(stranger) == 401


def test_a_strangers_token_leaves_no_trace(tmp_path: Path) -> None:
    host = host_at(tmp_path / "host")
    with up(host) as server, server.peer("hr_01_secret") as stranger:
        assert stranger.status("POST", PING) == 401
    assert list(host.project.iterdir()) == []
