"""`handrail serve`: MCP for a client that starts Handrail itself, or over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.kernel.late import late_module
from handrail.protocol.stdio import serve_stdio
from handrail.surfaces.cli.options import common_options, place_of, settings_of, toolset_options
from handrail.wiring import assemble, build_server, stdio_limits

if TYPE_CHECKING:
    from handrail.outside import token_files
    from handrail.surfaces.cli.begin import untrusted
    from handrail.surfaces.cli.serve import http
else:
    token_files = late_module("handrail.outside.token_files")
    untrusted = late_module("handrail.surfaces.cli.begin.untrusted")
    http = late_module("handrail.surfaces.cli.serve.http")


@click.command()
@click.option("--http", "address", metavar="HOST:PORT", help="Serve HTTP there instead of standard input and output.")
@click.option("--token", envvar="HANDRAIL_TOKEN", help="The bearer token of HTTP calls.  [default: ~/.handrail/token]")
@toolset_options
@common_options
def serve(address: str | None, token: str | None, root: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ARG001 - the wire is JSON either way
    """Serve MCP on standard input and output, or with --http over HTTP.

    Standard output carries only protocol messages; logs go to standard error. The process exits with 0 on end of input,
    `shutdown` or SIGTERM.
    """
    place = place_of(root)
    settings = settings_of(place, options)
    handrail = assemble(place, settings)
    if waiting := handrail.live.waiting():
        untrusted.tell_waiting(waiting)
    if address is not None:
        http.run_http(
            place,
            settings,
            address=address,
            token=token or token_files.agent_token(place.home),
            when_ready=lambda url: click.echo(f"handrail: serving {url}", err=True),
        )
    sys.exit(serve_stdio(build_server(handrail), stdio_limits(settings)))
