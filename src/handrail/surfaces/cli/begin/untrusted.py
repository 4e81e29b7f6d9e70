"""What of a project's own file is not followed because nobody here has trusted it, in words. The command that shows and
trusts it is in `trust.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from handrail.kernel.errors import SettingInvalid, SettingNotTrusted
from handrail.settings import CONFIG_FILE
from handrail.settings_in_force import file_at
from handrail.strictness import Waiting, waiting_text
from handrail.wiring import WorkPlace

HOW = "`handrail trust` shows what it says and asks you once"


def waiting_names(place: WorkPlace) -> list[str]:
    """The settings that wait; none if the file cannot be read, which others report."""
    try:
        return [one.name for one in file_at(place.project, place.home).waiting]
    except SettingInvalid:
        return []


def waiting_line(names: Sequence[str]) -> str:
    return f"{CONFIG_FILE} is not followed in what nobody here has trusted: {', '.join(names)}. {HOW}."


def tell_waiting(waiting: Sequence[Waiting]) -> None:
    """Says so, if anything waits, in the log of a server."""
    if waiting:
        click.echo(f"handrail: {waiting_line([one.name for one in waiting])}", err=True)


def check_address_trusted(
    waiting: Sequence[Waiting], address: str | None, options: Mapping[str, Any], environ: Mapping[str, str]
) -> None:
    """Refuses to serve at an address that only the project's file names and nobody trusted. Serving at another one
    instead would leave clients without a server, and nobody would know why."""
    own = {pair.partition("=")[0].strip() for pair in options.get("settings", ())}
    named = address is not None or "http" in own or "HANDRAIL_HTTP" in environ
    for one in waiting:
        if one.name == "http" and not named:
            raise SettingNotTrusted(
                f"{CONFIG_FILE} says {waiting_text(one)}, and nobody trusted that on this machine",
                hint=f"{HOW}; or name the address yourself: --http HOST:PORT",
            )
    tell_waiting([one for one in waiting if one.name != "http"])
