"""`handrail serve`: MCP on standard input and output, for a client that starts Handrail itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from handrail.protocol.stdio import serve_stdio
from handrail.surfaces.cli.options import common_options, place_of, settings_of, toolset_options
from handrail.wiring import assemble, build_server, stdio_limits


@click.command()
@toolset_options
@common_options
def serve(root: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ARG001 - the wire is JSON either way
    """Serve MCP on standard input and output.

    Standard output carries protocol lines and nothing else; logs go to standard error. The end of input, `shutdown` and
    SIGTERM end the process with 0.
    """
    place = place_of(root)
    handrail = assemble(place, settings_of(place, options))
    if handrail.selection.missing:
        missing = ", ".join(handrail.selection.missing)
        if handrail.settings.enable:
            click.echo(f"handrail: not in this version and left out: {missing}", err=True)
    sys.exit(serve_stdio(build_server(handrail), stdio_limits(handrail.settings)))
