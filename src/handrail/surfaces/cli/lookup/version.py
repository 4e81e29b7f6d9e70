"""`handrail version`: which Handrail this is, and with --json which Python and protocol revisions."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import click

from handrail import __version__
from handrail.protocol.revisions import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json


@click.command()
@common_options
def version(root: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ARG001 - every command takes these
    """Print the version; with --json also Python's and the protocol revisions."""
    if as_json:
        revisions = [*HANDSHAKE_REVISIONS, *STATELESS_REVISIONS]
        echo_json({"handrail": __version__, "python": platform.python_version(), "mcp": revisions})
    else:
        click.echo(f"handrail {__version__}")
