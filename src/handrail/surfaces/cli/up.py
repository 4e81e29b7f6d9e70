"""`handrail up`: what Handrail is, and the line to paste into each client."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from handrail import __version__
from handrail.protocol.wire import encode
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json


def command_path() -> str:
    """The absolute path of the `handrail` command in this environment: clients start servers without a shell's PATH."""
    return str(Path(sys.executable).parent / "handrail")


def client_lines(command: str) -> dict[str, str]:
    """What to paste where, for each client."""
    cursor = {"mcpServers": {"handrail": {"command": command, "args": ["serve"]}}}
    return {
        "Claude Code": f"claude mcp add handrail -- {command} serve",
        "Codex": f"codex mcp add handrail -- {command} serve",
        "Cursor": encode(cursor).decode(),
    }


@click.command()
@common_options
def up(root: Path | None, db: str | None, as_json: bool) -> None:  # noqa: ARG001 - every command takes these
    """Say what Handrail is and how to connect an agent."""
    lines = client_lines(command_path())
    if as_json:
        echo_json({"version": __version__, "clients": lines})
        return
    click.echo(f"Handrail {__version__} gives coding agents steps to hold on to: guides an agent follows step by step,")
    click.echo(
        "over MCP on standard input and output. Run one of these in your project, then ask your agent to use it:\n"
    )
    where = {"Claude Code": "in a shell", "Codex": "in a shell", "Cursor": "into .cursor/mcp.json"}
    for client, line in lines.items():
        click.echo(f"{click.style(client, bold=True)} ({where[client]})\n  {line}\n")
    click.echo("Then: handrail guide list · handrail tools · handrail --help")
