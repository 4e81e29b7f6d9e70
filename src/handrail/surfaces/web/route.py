"""What the page can be asked: one record a route, and what a handler is given. No sockets; no table of routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from handrail.operation import Call

CHANNEL = "page"
"""How the ledger says that somebody did something here."""


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking."""

    name: str
    decides: bool
    """True for a person who signed in with a cookie of this page: only they change anything."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, taken apart."""

    visitor: Visitor
    path: Mapping[str, str] = {}
    """The parts of the address that the pattern names."""
    query: Mapping[str, str] = {}
    body: Any = None
    """What was posted, decoded."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One address. A handler runs on a worker thread and returns what `msgspec.json` can encode; a Refusal is told."""

    method: str
    pattern: str
    """Such as `/api/workflows/{workflow}/graph`."""
    handler: Callable[[Call, Asked], Any]
    stored: bool = True
    """True: the handler runs inside one unit of work (`call.work`). False: it looks at files or git as well, and opens
    units of its own with `call.ledger.run`, so that no unit is open while it looks."""


def read(pattern: str, handler: Callable[[Call, Asked], Any], *, stored: bool = True) -> Route:
    return Route(method="GET", pattern=pattern, handler=handler, stored=stored)


def write(pattern: str, handler: Callable[[Call, Asked], Any], *, stored: bool = True) -> Route:
    """One that changes something: only for who decides."""
    return Route(method="POST", pattern=pattern, handler=handler, stored=stored)
