"""`handrail up` on a real terminal, and a browser that keeps its cookie. Everything has a deadline."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.process.http_peer import DEADLINE_S, Open, Peer

LINK = re.compile(r"http://[^\s/]+/\?token=[A-Za-z0-9_-]+")
READY = re.compile(rb"\?token=\S+\r?\n")
"""The end of what `up` says before it waits."""


class Terminal:
    """A started `handrail up` whose standard output is a terminal, and what it has printed so far."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        home: Path | None = None,
        typed: bytes = b"",
        through: Sequence[str] = (),
    ) -> None:
        ours, theirs = pty.openpty()
        os.write(ours, typed)
        up = [sys.executable, "-m", "handrail", "up", "--http", "127.0.0.1:0", "--token", "T", *options]
        command = [*through, *up]
        environment = {**os.environ, "HOME": str(home or folder), "LOGNAME": "ann", "TERM": "dumb", "COLUMNS": "200"}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=os.setsid,  # noqa: PLW1509 - one thread of ours runs at this point, and nothing else is done
        )
        os.close(theirs)
        self._ours = ours
        self._said = b""
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(DEADLINE_S), self.said
        assert self.link, self.said

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal ends on Linux
            while chunk := os.read(self._ours, 65536):
                self._said += chunk
                if READY.search(re.sub(rb"\x1b\[[0-9;]*m", b"", self._said)):
                    self._ready.set()
        self._ready.set()

    @property
    def said(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*m", "", self._said.decode(errors="replace"))

    @property
    def link(self) -> str:
        found = LINK.search(self.said)
        return found[0] if found is not None else ""

    @property
    def url(self) -> str:
        return self.link.partition("?")[0].rstrip("/")

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(DEADLINE_S)
        os.close(self._ours)


@contextlib.contextmanager
def up_on_a_terminal(
    folder: Path, *options: str, home: Path | None = None, typed: bytes = b"", through: Sequence[str] = ()
) -> Iterator[Terminal]:
    """`typed` is what the person at it answers to what it asks first, `through` a command that starts it."""
    terminal = Terminal(folder, *options, home=home, typed=typed, through=through)
    try:
        yield terminal
    finally:
        terminal.close()


class Browser:
    """Asks the page as a browser does: its cookie with everything, its origin with what changes something."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._peer = Peer(url)
        self.cookie: str | None = None
        self.proof: str | None = None

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._peer.__exit__(None, None, None)

    def open(self, method: str, path: str, body: Any = None, **headers: str | None) -> Open:
        given: dict[str, str | None] = {"Cookie": self.cookie}
        if method == "POST":
            given |= {"Origin": self.url, "Sec-Fetch-Site": "same-origin", "X-Handrail-Proof": self.proof}
        peer = self._peer.at("/")
        peer.path = path  # with what stands after its question mark, and as it is written
        opened = peer.open(method, body, **{**given, **headers})
        if "set-cookie" in opened.headers:
            self.cookie = opened.headers["set-cookie"].partition(";")[0]
        if "#proof=" in opened.headers.get("location", ""):
            self.proof = opened.headers["location"].partition("#proof=")[2]
        return opened

    def status(self, method: str, path: str, body: Any = None, **headers: str | None) -> int:
        with self.open(method, path, body, **headers) as response:
            return response.status

    def get(self, path: str, **headers: str | None) -> Any:
        with self.open("GET", path, **headers) as response:
            assert response.status == 200, response.body()
            return response.json()

    def post(self, path: str, body: Any, **headers: str | None) -> tuple[int, Any]:
        with self.open("POST", path, body, **headers) as response:
            answer = msgspec.json.decode(response.body() or b"null")
        if isinstance(answer, dict) and "proof" in answer:  # signed in, by what was typed
            self.proof = answer["proof"]
        return response.status, answer

    def sign_in(self, link: str) -> int:
        """Follows a link; the status of its answer."""
        return self.status("GET", link.removeprefix(self.url))
