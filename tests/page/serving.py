"""A real `handrail up` for the tests of the page: on a terminal, the only place where it shows how to sign in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.process.page_peer import Terminal, up_on_a_terminal


class Served(NamedTuple):
    """Where the page is, and the link that signs in once."""

    url: str
    link: str
    terminal: Terminal


@contextmanager
def serving(project: Path, home: Path, *options: str) -> Iterator[Served]:
    """`handrail up` in a project until the block ends."""
    with up_on_a_terminal(project, "--set", "approvals=human", *options, home=home) as terminal:
        yield Served(f"{terminal.url}/", terminal.link, terminal)
