"""What a check found: whether it is well, and otherwise what helps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from handrail.outside.client_files import ClientFiles


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was checked. Broken: something does not work until it is fixed. Look: it works, but may not be
    what you want."""

    check: str
    level: Literal["ok", "look", "broken"]
    what: str
    fix: str = ""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What is examined."""

    project: Path
    home: Path
    environ: Mapping[str, str]
    files: ClientFiles
    now_ms: int
    starts_all: bool = False
    """Whether to start programs that a file of the project names, too: it may have come with the repository."""
    below: str = ""
    """The folder below the project's that this was asked in, if it was."""
    timeout_s: float = 20.0
    """How long a server may take to answer."""


def well(check: str, what: str) -> Finding:
    return Finding(check, "ok", what)


def run_checks(check: str, what: str, fix: str) -> Finding:
    return Finding(check, "look", what, fix)


def broken(check: str, what: str, fix: str) -> Finding:
    return Finding(check, "broken", what, fix)
