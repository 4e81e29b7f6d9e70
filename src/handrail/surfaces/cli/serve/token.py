"""`handrail token …`: a token for each person or agent that calls over HTTP. Works on the store, with or without a
server.

A token's text is printed when it is created and never again; the store has only a hash of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.token import RIGHTS, Token
from handrail.domain.crew.tokens import DECIDE, DEFAULT_RIGHTS, Issued, checked_rights, issue, listed, meant
from handrail.domain.crew.tokens import revoke as take_back
from handrail.kernel.errors import AgentNotFound, NotAllowed, NotFound
from handrail.kernel.records import UnitOfWork
from handrail.operation import ResultT
from handrail.outside.token_files import note_revocation
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.columns import columns, moment, one_line, wrapped
from handrail.surfaces.cli.options import (
    Commands,
    common_options,
    person,
    place_of,
    settings_of,
    sits_at_terminal,
    typed_text,
)
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table
from handrail.surfaces.cli.together.agents import unknown_agent
from handrail.wiring import Handrail, assemble, looking_ledger


@click.group(cls=Commands)
def token() -> None:
    """Create, list and revoke the tokens that people and agents use over HTTP."""


@token.command()
@click.argument("name")
@click.option(
    "--rights",
    default=",".join(DEFAULT_RIGHTS),
    show_default=True,
    metavar=",".join(RIGHTS),
    help="read: look. write: change what agents can change. decide: sign in to the page.",
)
@click.option(
    "--agent",
    "agent_id",
    metavar="AGENT_ID",
    shell_complete=completions.agent_ids,
    help="The agent that this token identifies.",
)
@common_options
def create(name: str, rights: str, agent_id: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Create a token for NAME, a person or an agent.

    It is shown only once.
    """
    given = checked_rights(right.strip() for right in rights.split(","))
    if DECIDE in given and not sits_at_terminal():
        raise NotAllowed(
            "who has the right to decide approves work in a person's name, so only a person makes such a token, at a "
            "terminal",
            hint="run it yourself in a terminal of your own",
        )
    handrail = _handrail(root, options)
    secret = handrail.call.world.new_secret()
    made = _run(handrail, lambda unit: _issue(unit, name, given, secret, agent_id))
    if as_json:
        echo_json({**_document(made.token), "token": made.text})
        return
    kept = made.token
    about = f"{kept.id} for {one_line(kept.name)}: {', '.join(kept.rights)}"
    click.echo(f"{about}, as agent {kept.agent_id}" if kept.agent_id else about)
    click.echo(f"\n  {click.style(made.text, bold=True)}\n")
    click.echo(f"It is shown only now. {_how_to_use(kept)}")


@token.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List every token, including revoked ones.

    Secrets are not shown: only their owners have them.
    """
    place = place_of(root)
    ledger = looking_ledger(place, settings_of(place, options))
    found, now = ledger.run(person(), lambda unit: (listed(unit), unit.now_ms()))
    if as_json:
        echo_json({"tokens": [_document(one) for one in found]})
    elif not found:
        echo_lines(wrapped("There is no token yet: `handrail token create NAME` makes one.", columns()))
    else:
        rows = [
            (
                one.id,
                one.name,
                ",".join(one.rights),
                one.agent_id or "-",
                moment(one.created_at, now),
                moment(one.revoked_at, now) if one.revoked_at is not None else "-",
            )
            for one in found
        ]
        echo_table(("id", "name", "rights", "agent", "made", "revoked"), rows)


@token.command()
@click.argument("which", metavar="ID|NAME", shell_complete=completions.tokens)
@common_options
def revoke(which: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Revoke a token.

    Takes effect at once for servers on this machine, within 2 seconds elsewhere.
    """
    wanted = typed_text(which)

    def work(unit: UnitOfWork) -> tuple[Token, Token, int]:
        before = _token_meant(unit, wanted)
        return before, take_back(unit, before), unit.now_ms()

    before, gone, now = _run(_handrail(root, options), work)
    note_revocation(place_of(root).home, gone.id)
    if as_json:
        echo_json(_document(gone))
    elif before.revoked_at is not None:
        click.echo(f"{one_line(gone.name)} ({gone.id}) was revoked before, {moment(before.revoked_at, now)}")
    else:
        name = one_line(gone.name)
        click.echo(f"revoked {name} ({gone.id}): refused from now on, on other machines within 2 seconds")


def _how_to_use(kept: Token) -> str:
    if "read" not in kept.rights:
        return "It signs its owner in to the page; tools are called with another."
    return "Clients send it as the header Authorization: Bearer TOKEN; `handrail up` prints what to paste where."


def _handrail(root: Path | None, options: dict[str, Any]) -> Handrail:
    place = place_of(root)
    return assemble(place, settings_of(place, options))


def _run(handrail: Handrail, work: Callable[[UnitOfWork], ResultT]) -> ResultT:
    return handrail.ledger.run(person(), work)


def _document(one: Token) -> dict[str, Any]:
    """A token for programs: everything but the hash of its secret."""
    shown = ("id", "name", "rights", "agent_id", "created_at", "revoked_at")
    return {field: getattr(one, field) for field in shown}


def _issue(unit: UnitOfWork, name: str, rights: Iterable[str], secret: str, agent_id: str | None) -> Issued:
    try:
        return issue(unit, name, rights, secret, agent_id=agent_id)
    except AgentNotFound as unknown:
        raise unknown_agent(unit, unknown) from None


def _token_meant(unit: UnitOfWork, wanted: str) -> Token:
    """The token that a person means. If none is valid there is nothing to choose from, and the refusal says so."""
    try:
        return meant(unit, wanted)
    except NotFound as unknown:
        if any(one.revoked_at is None for one in listed(unit)):
            raise
        hint = "no token works at present; `handrail token create NAME` makes one"
        raise NotFound(unknown.message, hint=hint, **unknown.details) from None
