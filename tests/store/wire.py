"""A wire between a store and its server that can be cut: before the server hears a request, or before it is heard
answering."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

from psycopg.conninfo import conninfo_to_dict

QUESTION_LOST = "question"
ANSWER_LOST = "answer"


class Counted:
    """Counts the messages of some types in one direction of a connection."""

    def __init__(self, types: bytes, *, greets: bool = False) -> None:
        self._types = types
        self._type_bytes = 0 if greets else 1  # who opens a connection greets with a message that has no type
        self._rest = b""
        self.count = 0

    def add(self, sent: bytes) -> int:
        """How many of them came to an end with this."""
        before, self._rest = self.count, self._rest + sent
        while len(self._rest) >= self._type_bytes + 4:
            end = self._type_bytes + int.from_bytes(self._rest[self._type_bytes : self._type_bytes + 4])
            if len(self._rest) < end:
                break
            self.count += self._rest[0] in self._types if self._type_bytes else 0
            self._rest, self._type_bytes = self._rest[end:], 1
        return self.count - before


class Wire:
    """Listens on an address of its own and passes everything on, until it is told to cut."""

    def __init__(self, address: str) -> None:
        self._parameters = conninfo_to_dict(address)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._port = self._listening.getsockname()[1]
        self._cut: str | None = None
        self.cuts = 0
        self._dead = False
        self._for_good = False
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        options = str(self._parameters.get("options", "")).replace("=", "%3D").replace(" ", "%20")
        user, database = self._parameters.get("user", "postgres"), self._parameters.get("dbname", "postgres")
        return (
            f"postgresql://{user}@127.0.0.1:{self._port}/{database}"
            f"?options={options}&sslmode=disable&gssencmode=disable"
        )

    def cut_next(self, what: str, *, for_good: bool = False) -> None:
        """The next request is lost, or its answer is. With `for_good` nothing gets through afterwards. A transaction's
        mere begin or end is no request."""
        self._cut = what
        self._for_good = for_good

    def drop(self) -> None:
        """Everybody on the wire is cut off at once, whatever the server is doing for them."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._dead = True
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._dead:
                    client.close()
                    continue
                threading.Thread(target=self._pass_on, args=(client, self._server()), daemon=True).start()

    def _server(self) -> socket.socket:
        host, port = str(self._parameters["host"]), int(self._parameters.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        self._ends += (client, server)
        requests, commands, answers = Counted(b"S", greets=True), Counted(b"SQ", greets=True), Counted(b"Z")
        with client, server, selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
            ready.register(client, selectors.EVENT_READ)
            ready.register(server, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    sent = source.recv(65536)
                    if not sent:
                        return
                    if source is server:
                        answers.add(sent)
                        client.sendall(sent)
                        continue
                    commands.add(sent)
                    cut = self._cut if requests.add(sent) else None
                    if cut is not None:
                        self._cut = None
                        self._dead = self._for_good
                    if cut != QUESTION_LOST:
                        server.sendall(sent)
                    while cut == ANSWER_LOST and answers.count <= commands.count:  # the greeting is answered too
                        heard = server.recv(65536)  # when it has answered, it has done it
                        assert heard, "the server ended before it answered"
                        answers.add(heard)
                    if cut is not None:
                        self.cuts += 1
                        if self._dead:
                            self.drop()
                        return


@contextlib.contextmanager
def wire_to(address: str) -> Iterator[Wire]:
    wire = Wire(address)
    try:
        yield wire
    finally:
        wire.close()
