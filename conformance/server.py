"""`python -m conformance.server`: the fixture on standard input and output, or with `--http PORT` on loopback."""

from __future__ import annotations

import argparse
import sys

from conformance.fixture import fixture_server
from handrail.protocol.server import Server
from handrail.protocol.stdio import StdioLimits, serve_stdio

HOST = "127.0.0.1"
PATH = "/mcp"
MESSAGE_BYTES = 4 * 1024 * 1024


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.server", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on this port of loopback; 0: a free one")
    port: int | None = parser.parse_args().http
    server = fixture_server()
    return _over_stdio(server) if port is None else _over_http(server, port)


def _over_stdio(server: Server) -> int:
    limits = StdioLimits(
        message_bytes=MESSAGE_BYTES,
        message_depth=128,
        queued_bytes=2 * MESSAGE_BYTES,
        waiting_calls=32,
        grace_s=2.0,
    )
    return serve_stdio(server, limits)


def _over_http(server: Server, port: int) -> int:
    """Says where it listens, in one line on standard output, once it does."""
    from handrail.protocol.http.endpoint import HttpEndpoint, HttpLimits  # noqa: PLC0415 - stdio must not need it
    from handrail.protocol.http.guard import Guard  # noqa: PLC0415 - as above
    from handrail.protocol.http.serve import listening_socket, serve_http  # noqa: PLC0415 - as above

    bound = listening_socket(HOST, port)
    address = f"http://{HOST}:{bound.getsockname()[1]}{PATH}\n"

    def say_where() -> None:
        sys.stdout.write(address)
        sys.stdout.flush()

    endpoint = HttpEndpoint(
        lambda path: server if path == PATH else None, guard=Guard(), limits=HttpLimits(body_bytes=MESSAGE_BYTES)
    )
    return serve_http(endpoint, bound, when_ready=say_where)


if __name__ == "__main__":
    sys.exit(main())
