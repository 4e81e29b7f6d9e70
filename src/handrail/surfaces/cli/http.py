"""Serving HTTP from the command line: shared by `serve --http` and `up`. Loaded only by them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from handrail.http_wiring import MCP_PATH, build_endpoint, guard_of, parse_address
from handrail.kernel.errors import SettingInvalid
from handrail.operation import HttpAddress
from handrail.protocol.http.running import binding_problem, listening_socket, serve_http
from handrail.settings import Settings
from handrail.wiring import Place


def run_http(place: Place, settings: Settings, *, address: str, token: str, when_ready: Callable[[str], None]) -> None:
    """Serves until told to end, then ends the process. `when_ready` gets the address to give to clients. The caller has
    refused what cannot be served: here only a client would meet it."""
    host, port = parse_address(address)
    guard = guard_of(settings, token)
    problem = binding_problem(host, guard)
    if problem is not None:
        raise SettingInvalid(problem, hint="--token T and --set allow_hosts=NAME, or serve 127.0.0.1")
    try:
        bound = listening_socket(host, port)
    except OSError as taken:
        raise SettingInvalid(
            f"{address} cannot be used: {taken.strerror}", hint="another port: --http 127.0.0.1:0 takes a free one"
        ) from None
    port = bound.getsockname()[1]
    endpoint = build_endpoint(place, settings, HttpAddress(host, port, MCP_PATH), guard)
    url = f"http://{host}:{port}{MCP_PATH}"
    sys.exit(serve_http(endpoint, bound, when_ready=lambda: when_ready(url)))
