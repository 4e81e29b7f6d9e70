"""Workflows and tasks as every screen lists them: one row each, read in bulk, with a few queries per several hundred
rows and never one per row.

Each screen decides which rows it shows; this module turns records into rows. Agents' texts stay as they are.

The standing of a workflow, in one word that a page can colour: who can move it on now, rather than its status.

A workflow in progress may be active, wait for a person, or be held by an agent that is no longer heard from; its status
is the same in all three cases. Pure: counts and evidence are passed in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.presence import is_present
from handrail.domain.gates.gate import GATE_MACHINE, REVIEW, Gate
from handrail.domain.overview.explanations import explain_workflow
from handrail.domain.pipeline.ownership import HELD_MS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.pipeline.run_status import RunPosition, said_of, standing
from handrail.domain.work.blockers import SILENT_MS, startable, status_or_ready
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import AT_WORK, Dependency, Task
from handrail.domain.work.workflow import CLOSED, Tally, Workflow, empty_tally
from handrail.kernel.records import Query, UnitOfWork, chunks, found_by
from handrail.kernel.wording import shortened

STANDINGS = ("waits_for_you", "stuck", "running", "ready", "paused", "failed", "done_but_open", *CLOSED)
"""Every possible standing."""


class HealthFacts(NamedTuple):
    """What is known about a workflow."""

    status: str
    total: int = 0
    finished: int = 0
    moving: int = 0
    """Tasks that are actually moving: their agents are present and there was news of them."""
    stuck: int = 0
    """Tasks under way in name only."""
    ready: int = 0
    paused: int = 0
    failed: int = 0
    waiting: int = 0
    """Decisions that wait for a person."""
    run: Driven | None = None


class Driven(NamedTuple):
    """What is known about a run of a pipeline."""

    waits: bool
    """It waits at a gate."""
    stopped: bool
    under_way: bool
    """A phase was handed out."""
    driver_there: bool
    ended: bool = False


def standing_of(seen: HealthFacts) -> str:
    """One of `STANDINGS`."""
    if seen.status in CLOSED:
        return seen.status
    if seen.run is not None and not seen.run.ended:
        return _of_run(seen, seen.run)
    if seen.waiting and not (seen.moving or seen.ready):
        return "waits_for_you"
    if seen.status in ("paused", "failed"):
        return seen.status
    if seen.total and seen.finished == seen.total:
        return "done_but_open"
    return _of_tasks(seen)


def _of_run(seen: HealthFacts, run: Driven) -> str:
    if run.waits:
        return "waits_for_you"
    if run.stopped or seen.status == "paused":
        return "paused"
    if seen.status == "failed":
        return "failed"
    if seen.moving or (run.under_way and run.driver_there):
        return "running"
    return "stuck" if run.under_way or seen.stuck else "ready"


def _of_tasks(seen: HealthFacts) -> str:
    if seen.moving:
        return "running"
    if seen.stuck:
        return "stuck"
    if seen.ready or not seen.total:  # without a plan, planning is what can begin
        return "ready"
    if seen.failed:
        return "failed"
    return "paused" if seen.paused else "stuck"


LOOKED_AT = 2000
"""How many tasks under way and open questions of a few hundred workflows are examined."""
ERROR = 200
"""The most characters of an error in a row."""
CLAIMED = ("pending", "paused")


class WorkflowRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workflow in a list."""

    id: str
    name: str
    status: str
    repository: str | None
    repository_name: str | None
    created_at: int
    updated_at: int
    total: int
    finished: int
    """Completed or skipped."""
    running: int
    failed: int
    ready: int
    """Tasks that can begin now."""
    blocked: int
    paused: int
    skipped: int
    waiting: int
    """Decisions that work waits for."""
    reviews: int
    stuck: int
    """Tasks under way whose agent is lost, or without any news for `SILENT_MS`."""
    agents: int
    """Agents that are present and hold one of its tasks."""
    phase: str | None
    sentence: str
    """Why it is in this state, without commands: a page has buttons."""
    standing: str
    """Who can move it on now, in one word: one of `standing.STANDINGS`."""
    plan_version: int = 0
    """Changes whenever the plan itself does."""


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task in a list."""

    id: str
    workflow_id: str
    name: str
    status: str
    """As `handrail why` tells it: `ready`, or `pending` while its own subtasks are open."""
    parent: str | None
    group: str | None
    needs: list[str]
    """The tasks it waits or waited for by the plan, not counting inherited dependencies."""
    sequence: int
    priority: int
    agent: str | None
    agent_id: str | None
    attempts: int
    checkpoints: int
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None
    error: str | None
    waiting: bool
    """True if an open decision or review is about it."""
    lost: bool = False
    """True if its claim has expired: its agent is no longer heard from."""
    stuck_at: int | None = None
    """From when it counts as stuck if nothing is heard of it until then; None if that does not apply."""


def agent_names(unit: UnitOfWork, keys: Iterable[str | None]) -> dict[str, str]:
    """The names of these agents; an unknown one keeps its id."""
    wanted = [key for key in keys if key is not None]
    known = {agent.id: agent.name for agent in found_by(unit, Agent, "id", wanted)}
    return {key: known.get(key, key) for key in wanted}


def task_names(unit: UnitOfWork, keys: Iterable[str | None]) -> dict[str, str]:
    """The names of tasks by id, for those that exist."""
    return {task.id: task.name for task in found_by(unit, Task, "id", filter(None, keys))}


def cut(text: str | None, most: int) -> str | None:
    return None if text is None else shortened(text, most)


# -- workflows --------------------------------------------------------------------------------------------------------


def workflow_rows(unit: UnitOfWork, workflows: Sequence[Workflow]) -> list[WorkflowRow]:
    """A row for each, in the same order."""
    keys = [workflow.id for workflow in workflows]
    tallies = _tallies(unit, keys)
    ready = _ready(unit, keys)
    asked = _asked(unit, keys)
    at_work = _at_work(unit, [workflow.id for workflow in workflows if workflow.status not in CLOSED], asked)
    runs = {run.id: run for run in found_by(unit, PipelineRun, "id", keys)}
    rows = []
    for workflow in workflows:
        tally, run = tallies[workflow.id], runs.get(workflow.id)
        one = standing(unit, run) if run is not None else None
        waiting = asked.get((workflow.id, DECISION), 0)
        seen = HealthFacts(
            status=workflow.status,
            total=tally.total,
            finished=tally.finished,
            moving=at_work.moving[workflow.id],
            stuck=at_work.stuck[workflow.id],
            ready=ready.get(workflow.id, 0),
            paused=tally.counts["paused"],
            failed=tally.counts["failed"],
            waiting=waiting,
            run=_driven(unit, run, one) if run is not None and one is not None else None,
        )
        rows.append(
            WorkflowRow(
                id=workflow.id,
                name=workflow.name,
                status=workflow.status,
                repository=workflow.repository_path,
                repository_name=last_part(workflow.repository_path),
                created_at=workflow.created_at,
                updated_at=workflow.updated_at,
                total=tally.total,
                finished=tally.finished,
                running=sum(tally.counts[status] for status in AT_WORK),
                failed=tally.counts["failed"],
                ready=seen.ready,
                blocked=tally.counts["blocked"],
                paused=tally.counts["paused"],
                skipped=tally.counts["skipped"],
                waiting=waiting,
                reviews=asked.get((workflow.id, REVIEW), 0),
                stuck=seen.stuck,
                agents=len(at_work.agents[workflow.id]),
                phase=one.label if one is not None else None,
                sentence=said_of(one) if one is not None else explain_workflow(unit, workflow).sentence,
                standing=standing_of(seen),
                plan_version=tally.version,
            )
        )
    return rows


def last_part(path: str | None) -> str | None:
    """The name of a repository: the last part of its path, on any operating system."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path if path else None


