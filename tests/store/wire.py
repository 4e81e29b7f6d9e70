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
        """The next request is lost, or its answer is. With `for_good` nothing gets through afterwards."""
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
                    cut = self._cut if source is client else None
                    if cut is not None:
                        self._cut = None
                        self._dead = self._for_good
                    if cut != QUESTION_LOST:
                        (server if source is client else client).sendall(sent)
                    if cut == ANSWER_LOST:
                        server.recv(65536)  # it has answered, so it has done it
                    if cut is not None:
                        self.cuts += 1
                        return


@contextlib.contextmanager
def wire_to(address: str) -> Iterator[Wire]:
    wire = Wire(address)
    try:
        yield wire
    finally:
        wire.close()
