"""How the command line prints: columns for people, JSON for programs. Colour only on terminals (click sees to it)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from handrail.protocol.wire import encode


def echo_json(value: Any, *, pretty: bool = False) -> None:
    data = encode(value)
    click.echo((msgspec.json.format(data, indent=2) if pretty else data).decode())


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one runs free."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header) - 1)]
    for number, row in enumerate((header, *rows)):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        line = "  ".join([*cells, row[-1]]).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 else line)