def _tallies(unit: UnitOfWork, keys: Sequence[str]) -> dict[str, Tally]:
    found = {tally.id: tally for tally in found_by(unit, Tally, "id", keys)}
    missing = [key for key in keys if key not in found]
    found |= {key: empty_tally(key) for key in missing}
    for chunk in chunks(missing):  # plans not touched since tallies were introduced have to be counted
        query = Query((("workflow_id", chunk),))
        for (key, status, unmet), count in unit.count_by(Task, query, ("workflow_id", "status", "unmet")).items():
            shown = "blocked" if status == "pending" and unmet else status
            found[key].counts[shown] += count
    return found


def _ready(unit: UnitOfWork, keys: Sequence[str]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for chunk in chunks(keys):
        ready = unit.count_by(Task, Query(startable(chunk)), ("workflow_id",))
        counted |= {key: count for (key,), count in ready.items()}
    return counted


def _asked(unit: UnitOfWork, keys: Sequence[str]) -> dict[tuple[str, str], int]:
    """How many questions of each kind are open, by workflow."""
    counted: dict[tuple[str, str], int] = {}
    for chunk in chunks(keys):
        open_ones = Query((("workflow_id", chunk), ("status", GATE_MACHINE.initial)))
        for (workflow, kind), count in unit.count_by(Gate, open_ones, ("workflow_id", "kind")).items():
            counted[workflow, kind] = count
    return counted


class _AtWork(NamedTuple):
    """Who is at work, by workflow."""

    moving: Counter[str]
    """Tasks that are actually moving: neither stuck nor waiting for a person's answer."""
    stuck: Counter[str]
    agents: Mapping[str, set[str]]
    """Agents that are present and have a task."""


def _at_work(unit: UnitOfWork, keys: Sequence[str], asked: Mapping[tuple[str, str], int]) -> _AtWork:
    moving: Counter[str] = Counter()
    stuck: Counter[str] = Counter()
    agents: dict[str, set[str]] = defaultdict(set)
    now = unit.now_ms()
    questioned = [key for key in keys if (key, DECISION) in asked]
    open_decisions = (("status", GATE_MACHINE.initial), ("kind", DECISION))
    waits = {gate.task_id for gate in found_by(unit, Gate, "workflow_id", questioned, more=open_decisions)}
    for chunk in chunks(keys):
        own = ("workflow_id", chunk)
        tasks = unit.select(Task, Query((own, ("status", AT_WORK)), ("id",), LOOKED_AT))
        claimed = (own, ("status", CLAIMED), ("assigned_agent_id >", ""))
        held = [task for task in tasks if task.assigned_agent_id is not None]
        held += unit.select(Task, Query(claimed, ("id",), LOOKED_AT))
        leases = {lease.id: lease for lease in found_by(unit, Lease, "id", (task.id for task in held))}
        holders = {key: lease.holder for key, lease in leases.items() if lease.holding.is_held(now) and lease.holder}
        presences = found_by(unit, Lease, "id", holders.values())
        there = {lease.id for lease in presences if lease.holding.is_held(now)}
        for task in tasks:
            stuck_at = _stuck_at(task, lost=task.assigned_agent_id is not None and task.id not in holders)
            is_stuck = stuck_at is not None and now >= stuck_at
            stuck[task.workflow_id] += is_stuck
            moving[task.workflow_id] += not (is_stuck or task.open_children or task.id in waits)
        for task in held:
            if (holder := holders.get(task.id)) in there:
                agents[task.workflow_id].add(holder)
    return _AtWork(moving, stuck, agents)


def _stuck_at(task: Task, *, lost: bool) -> int | None:
    """From when a task under way counts as stuck, unless something is heard of it; None for one that cannot be."""
    if task.status not in AT_WORK or task.open_children:  # the work is in its parts
        return None
    return task.updated_at if lost else task.updated_at + SILENT_MS


def _driven(unit: UnitOfWork, run: PipelineRun, one: RunPosition) -> Driven:
    """The state of a run and its driver. An agent is present while its lease lasts; any other driver is presumed to be,
    for as long as a second orchestrator would be refused."""
    driver = (run.holder or {}).get("agent_id")
    there = is_present(unit, driver) if isinstance(driver, str) else unit.now_ms() - run.updated_at < HELD_MS
    return Driven(
        waits=one.waits_at is not None,
        stopped=one.stopped is not None,
        under_way=one.under_way,
        driver_there=there,
        ended=one.ended is not None,
    )


# -- tasks ------------------------------------------------------------------------------------------------------------


def task_rows(unit: UnitOfWork, tasks: Sequence[Task]) -> list[TaskRow]:
    """A row for each, in the same order."""
    needs: dict[str, list[str]] = defaultdict(list)
    for task_id, needs_id, inherited in links(unit, [task.id for task in tasks if task.depends_on]):
        if not inherited:
            needs[task_id].append(needs_id)
    names = agent_names(unit, (task.assigned_agent_id for task in tasks))
    lost = _lost(unit, tasks)
    asked = asked_tasks(unit, dict.fromkeys(task.workflow_id for task in tasks))
    return [
        TaskRow(
            id=task.id,
            workflow_id=task.workflow_id,
            name=task.name,
            status=status_or_ready(task),
            parent=task.parent_task_id,
            group=task.parallel_group,
            needs=needs.get(task.id, []),
            sequence=task.sequence,
            priority=task.priority,
            agent=names[task.assigned_agent_id] if task.assigned_agent_id is not None else None,
            agent_id=task.assigned_agent_id,
            attempts=task.attempts,
            checkpoints=task.checkpoints,
            created_at=task.created_at,
            updated_at=task.updated_at,
            started_at=task.started_at,
            finished_at=task.finished_at,
            error=cut(task.error, ERROR),
            waiting=task.id in asked,
            lost=task.id in lost,
            stuck_at=_stuck_at(task, lost=task.id in lost),
        )
        for task in tasks
    ]


def links(unit: UnitOfWork, keys: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """What these tasks wait for: the task, what it waits for, whether that is only inherited. Read as a count, which
    avoids creating a record for each: a plan has more dependencies than tasks."""
    columns = ("task_id", "needs_id", "inherited")
    for chunk in chunks(keys):
        query = Query((("task_id", chunk),))
        for task_id, needs_id, inherited in sorted(unit.count_by(Dependency, query, columns)):
            yield task_id, needs_id, bool(inherited)


def _lost(unit: UnitOfWork, tasks: Sequence[Task]) -> set[str]:
    """The unfinished tasks whose claim has expired."""
    had = {task.id for task in tasks if task.assigned_agent_id is not None and not task.is_finished}
    now = unit.now_ms()
    held = {lease.id for lease in found_by(unit, Lease, "id", sorted(had)) if lease.holding.is_held(now)}
    return had - held


def asked_tasks(unit: UnitOfWork, workflows: Iterable[str]) -> set[str]:
    """The tasks of these workflows that have an open question. A run's question names its task by number."""
    found: set[str] = set()
    for gate in found_by(unit, Gate, "workflow_id", workflows, more=(("status", GATE_MACHINE.initial),)):
        if gate.task_id is not None:
            found.add(gate.task_id)
        elif gate.kind == DECISION and (run := unit.get(PipelineRun, gate.workflow_id)) is not None:
            found.update(run.tasks_handed_out())
    return found
