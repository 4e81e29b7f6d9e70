"""The question a command asks before it does something: one way to ask, so that JSON never meets a prompt."""

from __future__ import annotations

import click

from handrail.kernel.errors import InvalidParams


def confirm(question: str, *, as_json: bool, look: str = "") -> None:
    """Returns only after a yes. Under --json it refuses instead: a program cannot answer, and its output must be JSON.
    `look` names a way to see what would be done."""
    if as_json:
        first = f", or {look} to look first" if look else ""
        raise InvalidParams("--json asks nothing", hint=f"add --yes to do it{first}")
    click.confirm(question, abort=True)
