"""The list of addresses: everything there is, in order of address, as many as were asked for. No store.

Ids are walked in order and no further than needed, so the cost of a few addresses does not depend on how many there
are. Boards are the exception: all are examined, because one query counts them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from heapq import merge, nsmallest
from typing import Any, NamedTuple

from handrail.domain.board.queries import boards
from handrail.domain.crew.agent import Agent
from handrail.domain.graphs.plan_graph import latest_version
from handrail.domain.graphs.records import SharedGraph, Transaction
from handrail.domain.registry.addresses import (
    BOARDS,
    CHILDREN,
    GRAPHS,
    LONGEST_ID,
    RUNS,
    SNAPSHOTS,
    Address,
    begins_with,
    board,
    child_logs,
    graph,
    graph_version,
    run_events,
    snapshot,
)
from handrail.domain.registry.graphs import Owner, tx_metadata, tx_of_version, version_of_tx, versions_there
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import LAST, Query, RecordT, UnitOfWork, where

PAGE = 100
"""How many records are read at once."""


class Item(NamedTuple):
    """An address, and what a list says about it besides its kind."""

    address: Address
    metadata: dict[str, Any] | None


class ListingQuery(NamedTuple):
    """What is to be listed."""

    prefix: str
    """The prefix of the addresses."""
    repository: str | None
    """The repository whose workflows are listed; None lists all."""
    after: str = ""
    """Only addresses after this one."""
    keep: int = 0
    """How many events of one run may be shown; 0 means all."""

    def fits(self, uri: str) -> bool:
        return uri.startswith(self.prefix) and uri > self.after


def listed(unit: UnitOfWork, asked: ListingQuery, limit: int) -> tuple[list[Item], bool]:
    """The first `limit` addresses, in order, and whether there are more."""
    found: list[Item] = []
    for source in (_boards, _children, _graphs, _runs, _snapshots):  # in the order their addresses sort
        if len(found) <= limit:
            found += source(unit, asked, limit + 1 - len(found))
    return found[:limit], len(found) > limit


def newest(unit: UnitOfWork, repository: str | None, count: int) -> Iterator[tuple[Address, str]]:
    """The addresses most likely wanted first, each with a display name: those of the newest workflows and agents and of
    boards, `count` of each."""
    here = (("repository_path", repository),) if repository is not None else ()
    for workflow in unit.select(Workflow, Query(here, ("-updated_at", "-id"), count)):
        yield graph(workflow.id), f"{workflow.name}: plan"
        yield run_events(workflow.id), f"{workflow.name}: events"
    for shared in unit.select(SharedGraph, Query(here, ("-committed_at", "-id"), count)):
        yield graph(shared.id), f"{shared.name or shared.id}: graph"
    for agent in unit.select(Agent, Query((), ("-created_at", "-id"), count)):
        yield child_logs(agent.id), f"{agent.name}: log"
    for size in boards(unit)[:count]:
        yield board(size.name), f"{size.name}: board"


def newest_ids(unit: UnitOfWork, kind: type[RecordT], beginning: str, repository: str | None, count: int) -> list[str]:
    """At most `count` ids that start with `beginning`, newest first."""
    here = (("repository_path", repository),) if repository is not None else ()
    whole = unit.select(kind, Query((*here, ("id", beginning))))
    longer = (("id >", beginning), ("id <", beginning + LAST))
    found = unit.select(kind, Query((*here, *longer), ("-id",), count))
    return [record.id for record in (*whole, *found)][:count]


class IdRange(NamedTuple):
    """The ids with a common prefix, starting at one of them."""

    beginning: str = ""
    since: str = ""


def workflows(unit: UnitOfWork, ids: IdRange, repository: str | None, size: int = PAGE) -> Iterator[Workflow]:
    """The workflows with these ids, in order of id."""
    conditions = (("repository_path", repository),) if repository is not None else ()
    return _by_id(unit, Workflow, ids, conditions, size)


def agents(unit: UnitOfWork, ids: IdRange, size: int = PAGE) -> Iterator[Agent]:
    """The agents with these ids, in order of id."""
    return _by_id(unit, Agent, ids, (), size)


def _by_id(
    unit: UnitOfWork, kind: type[RecordT], ids: IdRange, conditions: tuple[tuple[str, Any], ...], size: int
) -> Iterator[RecordT]:
    """The records with these ids, and those whose id is a prefix of `since`: one of their addresses may come later."""
    beginning, since = ids
    if since > beginning + LAST:
        return
    last = since if since.startswith(beginning) else beginning
    shorter = tuple(last[:end] for end in range(max(1, len(beginning)), len(last) + 1))
    if shorter:
        yield from unit.select(kind, Query((*conditions, ("id", shorter))))
    while True:
        page = unit.select(kind, Query((*conditions, ("id >", last), ("id <", beginning + LAST)), ("id",), size))
        yield from page
        if len(page) < size:
            return
        last = page[-1].id


def _ids(asked: ListingQuery, base: str) -> IdRange | None:
    """The ids whose addresses can match; None if no address under this base can."""
    beginning = begins_with(asked.prefix, base)
    if beginning is None or asked.after > base + LAST:
        return None
    return IdRange(beginning, (begins_with(asked.after, base) or "")[:LONGEST_ID])


def _boards(unit: UnitOfWork, asked: ListingQuery, room: int) -> list[Item]:
    if _ids(asked, BOARDS) is None:
        return []
    items = [
        Item(board(size.name), {"entry_count": size.entries, "latest_version": size.version}) for size in boards(unit)
    ]
    fitting = (item for item in items if asked.fits(item.address.uri))
    return nsmallest(room, fitting, key=lambda item: item.address.uri)


def _children(unit: UnitOfWork, asked: ListingQuery, room: int) -> list[Item]:
    ids = _ids(asked, CHILDREN)
    if ids is None:
        return []
    return _gathered(agents(unit, ids, min(room, PAGE)), CHILDREN, asked, room, lambda agent: (child_logs(agent.id),))


def _graphs(unit: UnitOfWork, asked: ListingQuery, room: int) -> list[Item]:
    def of(owner: Owner) -> Iterator[Address]:
        yield graph(owner.id)
        for version in versions_there(unit, owner):
            yield graph_version(owner.id, version)

    found = _of_owners(unit, GRAPHS, asked, room, of)
    return [
        item._replace(metadata={"latest_version": _latest_version(unit, item.address.id)})
        if item.address.kind == "graph"
        else item
        for item in found
    ]


def _latest_version(unit: UnitOfWork, graph_id: str) -> int:
    shared = unit.get(SharedGraph, graph_id)
    return shared.version if shared is not None else latest_version(unit, graph_id)[0]


def _runs(unit: UnitOfWork, asked: ListingQuery, room: int) -> list[Item]:
    def told(item: Item) -> Item:
        head = unit.head_seq(item.address.id)
        count = min(head, asked.keep) if asked.keep else head
        return item._replace(metadata={"event_count": count, "latest_seq": head, "formats": ["json"]})

    ids = _ids(asked, RUNS)
    if ids is None:
        return []
    found = workflows(unit, ids, asked.repository, min(room, PAGE))
    return [told(item) for item in _gathered(found, RUNS, asked, room, lambda one: (run_events(one.id),))]


def _snapshots(unit: UnitOfWork, asked: ListingQuery, room: int) -> list[Item]:
    def of(owner: Owner) -> Iterator[Address]:
        for version in versions_there(unit, owner):
            yield snapshot(owner.id, tx_of_version(version))
        for tx in unit.select(Transaction, where(graph_id=owner.id)):
            yield snapshot(owner.id, tx.id)

    def told(address: Address) -> dict[str, Any]:
        version = version_of_tx(address.tx)
        if version is not None:
            return {"state": "committed", "base_version": version - 1}
        tx = unit.get(Transaction, address.tx)
        return tx_metadata(unit, tx) if tx is not None else {}

    found = _of_owners(unit, SNAPSHOTS, asked, room, of)
    return [item._replace(metadata=told(item.address)) for item in found]


def _of_owners(
    unit: UnitOfWork, base: str, asked: ListingQuery, room: int, of: Callable[[Owner], Iterable[Address]]
) -> list[Item]:
    ids = _ids(asked, base)
    if ids is None:
        return []
    size = min(room, PAGE)
    conditions = (("repository_path", asked.repository),) if asked.repository is not None else ()
    shared = _by_id(unit, SharedGraph, ids, conditions, size)
    owners: Iterable[Owner] = merge(workflows(unit, ids, asked.repository, size), shared, key=lambda one: one.id)
    return _gathered(owners, base, asked, room, of)


def _gathered(
    records: Iterable[RecordT], base: str, asked: ListingQuery, room: int, of: Callable[[RecordT], Iterable[Address]]
) -> list[Item]:
    """The first addresses of records that come in order of id. An address never sorts before its base and id, so the
    rest can be skipped once those sort after what was found."""
    found: list[tuple[str, Address]] = []
    for record in records:
        if len(found) == room and base + record.id > found[-1][0]:
            break
        for address in of(record):
            uri = address.uri
            if asked.fits(uri):
                insort(found, (uri, address))
                del found[room:]
    return [Item(address, None) for _, address in found]
