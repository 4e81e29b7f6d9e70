"""Transactions: changes to a graph that are tried on the version they began with, then made all at once or not at all.

Optimistic: nobody waits for a transaction, and one that comes too late is refused and told what has changed. What was
tried is stored, in a stream of its own, so that it survives the process that tried it. An expired transaction is over
for everybody from that moment on; nothing needs to record that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.graphs.diff import summary_of
from handrail.domain.graphs.graph import Graph
from handrail.domain.graphs.graph_access import Author, Committed, GraphInUnit, commit, find_graph, graph_at
from handrail.domain.graphs.locks import check_unlocked
from handrail.domain.graphs.mutations import Applied, Mutation, RenameNode, mutate, mutation_from
from handrail.domain.graphs.records import TX_MACHINE, Transaction
from handrail.kernel.errors import GraphInvalid, GraphNotFound, NotAllowed, TxConflict, TxEnded, TxNotFound
from handrail.kernel.records import Query, UnitOfWork

TX_MS = 60 * 60 * 1000
"""How long a transaction lasts by default."""
MOST_TRIED = 2000
"""The most changes in one transaction."""
BEGUN, APPLIED, COMMITTED, ROLLED_BACK = "tx.begun", "tx.applied", "tx.committed", "tx.rolled_back"


class TransactionCaller(NamedTuple):
    """The agent or client that calls, and the name it gave, if any."""

    name: str
    named: str | None = None
    fence: int | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name in (self.name, self.named) if name is not None)


class Tried(NamedTuple):
    """A transaction and the graph it results in."""

    tx: Transaction
    held: GraphInUnit
    base: Graph
    graph: Graph


def check_named(unit: UnitOfWork, caller: TransactionCaller) -> None:
    """Refuses a caller that uses the name of another registered agent."""
    named = caller.named
    if named is not None and named != caller.name and unit.get(Agent, named) is not None:
        raise NotAllowed(
            f"{named} is another agent than the caller", hint=f"call with agent_id {named}, or leave it out"
        )


def begin(
    unit: UnitOfWork, graph_id: str, caller: TransactionCaller, *, expected: int | None, note: str | None, ttl_ms: int
) -> tuple[Transaction, GraphInUnit]:
    """Begins a transaction on a graph as it is now; refused if the graph is not at the expected version."""
    check_named(unit, caller)
    held = find_graph(unit, graph_id)
    check_version(unit, held, expected)
    now = unit.now_ms()
    tx = Transaction(
        id=unit.new_id("tx"),
        graph_id=graph_id,
        base_version=held.version,
        owner=caller.named or caller.name,
        note=note,
        operations=[],
        state=TX_MACHINE.initial,
        started_at=now,
        expires_at=now + ttl_ms,
        ended_at=None,
        final_version=None,
    )
    unit.record(BEGUN, tx, data={"graph_id": graph_id})
    return tx, held


def apply(
    unit: UnitOfWork, tx_id: str, caller: TransactionCaller, operations: Sequence[Mapping[str, Any]]
) -> tuple[Tried, list[Applied]]:
    """Adds changes to a transaction, tried on top of those so far. If one cannot be made, all are refused."""
    tried = read_transaction(unit, open_tx(unit, tx_id, caller))
    if len(tried.tx.operations) + len(operations) > MOST_TRIED:
        raise GraphInvalid(
            f"{tx_id} would hold more than {MOST_TRIED} changes", hint="commit it and begin another", rule="size"
        )
    mutations = [read(index, one) for index, one in enumerate(operations)]
    check_ids_stay(tried.held, mutations)
    graph, applied = mutate(tried.graph, mutations)
    tx = msgspec.structs.replace(tried.tx, operations=[*tried.tx.operations, *(dict(one) for one in operations)])
    unit.record(APPLIED, tx, data={"graph_id": tx.graph_id, "operations": len(operations)})
    return tried._replace(tx=tx, graph=graph), applied


def commit_tx(unit: UnitOfWork, tx_id: str, caller: TransactionCaller) -> tuple[Transaction, Committed, GraphInUnit]:
    """Makes the changes of a transaction, if its graph is still at the version it began with."""
    tx = open_tx(unit, tx_id, caller)
    held = find_graph(unit, tx.graph_id)
    if held.version != tx.base_version:
        raise _conflict(unit, held, tx.base_version, f"{tx_id} began with version {tx.base_version}")
    names = caller.names | {tx.owner}
    check_unlocked(unit, held.id, held.stream, names, caller.fence)
    after = mutate(held.graph, [mutation_from(one) for one in tx.operations]).graph
    told = {"tx_id": tx_id, "owner": tx.owner}
    done = commit(unit, held, after, Author(names, tx.note, told))
    ended = _ended(unit, tx, "committed", final_version=done.version)
    unit.record(COMMITTED, ended, data={"graph_id": tx.graph_id, "version": done.version, "changed": done.changed})
    return ended, done, held


def roll_back(unit: UnitOfWork, tx_id: str, caller: TransactionCaller) -> Transaction:
    """Abandons a transaction. None of its changes was ever made."""
    tx = _ended(unit, open_tx(unit, tx_id, caller), "rolled_back", final_version=None)
    unit.record(ROLLED_BACK, tx, data={"graph_id": tx.graph_id})
    return tx


def find_tx(unit: UnitOfWork, tx_id: str) -> Transaction:
    tx = unit.get(Transaction, tx_id)
    if tx is None:
        newest = unit.select(Transaction, Query((), ("-started_at", "-id"), 3))
        known = ", ".join(f"{one.id} on {one.graph_id} ({shown_state(unit, one)})" for one in newest) or "none yet"
        raise TxNotFound(f"there is no transaction {tx_id}", hint=f"tx_begin gives one; newest: {known}", id=tx_id)
    return tx


def has_run_out(unit: UnitOfWork, tx: Transaction) -> bool:
    """Whether a transaction is over because it expired."""
    return tx.state == TX_MACHINE.initial and tx.expires_at is not None and tx.expires_at <= unit.now_ms()


def shown_state(unit: UnitOfWork, tx: Transaction) -> str:
    return "rolled_back" if has_run_out(unit, tx) else tx.state


def open_tx(unit: UnitOfWork, tx_id: str, caller: TransactionCaller) -> Transaction:
    """The transaction, if it is open and the caller owns it; else a refusal."""
    check_named(unit, caller)
    tx = find_tx(unit, tx_id)
    if tx.owner not in caller.names and not _was_begun_by(unit, tx, caller):
        raise NotAllowed(
            f"{tx_id} is {tx.owner}'s",
            hint="begin your own with tx_begin; only its owner commits this one",
            owner=tx.owner,
        )
    again = f"tx_begin on {tx.graph_id} begins another"
    if has_run_out(unit, tx):
        raise TxEnded(f"{tx_id} ran out at {tx.expires_at}; nothing of it was made", hint=again, id=tx_id, expired=True)
    if tx.state != TX_MACHINE.initial:
        what = f"committed as version {tx.final_version}" if tx.state == "committed" else "rolled back"
        raise TxEnded(
            f"{tx_id} was {what}", hint=again, id=tx_id, state=tx.state, version=tx.final_version, ended_at=tx.ended_at
        )
    return tx


def read_transaction(unit: UnitOfWork, tx: Transaction) -> Tried:
    """The result of a transaction so far, on the version it began with."""
    held = find_graph(unit, tx.graph_id)
    base = graph_at(unit, held, tx.base_version)
    graph = mutate(base, [mutation_from(one) for one in tx.operations]).graph if tx.operations else base
    return Tried(tx, held, base, graph)


def check_version(unit: UnitOfWork, held: GraphInUnit, expected: int | None) -> None:
    """Raises TxConflict if a graph is not at the version the caller expects."""
    if expected is not None and expected != held.version:
        raise _conflict(unit, held, expected, f"version {expected} was expected")


def check_ids_stay(held: GraphInUnit, mutations: Sequence[Mutation]) -> None:
    """Refuses to change the id of a task, which is permanent."""
    for index, one in enumerate(mutations):
        is_task = isinstance(one, RenameNode) and held.plan is not None and one.id in held.plan.tasks
        if isinstance(one, RenameNode) and is_task and one.new_id not in (None, one.id):
            raise GraphInvalid(
                f"{one.id} is a task, and its id stays",
                hint="label is its name: rename_node {id, label}",
                rule="plan",
                index=index,
            )


def read(index: int, document: Any) -> Mutation:
    """Parses one of several changes. A refusal says which one it is about."""
    try:
        return mutation_from(document)
    except GraphInvalid as refusal:
        raise GraphInvalid(
            f"operation {index}: {refusal.message}", hint=refusal.hint, **{**refusal.details, "index": index}
        ) from None


def _was_begun_by(unit: UnitOfWork, tx: Transaction, caller: TransactionCaller) -> bool:
    """Whether the caller began it, under a name that is not an agent's."""
    if unit.get(Agent, tx.owner) is not None:
        return False
    first = unit.events(tx.stream, 0, 1)
    return bool(first) and first[0].actor == caller.name


def _conflict(unit: UnitOfWork, held: GraphInUnit, base: int, why: str) -> TxConflict:
    details: dict[str, Any] = {"graph_id": held.id, "base_version": base, "version": held.version}
    try:
        was = graph_at(unit, held, base)
    except GraphNotFound:  # a version that never existed, or was undone
        pass
    else:
        details["diff_summary"] = msgspec.to_builtins(summary_of(held.compared(was), held.compared(held.graph)))
    return TxConflict(
        f"{why}, and {held.id} is at version {held.version}",
        hint=f"look at what is different (graph_diff from version {base}), then begin again from {held.version}",
        **details,
    )


def _ended(unit: UnitOfWork, tx: Transaction, state: str, *, final_version: int | None) -> Transaction:
    TX_MACHINE.check(f"transaction {tx.id}", tx.state, state)
    return msgspec.structs.replace(tx, state=state, ended_at=unit.now_ms(), final_version=final_version)
