"""One connection to PostgreSQL, and how statements travel over it. What they say is up to the caller.

It uses the driver's own wrapper of libpq, a level below its cursors, which cost more time than the server takes to
answer. Every statement with parameters is prepared once per connection; its parameters are untyped, so the server
infers their types from context, and one text is one plan. Statements that need no answer in between are sent together,
and the end of a transaction is not waited for if nobody needs to.

How far PostgreSQL's feed is settled: below that position nothing can appear any more.

If every commit took a number from a counter, all commits would queue for it until each had reached the disk. A sequence
avoids that, but then a number can appear after a follower has passed it, and is missed. So a position is the
transaction's own number, shifted, plus the event's place in the transaction: it grows, and never repeats. A follower
reads only below the oldest transaction that is still writing events, so nothing can appear behind it. The price:
positions have gaps, and a slow commit keeps later ones out of the feed until it ends; streams wait for nobody.
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

from handrail.store.postgres_writes import PLACE_BITS

LOWEST, HIGHEST = -(2**62), 2**62
"""Nothing is settled, and everything is."""

SETTLED = f"""
WITH locks AS MATERIALIZED (
  SELECT locktype, database, relation, mode, virtualtransaction, transactionid::text::bigint AS number
  FROM pg_locks WHERE granted AND locktype IN ('relation', 'transactionid')
), elsewhere AS MATERIALIZED (
  SELECT theirs.number FROM locks theirs WHERE theirs.locktype = 'transactionid' AND theirs.mode = 'ExclusiveLock'
    AND NOT EXISTS (
      SELECT 1 FROM locks held WHERE held.virtualtransaction = theirs.virtualtransaction
        AND held.locktype = 'relation' AND held.mode = 'RowExclusiveLock' AND held.relation = 'event'::regclass
        AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
), writing AS (
  SELECT min(number) AS oldest FROM (SELECT pg_snapshot_xip(pg_current_snapshot())::text::bigint AS number) AS open
  WHERE CASE WHEN open.number & 4294967295 IN (SELECT elsewhere.number FROM elsewhere)
    THEN pg_xact_status(open.number::text::xid8) <> 'in progress' ELSE true END
)
SELECT position + (coalesce(oldest, (CASE WHEN pg_is_in_recovery() THEN pg_snapshot_xmin(pg_current_snapshot())
  ELSE pg_snapshot_xmax(pg_current_snapshot()) END)::text::bigint) << {PLACE_BITS}),
  position + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint << {PLACE_BITS})
FROM counter, writing WHERE one = 1
"""  # noqa: S608 - our own names
"""The position of the oldest transaction that may write events and whose outcome this statement's snapshot does not
show; and the position of the oldest transaction of all. Both hold for that snapshot and for every later one of the same
server.

A writer of events holds the table's lock before it gets a number, so an open number whose holder is seen without that
lock writes none. A number whose holder is not seen may be anybody's: the server hands out numbers a moment before it
shows whose they are. And a transaction that ends releases its locks one by one, so only one that is still in progress
after the locks were read had all of them at that time. A standby shows neither, so there every transaction counts.
"""


def sure(bound: str, position: str = "position") -> str:
    """A condition on positions: below the bound found earlier, or below every transaction that was open on the server
    when the view began, which costs nothing to know."""
    return (
        f"{position} < greatest({bound}, (SELECT position + (pg_snapshot_xmin(pg_current_snapshot())::text::bigint "  # noqa: S608 - our own names
        f"<< {PLACE_BITS}) FROM counter WHERE one = 1))"
    )


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
_LAST_WORDS = ("FATAL", "PANIC")
_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY, ExecStatus.PIPELINE_SYNC)


@lru_cache(maxsize=1024)
def _with_placeholders(text: str) -> bytes:
    """A statement with the protocol's own placeholders: $1, $2 …"""
    first, *rest = text.split("%s")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))).encode()


