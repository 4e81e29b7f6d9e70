"""The addresses of everything that can be read and watched: six kinds of `sc://`, from text to parts and back. Pure.

What is at an address, if anything, is not known here. An id is percent-encoded where it must be, so that every id has
exactly one address; other spellings of the same address are understood.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from handrail.kernel.errors import ResourceNotFound

Kind = Literal["graph", "graph_version", "snapshot", "run_events", "child_logs", "blackboard_namespace"]

SCHEME = "sc://"
GRAPHS = SCHEME + "graphs/"
SNAPSHOTS = SCHEME + "snapshots/"
RUNS = SCHEME + "runs/"
CHILDREN = SCHEME + "children/"
BOARDS = SCHEME + "blackboard/"
_EVENTS, _LOGS = "/events", "/logs"

FORMS: dict[Kind, str] = {
    "graph": f"{GRAPHS}<id>",
    "graph_version": f"{GRAPHS}<id>@v<n>",
    "snapshot": f"{SNAPSHOTS}<graph>/<tx>",
    "run_events": f"{RUNS}<id>{_EVENTS}",
    "child_logs": f"{CHILDREN}<id>{_LOGS}",
    "blackboard_namespace": f"{BOARDS}<namespace>",
}
"""The form of each kind."""
LONGEST = 2000
"""The most characters in an address."""
LONGEST_ID = 200
_LAST_VERSION = 2**53
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""Characters that need no encoding in an address."""


class Address(NamedTuple):
    """A parsed address."""

    kind: Kind
    id: str
    """The id of the graph, run or child; the name of a board."""
    version: int = 0
    """The number, for a version of a graph."""
    tx: str = ""
    """The transaction, for a snapshot."""

    @property
    def uri(self) -> str:
        """The canonical text of this address."""
        name = quote(self.id, safe="")
        match self.kind:
            case "graph":
                return GRAPHS + name
            case "graph_version":
                return f"{GRAPHS}{name}@v{self.version}"
            case "snapshot":
                return f"{SNAPSHOTS}{name}/{quote(self.tx, safe='')}"
            case "run_events":
                return f"{RUNS}{name}{_EVENTS}"
            case "child_logs":
                return f"{CHILDREN}{name}{_LOGS}"
            case "blackboard_namespace":
                return BOARDS + name


def graph(graph_id: str) -> Address:
    return Address("graph", graph_id)


def graph_version(graph_id: str, version: int) -> Address:
    return Address("graph_version", graph_id, version)


def snapshot(graph_id: str, tx: str) -> Address:
    return Address("snapshot", graph_id, tx=tx)


def run_events(run_id: str) -> Address:
    return Address("run_events", run_id)


def child_logs(child_id: str) -> Address:
    return Address("child_logs", child_id)


def board(namespace: str) -> Address:
    return Address("blackboard_namespace", namespace)


def parse(uri: str) -> Address:
    """Parses an address, or refuses and shows the valid forms."""
    found = _parsed(uri) if len(uri) <= LONGEST else None
    if found is None:
        raise ResourceNotFound(
            f"{uri[:LONGEST_ID]} is no address", hint=f"addresses are {', '.join(FORMS.values())}", uri=uri[:LONGEST_ID]
        )
    return found


def begins_with(prefix: str, base: str) -> str | None:
    """The prefix that an id must have for the address `base` + id to start with `prefix`; None if no id can."""
    if base.startswith(prefix):
        return ""
    if not prefix.startswith(base):
        return None
    rest = prefix.removeprefix(base)
    end = next((place for place, letter in enumerate(rest) if letter not in _PLAIN), len(rest))
    return rest[:end]


def _parsed(uri: str) -> Address | None:
    if uri.startswith(GRAPHS):
        return _parsed_graph(uri.removeprefix(GRAPHS))
    if uri.startswith(SNAPSHOTS):
        name, _, rest = uri.removeprefix(SNAPSHOTS).partition("/")
        owner, tx = _id(name), _id(rest)
        return snapshot(owner, tx) if owner is not None and tx is not None else None
    if uri.startswith(BOARDS):
        namespace = _id(uri.removeprefix(BOARDS))
        return board(namespace) if namespace is not None else None
    for base, end, made in ((RUNS, _EVENTS, run_events), (CHILDREN, _LOGS, child_logs)):
        if uri.startswith(base) and uri.endswith(end) and len(uri) >= len(base) + len(end):
            owner = _id(uri.removeprefix(base).removesuffix(end))
            return made(owner) if owner is not None else None
    return None


def _parsed_graph(text: str) -> Address | None:
    name, at, version = text.rpartition("@")
    owner = _id(name if at else text)
    if owner is None:
        return None
    if not at:
        return graph(owner)
    digits = version.removeprefix("v")
    if not version.startswith("v") or not (digits.isascii() and digits.isdigit()) or len(digits) > 16:
        return None
    return graph_version(owner, int(digits)) if 1 <= int(digits) <= _LAST_VERSION else None


def _id(text: str) -> str | None:
    """The id that a part of an address encodes; None if it is invalid."""
    if not text or "/" in text:
        return None
    try:
        name = unquote(text, errors="strict")
        name.encode()
    except UnicodeError:
        return None
    return name if len(name) <= LONGEST_ID and "\0" not in name else None
