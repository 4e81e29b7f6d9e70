"""Access to every graph by its id, be it a workflow's plan or a shared graph: finding it, its past, committing changes.

The version changes only if something really differs. A committed change of a plan is a replan (`replan.py`); any
other graph has rows of its own (`free_graph.py`). `locks.py` and `transactions.py` decide who may change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from handrail.domain.graphs.free_graph import made_at, stored, write_change, write_new
from handrail.domain.graphs.graph import Graph, broken_rules, check_invariants, check_sound
from handrail.domain.graphs.plan_graph import (
    PlanRows,
    graph_of,
    latest_version,
    plan_graph_at,
    plan_of,
    versions_of,
    without_progress,
)
from handrail.domain.graphs.records import SharedGraph, graph_stream
from handrail.domain.graphs.replan import EditedPlan, PlanChange, lay_graph
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ClaimHeld, GraphInvalid, GraphNotFound, Refusal
from handrail.kernel.records import Query, UnitOfWork

RUN = "wf_"
"""The prefix of workflow ids; no other graph may have such an id."""
SHOWN = 50
"""How many task names the event of a replan lists."""


class GraphInUnit(NamedTuple):
    """A graph as one unit of work sees it."""

    id: str
    graph: Graph
    version: int
    committed_at: int | None
    plan: PlanRows | None = None
    """Set if it is the plan of a workflow."""
    shared: SharedGraph | None = None
    """Set if it is not."""

    @property
    def stream(self) -> str:
        return self.id if self.plan is not None else graph_stream(self.id)

    def compared(self, graph: Graph) -> Graph:
        """The part of a graph that counts when two of its kind are compared."""
        return without_progress(graph) if self.plan is not None else graph


class Author(NamedTuple):
    """Who changes a graph, and what they say about it."""

    names: frozenset[str]
    """The names under which the caller may hold something."""
    note: str | None = None
    told: Mapping[str, Any] = {}
    """Further data for the event."""


class Committed(NamedTuple):
    """The result of a commit."""

    version: int
    changed: bool
    graph: Graph
    committed_at: int | None
    created: dict[str, str]
    """New tasks of a plan: from the id that the caller gave the node to the task's id."""
    skipped: list[str]
    """Tasks that the new plan omits but that are kept as skipped, because work was recorded on them."""


def find_graph(unit: UnitOfWork, graph_id: str) -> GraphInUnit:
    """The graph with this id, or a refusal that names the newest ones."""
    workflow = unit.get(Workflow, graph_id)
    if workflow is not None:
        plan = plan_of(unit, workflow)
        version, laid_at = latest_version(unit, graph_id)
        return GraphInUnit(graph_id, graph_of(plan), version, laid_at or None, plan=plan)
    shared = unit.get(SharedGraph, graph_id)
    if shared is None:
        raise _no_graph(unit, graph_id)
    return GraphInUnit(graph_id, stored(unit, shared), shared.version, shared.committed_at, shared=shared)


def graph_there(unit: UnitOfWork, graph_id: str) -> tuple[str, int]:
    """The stream and the version of a graph, without reading all of it."""
    if unit.get(Workflow, graph_id) is not None:
        return graph_id, latest_version(unit, graph_id)[0]
    shared = unit.get(SharedGraph, graph_id)
    if shared is None:
        raise _no_graph(unit, graph_id)
    return shared.stream, shared.version


def graph_at(unit: UnitOfWork, held: GraphInUnit, version: int) -> Graph:
    """The graph as it was when a version was committed. A plan's newest version is shown as it is now, since tasks may
    have changed state after the commit."""
    if version == held.version:
        return held.graph
    found: Graph | None = None
    if 1 <= version < held.version:
        if held.plan is not None:
            found = plan_graph_at(unit, held.id, version)
        else:
            made = made_at(unit, held.id, version)
            found = made.after if made is not None else None
    elif version == 0 and held.plan is not None:
        found = Graph(name=held.graph.name)
    if found is None:
        there = versions_of(unit, held.id) if held.plan is not None else range(1, held.version + 1)
        known = f"versions {there.start} to {there.stop - 1} can be read" if there else "none can be read yet"
        raise GraphNotFound(
            f"{held.id} has no version {version}", hint=f"{known}; it is at {held.version}", id=held.id, version=version
        )
    return found