class PostgresSession:
    """One connection, and the identity of its server process. Used by one thread at a time."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], settings: str) -> None:
        self.connection = connection
        self._libpq = connection.pgconn
        connection.adapters.register_dumper(int, Int8Dumper)  # one type for every integer
        self._adapting = Transformer(connection)
        self._prepared: dict[str, bytes] = {}
        self._numbers = count(1)
        self._owed = False
        self.sure = LOWEST
        """The position up to which the feed is known to be settled for every read that begins on this connection: its
        server said so, and another server may not have got that far."""
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._libpq.socket, selectors.EVENT_READ)
        self.do(settings)
        found = self.row(_SETTINGS_ASKED)
        assert found is not None
        self.pid, self.started, self.schema, self.encoding = found

    # -- asking -----------------------------------------------------------------------------------------------------

    def row(self, text: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a statement's result."""
        rows = self.rows(text, parameters)
        return rows[0] if rows else None

    def rows(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if text not in self._prepared:
            return self.together((text, parameters))[0]
        self._come_to_rest()
        self._send(text, *self._in_wire_form(parameters))
        return self._rows_of(self._check_results(self._answers())[-1])

    def do(self, text: str, parameters: Sequence[Any] = ()) -> None:
        """Runs a statement for its effect; without parameters it may be several, separated by semicolons."""
        if parameters:
            self.rows(text, parameters)
            return
        self._come_to_rest()
        self._libpq.send_query(text.encode())
        self._check_results(self._answers())

    def together(self, *steps: Step) -> list[list[tuple[Any, ...]]]:
        """Runs several statements in one round trip and returns the rows of each. Stops at the first that fails."""
        self._come_to_rest()
        if len(self._prepared) > MOST_PREPARED:
            self._prepared.clear()
            self.do("DEALLOCATE ALL")
        dumped = [self._in_wire_form(parameters) for _, parameters in steps]
        sent: list[str | None] = []
        """For each expected result: the statement it confirms as prepared, or None for a result with rows."""
        self._libpq.enter_pipeline_mode()
        for (text, _), values in zip(steps, dumped, strict=True):
            if text not in self._prepared:
                self._prepared[text] = b"handrail_%d" % next(self._numbers)
                self._libpq.send_prepare(self._prepared[text], _with_placeholders(text))
                sent.append(text)
            self._send(text, *values)
            sent.append(None)
        self._libpq.pipeline_sync()
        results = self._answers(synced=True)
        for text_prepared, result in zip(sent, results, strict=False):
            if text_prepared is not None and result.status != ExecStatus.COMMAND_OK:
                del self._prepared[text_prepared]
        self._libpq.exit_pipeline_mode()
        self._check_results(results)
        return [
            self._rows_of(result) for text_prepared, result in zip(sent, results, strict=False) if text_prepared is None
        ]

    def leave(self, text: str) -> None:
        """Runs a statement whose answer nobody needs; if it was refused, the next statement finds out."""
        self._come_to_rest()
        self._libpq.send_query(text.encode())
        self._owed = True
        self._push()

    def note(self, position: int) -> int:
        """Notes that the feed is settled up to a position, and returns the furthest one known."""
        self.sure = max(self.sure, position)
        return self.sure

    # -- its state --------------------------------------------------------------------------------------------------

    @property
    def is_lost(self) -> bool:
        return self.connection.closed

    @property
    def is_idle(self) -> bool:
        """Whether it is free for the next user: in no transaction, or about to leave one."""
        return self._owed or self._libpq.transaction_status == TransactionStatus.IDLE

    def end(self, other: PostgresSession) -> bool:
        """Ends the server process of a lost connection, if it still exists: what it had not done, it never will."""
        return all(ended for (ended,) in self.rows(_END_BACKEND, (other.pid, other.started)))

    def close(self) -> None:
        self._ready.close()
        self.connection.close()

    # -- the protocol -----------------------------------------------------------------------------------------------

    def _in_wire_form(self, parameters: Sequence[Any]) -> _Dumped:
        """Parameters in wire form. Values that have none are refused here, before anything is sent."""
        if not parameters:
            return None, None
        values = self._adapting.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return values, self._adapting.formats

    def _send(self, text: str, values: Sequence[Buffer | None] | None, formats: Sequence[Format] | None) -> None:
        self._libpq.send_query_prepared(self._prepared[text], values, formats, Format.BINARY)

    def _push(self) -> None:
        """Sends what the driver has buffered. Reads meanwhile, since the server may block until its output is read."""
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
        """All results of what was sent: up to the end of one statement, or of the whole pipeline if `synced`."""
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
        """Reads the answer that nobody waited for."""
        if self._owed:
            self._owed = False
            self._check_results(self._answers())

    def _check_results(self, results: list[PGresult]) -> list[PGresult]:
        for result in results:
            if result.status not in _DONE:
                error = errors.error_from_result(result)
                if error.diag.severity_nonlocalized in _LAST_WORDS:  # its process ends, whatever else it had to say
                    self.connection.close()
                raise error if error.sqlstate else psycopg.OperationalError(str(error))  # not reported by a server
        return results

    def _rows_of(self, result: PGresult) -> list[tuple[Any, ...]]:
        self._adapting.set_pgresult(result)
        return self._adapting.load_rows(0, result.ntuples, tuple)
