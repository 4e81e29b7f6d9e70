"""One connection to PostgreSQL, and how statements travel over it. What they say is the caller's.

It speaks through the driver's own wrapper of libpq, a level below its cursors: those cost more than the server takes
to answer. Every statement with parameters is prepared once a connection; its parameters have no types of their own, so
the server takes those of the places they stand in, and one text is one plan. Statements that need no answer in between
travel together, and an end that nobody has to wait for is not waited for.
"""

from __future__ import annotations

import selectors
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import Int8Dumper

from handrail.store.postgres_positions import LOWEST

MOST_PREPARED = 256
Step = tuple[str, Sequence[Any]]
_Dumped = tuple[Sequence[Buffer | None] | None, Sequence[Format] | None]

_SETTINGS_ASKED = """
SELECT pg_backend_pid(), (SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()),
  current_schema()::text, current_setting('server_encoding')
"""
_END_BACKEND = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND backend_start::text = %s"
)
_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY, ExecStatus.PIPELINE_SYNC)


@lru_cache(maxsize=1024)
def _numbered(text: str) -> bytes:
    """A statement with the protocol's own holes: $1, $2 …"""
    first, *rest = text.split("%s")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))).encode()


class Session:
    """One connection, and who its server process is. Used by one thread at a time."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], settings: str) -> None:
        self.connection = connection
        self._libpq = connection.pgconn
        connection.adapters.register_dumper(int, Int8Dumper)  # one for every number
        self._adapting = Transformer(connection)
        self._prepared: dict[str, bytes] = {}
        self._numbers = count(1)
        self._owed = False
        self.sure = LOWEST
        """Up to where the feed is known to be sure for every look that begins on this connection: its server said so,
        and another need not."""
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._libpq.socket, selectors.EVENT_READ)
        self.do(settings)
        found = self.row(_SETTINGS_ASKED)
        assert found is not None
        self.pid, self.started, self.schema, self.encoding = found

    # -- asking -----------------------------------------------------------------------------------------------------

    def row(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row a statement gives."""
        rows = self.rows(text, parameters)
        return rows[0] if rows else None

    def rows(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if text not in self._prepared:
            return self.together((text, parameters))[0]
        self._come_to_rest()
        self._send(text, *self._dumped(parameters))
        return self._loaded(self._checked(self._answers())[-1])

    def do(self, text: str, parameters: Sequence[Any] = ()) -> None:
        """Runs a statement for its effect; without parameters also several, divided by semicolons."""
        if parameters:
            self.rows(text, parameters)
            return
        self._come_to_rest()
        self._libpq.send_query(text.encode())
        self._checked(self._answers())

    def together(self, *steps: Step) -> list[list[tuple[Any, ...]]]:
        """Several statements in one round trip, and the rows of each. The first that fails is the last that is
        done."""
        self._come_to_rest()
        if len(self._prepared) > MOST_PREPARED:
            self._prepared.clear()
            self.do("DEALLOCATE ALL")
        dumped = [self._dumped(parameters) for _, parameters in steps]
        sent: list[str | None] = []
        """Of each result to come, the statement that it tells to be prepared."""
        self._libpq.enter_pipeline_mode()
        for (text, _), values in zip(steps, dumped, strict=True):
            if text not in self._prepared:
                self._prepared[text] = b"handrail_%d" % next(self._numbers)
                self._libpq.send_prepare(self._prepared[text], _numbered(text))
                sent.append(text)
            self._send(text, *values)
            sent.append(None)
        self._libpq.pipeline_sync()
        results = self._answers(synced=True)
        for text_prepared, result in zip(sent, results, strict=False):
            if text_prepared is not None and result.status != ExecStatus.COMMAND_OK:
                del self._prepared[text_prepared]
        self._libpq.exit_pipeline_mode()
        self._checked(results)
        return [self._loaded(result) for told, result in zip(sent, results, strict=False) if told is None]

    def leave(self, text: str) -> None:
        """Runs a statement that nobody needs the answer of; the next one finds out if it was refused."""
        self._come_to_rest()
        self._libpq.send_query(text.encode())
        self._owed = True
        self._push()

    def note(self, position: int) -> int:
        """Takes note that the feed is sure up to a position, and tells the furthest that is known."""
        self.sure = max(self.sure, position)
        return self.sure

    # -- its state --------------------------------------------------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        return self.connection.closed

    @property
    def is_idle(self) -> bool:
        """Whether it is free for the next user: in no transaction, or about to have left one."""
        return self._owed or self._libpq.transaction_status == TransactionStatus.IDLE

    def end(self, other: Session) -> bool:
        """Ends the server process of a lost connection, if it is still there: what it had not done it never will."""
        return all(ended for (ended,) in self.rows(_END_BACKEND, (other.pid, other.started)))

    def close(self) -> None:
        self._ready.close()
        self.connection.close()

    # -- the protocol -----------------------------------------------------------------------------------------------

    def _dumped(self, parameters: Sequence[Any]) -> _Dumped:
        """Parameters as they travel. What cannot is refused here, before anything is sent."""
        if not parameters:
            return None, None
        values = self._adapting.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return values, self._adapting.formats

    def _send(self, text: str, values: Sequence[Buffer | None] | None, formats: Sequence[Format] | None) -> None:
        self._libpq.send_query_prepared(self._prepared[text], values, formats, Format.BINARY)

    def _push(self) -> None:
        """Sends what the driver holds. Reads meanwhile: the server may want to be heard before it takes more."""
        while self._libpq.flush():
            self._ready.modify(self._libpq.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            ready = self._ready.select()
            self._ready.modify(self._libpq.socket, selectors.EVENT_READ)
            if any(events & selectors.EVENT_READ for _, events in ready):
                self._libpq.consume_input()

    def _next_answer(self) -> PGresult | None:
        while self._libpq.is_busy():
            self._ready.select()
            self._libpq.consume_input()
        return self._libpq.get_result()

    def _answers(self, *, synced: bool = False) -> list[PGresult]:
        """All results of what was sent: up to the first end of one, or of all that travelled together."""
        self._push()
        results: list[PGresult] = []
        while not synced or not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            result = self._next_answer()
            if result is not None:
                results.append(result)
            elif not synced or self.is_lost:
                break
        return results

    def _come_to_rest(self) -> None:
        """Hears the answer that nobody waited for."""
        if self._owed:
            self._owed = False
            self._checked(self._answers())

    @staticmethod
    def _checked(results: list[PGresult]) -> list[PGresult]:
        for result in results:
            if result.status not in _DONE:
                error = errors.error_from_result(result)
                raise error if error.sqlstate else psycopg.OperationalError(str(error))  # no server said this
        return results

    def _loaded(self, result: PGresult) -> list[tuple[Any, ...]]:
        self._adapting.set_pgresult(result)
        return self._adapting.load_rows(0, result.ntuples, tuple)
