"""How many connections there may be of each kind, and which one makes room for the next. Counts and chooses; the
protocol class in `serve.py` says what happens on a connection and cuts the one that is chosen.

A stranger is a connection on which nobody has yet shown a token or a cookie that is accepted. Strangers take each
other's places, the silent ones first: so they cannot keep out anybody who comes with a token, however many they are.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Protocol

if sys.platform != "win32":
    import resource

STRANGERS = 512
"""More than a crowd of clients that all connect at once and have not said anything yet."""
DESCRIPTORS = 8192
"""How many open files a server asks the system for. Far above 1,024, the usual number, with which a few hundred
connections leave nothing to open a store or start git with."""
RESERVED = 256
"""Descriptors that are not for connections: the store, git, checks, static files."""
HEADS_BYTES = 16 * 1024 * 1024
"""What all half-sent heads may take together."""
WELCOME = "welcome"


class Cuttable(Protocol):
    """A connection that can be cut."""

    def give_way(self) -> None: ...


class State(IntEnum):
    """What a connection is doing, in the order in which connections make room."""

    SILENT = 0
    """A stranger who has sent no complete head yet."""
    STRANGER_IDLE = 1
    """A stranger who was answered."""
    STRANGER_ASKING = 2
    """A stranger who is being answered: they want the page's files, or their token is being looked up."""
    IDLE = 3
    """Somebody known, between two requests."""
    ASKING = 4
    """Somebody known who is being answered, or listens."""


class HttpConnections:
    """The connections of one server. All calls come from its event loop."""

    def __init__(self, most: int, most_strangers: int = STRANGERS) -> None:
        self._most = most
        self._most_strangers = min(most_strangers, max(1, most // 2))
        self._by_state: dict[State, dict[Cuttable, int]] = {state: {} for state in State}
        """The longest in each state is first; with how many bytes of a head it has sent."""
        self._state: dict[Cuttable, State] = {}
        self._heads = 0

    def open(self, connection: Cuttable) -> None:
        """Takes a new connection, for which others may have to make room."""
        self._put(connection, State.SILENT)
        if self.strangers > self._most_strangers or len(self._state) > self._most:
            self._cut(self._spared_best(connection))

    def add_to_head(self, connection: Cuttable, size: int) -> None:
        """Counts what was sent of a head that is not complete."""
        state = self._state.get(connection)
        if state is None:
            return
        self._by_state[state][connection] += size
        self._heads += size
        while self._heads > HEADS_BYTES:
            self._cut(self._longest_head())

    def ask(self, connection: Cuttable) -> None:
        """A head is complete, and is being answered."""
        if connection in self._state:
            self._put(connection, State.ASKING if self._is_known(connection) else State.STRANGER_ASKING)

    def welcome(self, connection: Cuttable) -> None:
        """Whoever asks has shown who they are."""
        if connection in self._state:
            self._put(connection, State.ASKING)

    def rest(self, connection: Cuttable) -> None:
        """The request was answered."""
        if connection in self._state:
            self._put(connection, State.IDLE if self._is_known(connection) else State.STRANGER_IDLE)

    def close(self, connection: Cuttable) -> None:
        state = self._state.pop(connection, None)
        if state is not None:
            self._heads -= self._by_state[state].pop(connection)

    @property
    def strangers(self) -> int:
        return sum(len(self._by_state[state]) for state in State if state < State.IDLE)

    def count(self, state: State) -> int:
        return len(self._by_state[state])

    def _is_known(self, connection: Cuttable) -> bool:
        return self._state[connection] >= State.IDLE

    def _put(self, connection: Cuttable, state: State) -> None:
        self.close(connection)
        self._state[connection] = state
        self._by_state[state][connection] = 0

    def _spared_best(self, new: Cuttable) -> Cuttable:
        """The connection that makes room for a new one: the longest in the first state that has any. Somebody known who
        is being answered is served to the end; then it is the new one that goes."""
        waiting = (one for state in State if state < State.ASKING for one in self._by_state[state] if one is not new)
        return next(waiting, new)

    def _longest_head(self) -> Cuttable:
        heads = ((size, connection) for sent in self._by_state.values() for connection, size in sent.items())
        return max(heads, key=lambda head: head[0])[1]

    def _cut(self, connection: Cuttable) -> None:
        self.close(connection)
        connection.give_way()


def welcome(scope: Mapping[str, Any]) -> None:
    """Tells the connection of a request that whoever asks has shown who they are."""
    said: Callable[[], None] | None = (scope.get("state") or {}).get(WELCOME)
    if said is not None:
        said()


def room_for_connections() -> int:
    """How many connections this process has descriptors for, after asking the system for more."""
    if sys.platform == "win32":
        return DESCRIPTORS - RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # then it is what it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    limit = DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, DESCRIPTORS)
    return max(limit - RESERVED, limit // 2)
