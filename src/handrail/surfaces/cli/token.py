"""`handrail token …`: a token for each person or agent that calls over HTTP. Works on the store, with or without a
server.

A token's text is printed when it is made and never again; the store has only a hash of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.token import RIGHTS, Token
from handrail.domain.crew.tokens import DECIDE, DEFAULT_RIGHTS, checked_rights, issue, listed, meant
from handrail.domain.crew.tokens import revoke as take_back
from handrail.kernel.errors import NotAllowed
from handrail.kernel.records import UnitOfWork
from handrail.operation import ResultT
from handrail.outside.revocations import note_revocation
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of, sits_at_terminal
from handrail.surfaces.cli.render import echo_json, echo_table
from handrail.wiring import Handrail, assemble, looking_ledger


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that people and agents call with over HTTP."""


@token.command()
@click.argument("name")
@click.option(
    "--rights",
    default=",".join(DEFAULT_RIGHTS),
    show_default=True,
    metavar=",".join(RIGHTS),
    help="read: look. write: change what agents change. decide: sign in to the page.",
)
@click.option("--agent", "agent_id", metavar="AGENT_ID", help="The agent whose calls it proves to be its own.")
@common_options
def create(name: str, rights: str, agent_id: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Make a token for NAME, a person or an agent. It is shown this once."""
    given = checked_rights(right.strip() for right in rights.split(","))
    if DECIDE in given and not sits_at_terminal():
        raise NotAllowed(
            "who has the right to decide approves work in a person's name, so only a person makes such a token, at a "
            "terminal",
            hint="run it yourself in a terminal of your own",
        )
    handrail = _handrail(root, options)
    secret = handrail.call.new_secret()
    made = _run(handrail, lambda unit: issue(unit, name, given, secret, agent_id=agent_id))
    if as_json:
        echo_json({**_document(made.token), "token": made.text})
        return
    kept = made.token
    about = f"{kept.id} for {kept.name}: {', '.join(kept.rights)}"
    click.echo(f"{about}, as agent {kept.agent_id}" if kept.agent_id else about)
    click.echo(f"\n  {click.style(made.text, bold=True)}\n")
    click.echo(f"It is shown only now. {_use(kept)}")


@token.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List every token, also those that were revoked. No secrets: nobody has them but their owners."""
    place = place_of(root)
    found = looking_ledger(place, settings_of(place, options)).run(person(), listed)
    if as_json:
        echo_json({"tokens": [_document(one) for one in found]})
    elif not found:
        click.echo("There is no token yet: handrail token create NAME makes one.")
    else:
        rows = [
            (
                one.id,
                one_line(one.name),
                ",".join(one.rights),
                one.agent_id or "-",
                _time(one.created_at),
                _time(one.revoked_at) if one.revoked_at is not None else "-",
            )
            for one in found
        ]
        echo_table(("id", "name", "rights", "agent", "made (UTC)", "revoked (UTC)"), rows)


@token.command()
@click.argument("which", metavar="ID|NAME")
@common_options
def revoke(which: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Take a token back: at once for servers on this machine, within 2 seconds elsewhere."""
    wanted = which.encode(errors="replace").decode()

    def work(unit: UnitOfWork) -> tuple[Token, Token]:
        before = meant(unit, wanted)
        return before, take_back(unit, before)

    before, gone = _run(_handrail(root, options), work)
    note_revocation(place_of(root).home, gone.id)
    if as_json:
        echo_json(_document(gone))
    elif before.revoked_at is not None:
        click.echo(f"{gone.name} ({gone.id}) was revoked before, {_time(before.revoked_at)} UTC")
    else:
        click.echo(f"revoked {gone.name} ({gone.id}): refused from now on, on other machines within 2 seconds")


def _use(kept: Token) -> str:
    if "read" not in kept.rights:
        return "It signs its owner in to the page; tools are called with another."
    return "Clients send it as the header Authorization: Bearer TOKEN; `handrail up` prints what to paste where."


def _handrail(root: Path | None, options: dict[str, Any]) -> Handrail:
    place = place_of(root)
    return assemble(place, settings_of(place, options))


def _run(handrail: Handrail, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
    return handrail.ledger.run(person(), work)


def _document(one: Token) -> dict[str, Any]:
    """A token as programs see it: all but the hash of its secret."""
    shown = ("id", "name", "rights", "agent_id", "created_at", "revoked_at")
    return {field: getattr(one, field) for field in shown}


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
