"""How far PostgreSQL's feed is settled: below that position nothing can appear any more.

If every commit took a number from a counter, all commits would queue for it until each had reached the disk. A sequence
avoids that, but then a number can appear after a follower has passed it, and is missed. So a position is the
transaction's own number, shifted, plus the event's place in the transaction: it grows, and never repeats. A follower
reads only below the oldest transaction that is still writing events, so nothing can appear behind it. The price:
positions have gaps, and a slow commit keeps later ones out of the feed until it ends; streams wait for nobody.
"""

from __future__ import annotations

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
