"""How every Python peer is put on HTTP: uvicorn as installed, without access log, on a free port that it announces."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    # asyncio switches Nagle's algorithm off only where the socket names its protocol, as uvicorn's own sockets do
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen(128)
    print(f"serving http://127.0.0.1:{bound.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none")
    uvicorn.Server(config).run(sockets=[bound])
