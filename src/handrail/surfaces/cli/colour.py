"""Whether colour is wanted, and text in colour. Small, since every command imports it. Click finds out, when printing,
whether there is a terminal to show it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click


def colour_wanted(environ: Mapping[str, str]) -> bool | None:
    """True or False if somebody said so; None for colour on terminals only. NO_COLOR wins."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    forced = any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return True if forced else None


def styled(text: str, **looks: Any) -> str:
    """A text in a click style, unless colour is unwanted."""
    return text if colour_wanted(os.environ) is False else click.style(text, **looks)