def create(unit: UnitOfWork, graph_id: str, graph: Graph, author: Author, *, repository: str | None) -> SharedGraph:
    """Creates a graph, at version 1."""
    if graph_id.startswith(RUN):
        raise GraphInvalid(
            f"{graph_id} is an id of workflows", hint=f"choose one that does not begin with {RUN}", rule="id"
        )
    there = unit.get(SharedGraph, graph_id)
    if there is not None:
        raise GraphInvalid(
            f"a graph {graph_id} is already there, at version {there.version}",
            hint="choose another id, or change it: tx_begin, graph_patch, graph_batch_mutate",
            rule="id",
            version=there.version,
        )
    check_sound(graph)
    check_invariants(graph)
    now = unit.now_ms()
    shared = SharedGraph(
        id=graph_id,
        name=graph.name,
        version=1,
        metadata=graph.metadata,
        repository_path=repository,
        created_by=unit.actor.name,
        created_at=now,
        committed_at=now,
    )
    write_new(unit, shared, graph, _event_data(author))
    return shared


def commit(unit: UnitOfWork, held: GraphInUnit, after: Graph, author: Author, *, enforce: bool = True) -> Committed:
    """Commits `after` as the graph's next version. `enforce` checks the rules in its metadata; the rules of a plan are
    always checked."""
    if held.plan is not None:
        return _replan(unit, held, held.plan, after, author)
    assert held.shared is not None, "a graph is one or the other"
    if enforce:
        check_invariants(after)
    changed = write_change(unit, held.shared, held.graph, after, _event_data(author))
    if changed is None:
        return Committed(held.version, False, held.graph, held.committed_at, {}, [])
    return Committed(changed.version, True, after, changed.committed_at, {}, [])


def _replan(unit: UnitOfWork, held: GraphInUnit, plan: PlanRows, after: Graph, author: Author) -> Committed:
    workflow = plan.workflow
    check_open(workflow, starting=False)
    reason = author.note or "its graph was changed"
    laid = lay_graph(unit, plan, held.graph, after, PlanChange(author.names, reason, lambda _: unit.new_id("task")))
    if not laid.is_changed:
        return Committed(held.version, False, held.graph, held.committed_at, {}, [])
    ready = {"status": "ready"} if workflow.status == "planning" else {}
    tally = laid.edit.record("workflow.replanned", data={"reason": reason, **_names(laid), **author.told}, **ready)
    return Committed(tally.version, True, laid.graph, tally.laid_at, laid.created, laid.skipped)


def would_break(unit: UnitOfWork, held: GraphInUnit, after: Graph, author: Author) -> list[dict[str, Any]]:
    """Why `after` could not be committed now: a plan's first broken rule, or all of a graph's. Nothing is written."""
    if held.plan is None:
        return [
            {"rule": one.rule, "message": one.message, "hint": one.hint, "nodes": one.nodes, "edges": one.edges}
            for one in broken_rules(after)
        ]
    try:
        lay_graph(unit, held.plan, held.graph, after, PlanChange(author.names, "tried", lambda key: f"new {key}"))
    except (GraphInvalid, ClaimHeld) as refusal:
        return [{"rule": refusal.details.get("rule", "claim"), "message": refusal.message, "hint": refusal.hint}]
    return []


def failure_of(index: int, refusal: Refusal) -> dict[str, Any]:
    """A refusal as an entry in the list of failures among several changes."""
    return {"index": index, "code": refusal.code, "message": refusal.message, "hint": refusal.hint}


def _names(laid: EditedPlan) -> dict[str, list[str]]:
    return {
        "updated": laid.updated[:SHOWN],
        "added": laid.added[:SHOWN],
        "removed": laid.removed[:SHOWN],
        "skipped": laid.skipped[:SHOWN],
    }


def _event_data(author: Author) -> dict[str, Any]:
    return {**({"reason": author.note} if author.note else {}), **author.told}


def _no_graph(unit: UnitOfWork, graph_id: str) -> GraphNotFound:
    newest = unit.select(SharedGraph, Query((), ("-created_at", "-id"), 3))
    plans = unit.select(Workflow, Query((), ("-updated_at", "-id"), 3))
    named = [f"{one.id} ({one.name})" for one in newest] + [f"{one.id} ({one.name})" for one in plans]
    known = ", ".join(named) or "there is none yet"
    return GraphNotFound(f"there is no graph {graph_id}", hint=f"graph_create makes one; newest: {known}", id=graph_id)
