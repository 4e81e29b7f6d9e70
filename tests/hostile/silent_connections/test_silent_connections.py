"""Strangers fill a real `handrail up` with connections that say nothing, half of a head, or a byte now and then.
Whoever comes with a token is answered meanwhile, and a stream that was there before stays."""

from __future__ import annotations

import contextlib
import itertools
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.http_peer import Peer
from tests.process.page_peer import Terminal, up_on_a_terminal

SILENT = 1400
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Long: "
REFUSED = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROOM_MB = 60
"""What all of them together may cost, with room to spare."""


def up(folder: Path, descriptors: int, hard: int) -> contextlib.AbstractContextManager[Terminal]:
    """`handrail up` under a shell that lets it open this many files, and allows it to ask for `hard`."""
    (folder / ".handrail").mkdir()
    limited = ("sh", "-c", f'ulimit -Sn {descriptors}; ulimit -Hn {hard}; exec "$@"', "sh")
    return up_on_a_terminal(folder, through=limited)


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough of them for the attacker, who is this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * SILENT
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("this machine does not let a process open that many connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """The strangers' connections. All of them stay open until the end."""

    def __init__(self, peer: Peer, held: contextlib.ExitStack) -> None:
        self._peer, self._held = peer, held
        self.all: list[socket.socket] = []

    def join(self, count: int, said: bytes = b"") -> None:
        for _ in range(count):
            connection = self._held.enter_context(self._peer.socket())
            self.all.append(connection)
            self.say(connection, said)

    def say(self, connection: socket.socket, said: bytes) -> None:
        with contextlib.suppress(OSError):  # it had to make room
            connection.sendall(said)

    def drip(self) -> None:
        for connection in self.all:
            self.say(connection, b"x")


def kept(process: Terminal, file: str, begins: str) -> list[str]:
    """The words of a line in what the system says of a process."""
    lines = Path(f"/proc/{process.process.pid}/{file}").read_text().splitlines()
    return next(line.removeprefix(begins).split() for line in lines if line.startswith(begins))


def rss_mb(process: Terminal) -> float:
    return int(kept(process, "status", "VmRSS:")[0]) / 1024


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize(
    ("soft", "hard"),
    [pytest.param(1024, 1024, id="no more descriptors"), pytest.param(256, 4096, id="more descriptors for the asking")],
)
def test_nobody_with_a_token_waits_for_strangers_who_say_nothing(tmp_path: Path, soft: int, hard: int) -> None:
    with up(tmp_path, soft, hard) as process, Peer(f"{process.url}/mcp", "T") as peer, contextlib.ExitStack() as held:
        assert kept(process, "limits", "Max open files")[:2] == [str(hard)] * 2
        session, api = peer.session(), peer.at("/api/session")
        news = held.enter_context(peer.at("/api/feed").open("GET"))
        assert news.is_events
        before = rss_mb(process)
        crowd = Crowd(peer, held)
        for said in (b"", HALF, REFUSED):
            crowd.join(SILENT if not said else SILENT // 4, said)
            for _ in range(3):
                assert session.ask("tools/list").status == 200
                assert api.status("GET") == 200
            crowd.drip()
        assert peer.session().ask("tools/list").status == 200, "somebody new is let in too"
        assert rss_mb(process) - before < ROOM_MB
        assert len(list(Path(f"/proc/{process.process.pid}/fd").iterdir())) < hard
        asked = {"name": "heard of", "description": "", "plan": []}
        assert "workflow_id" in str(session.ask("tools/call", name="start_workflow", arguments=asked).answer())
        heard = itertools.islice(iter(news.event, None), 10)
        assert any("heard of" in str(event) for event in heard), "the stream of before is still there"
        assert "WARNING" not in process.said, "a stranger writes nothing on a person's terminal"
        assert "Traceback" not in process.said


@pytest.mark.usefixtures("descriptors")
def test_long_heads_of_many_strangers_take_bounded_memory(tmp_path: Path) -> None:
    with up(tmp_path, 1024, 1024) as process, Peer(f"{process.url}/mcp", "T") as peer, contextlib.ExitStack() as held:
        session = peer.session()
        before = rss_mb(process)
        Crowd(peer, held).join(400, HALF + b"x" * 400_000)
        assert session.ask("tools/list").status == 200
        assert rss_mb(process) - before < ROOM_MB
