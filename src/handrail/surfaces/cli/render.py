"""How the command line prints: columns for people, JSON for programs. Colour only on terminals (click sees to it).

The question a command asks before it does something: one way to ask, so that JSON never meets a prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from handrail.kernel.errors import InvalidParams
from handrail.protocol.wire import encode
from handrail.surfaces.cli.columns import columns, one_line, table_lines, wrapped


def echo_json(value: Any, *, pretty: bool = False) -> None:
    data = encode(value)
    click.echo((msgspec.json.format(data, indent=2) if pretty else data).decode())


def is_terminal() -> bool:
    """Whether the output goes to a person rather than a program."""
    return sys.stdout.isatty()


def echo_document(text: str) -> None:
    """A document as it is; on a terminal without what would steer it, colours of its own included."""
    click.echo(text.replace("\x1b", "\ufffd") if is_terminal() else text, nl=False, color=True)


def echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def echo_wrapped(text: str, indent: str = "") -> None:
    """A text in lines that fit the terminal. Otherwise on one line, so that a path stays whole."""
    echo_lines(wrapped(text, columns(), indent) if is_terminal() else [f"{indent}{one_line(text)}"])


def echo_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits the terminal. Otherwise every row is one line, for programs that search for it."""
    echo_lines(table_lines(header, rows, columns() if is_terminal() else None))


def confirm(question: str, *, as_json: bool, look: str = "") -> None:
    """Returns only after a yes. Under --json it refuses instead: a program cannot answer, and its output must be JSON.
    `look` names a way to see what would be done."""
    if as_json:
        first = f", or {look} to look first" if look else ""
        raise InvalidParams("--json asks nothing", hint=f"add --yes to do it{first}")
    click.confirm(question, abort=True)
