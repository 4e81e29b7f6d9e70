"""Serving HTTP from the command line: shared by `serve --http` and `up`. Loaded only by them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from handrail.http_wiring import MCP_PATH, build_endpoint, guard_of, parse_address
from handrail.kernel.errors import SettingInvalid
from handrail.kernel.late import late_module
from handrail.operation import HttpAddress
from handrail.protocol.http.serve import binding_problem, listening_socket, serve_http
from handrail.settings import Settings
from handrail.store_wiring import WorkPlace, check_store

if TYPE_CHECKING:
    from handrail import page_wiring
else:
    page_wiring = late_module("handrail.page_wiring")

NewCode = Callable[[float], str]
"""Makes a one-time code for the person who started the page, valid for the given number of seconds."""


def run_http(
    place: WorkPlace, settings: Settings, *, address: str, token: str, when_ready: Callable[[str], None]
) -> None:
    """Serves tools until told to stop, then ends the process. `when_ready` gets the address to give to clients. The
    caller must already have refused what cannot be served: here only a client would notice."""
    check_store(place, settings)
    bound, at = _bind(settings, address, token)
    endpoint = build_endpoint(place, settings, at, guard_of(settings, token, at.port))
    sys.exit(serve_http(endpoint, bound, when_ready=lambda: when_ready(_url(at))))


def run_page(
    place: WorkPlace,
    settings: Settings,
    *,
    address: str,
    token: str,
    owner: str,
    when_ready: Callable[[str, NewCode], None],
) -> None:
    """The same with the page beside the tools. `owner` signs in with the codes that `when_ready` may make."""
    check_store(place, settings)
    bound, at = _bind(settings, address, token)
    page = page_wiring.build_page(place, settings, at, guard_of(settings, token, at.port), owner=owner)
    sys.exit(serve_http(page, bound, when_ready=lambda: when_ready(_url(at), page.sign_in.new_code)))


def _bind(settings: Settings, address: str, token: str) -> tuple[socket, HttpAddress]:
    """The socket to serve on, and where it is."""
    host, port = parse_address(address)
    problem = binding_problem(host, guard_of(settings, token))
    if problem is not None:
        raise SettingInvalid(problem, hint="--token T and --set allow_hosts=NAME, or serve 127.0.0.1")
    try:
        bound = listening_socket(host, port)
    except OSError as taken:
        raise SettingInvalid(
            f"{address} cannot be used: {taken.strerror}", hint="another port: --http 127.0.0.1:0 takes a free one"
        ) from None
    return bound, HttpAddress(host, bound.getsockname()[1], MCP_PATH)


def _url(at: HttpAddress) -> str:
    return f"http://{at.host}:{at.port}{at.path}"
