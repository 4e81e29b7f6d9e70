"""What a check found: whether it is well, and otherwise what helps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from handrail.outside.client_files import ClientFiles


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. Broken: something does not work until it is mended. Look: it works, and may not be
    what you want."""

    check: str
    level: Literal["ok", "look", "broken"]
    what: str
    fix: str = ""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked at."""

    project: Path
    home: Path
    environ: Mapping[str, str]
    files: ClientFiles
    now_ms: int
    timeout_s: float = 20.0
    """How long a server may take to answer."""


def well(check: str, what: str) -> Finding:
    return Finding(check, "ok", what)


def look(check: str, what: str, fix: str) -> Finding:
    return Finding(check, "look", what, fix)


def broken(check: str, what: str, fix: str) -> Finding:
    return Finding(check, "broken", what, fix)
