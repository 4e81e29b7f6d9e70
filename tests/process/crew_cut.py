"""A wire between a server and its PostgreSQL that is cut for a while and comes back: everybody on it is thrown off and
nobody gets through, or everything sent is held back and arrives late, as on a network that lost its way."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.store.wire import Wire

THROWN_OFF = "thrown off"
HELD_BACK = "held back"
WAYS = (THROWN_OFF, HELD_BACK)


class CuttingWire(Wire):
    """Passes everything on while it is whole."""

    def __init__(self, address: str) -> None:
        self._whole = threading.Event()
        self._whole.set()
        super().__init__(address)

    def cut(self, way: str) -> None:
        self._whole.clear()
        self.cuts += 1
        if way == THROWN_OFF:
            self._dead = True
            self.drop()

    def rejoin(self) -> None:
        self._dead = False
        self._whole.set()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        self._ends += (client, server)
        with client, server:
            back = threading.Thread(target=self._carry, args=(server, client), daemon=True)
            back.start()
            self._carry(client, server)
            back.join()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while sent := source.recv(65536):
                self._whole.wait()
                sink.sendall(sent)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def cutting_wire_to(address: str) -> Iterator[CuttingWire]:
    wire = CuttingWire(address)
    try:
        yield wire
    finally:
        wire.rejoin()
        wire.drop()
        wire.close()
