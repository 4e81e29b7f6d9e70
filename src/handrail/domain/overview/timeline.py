"""Who did what when, in one workflow: bars from the ledger, one for each attempt at a task and each wait before it.

The workflow's events are folded in order: a task is in the queue from the moment it could begin, then at work, paused,
ended. So failed attempts and those taken over by another agent are included, which rows do not remember. Of a very long
history only the newest part is folded; what began earlier continues from the state it had then. Reads only.

The events of a workflow folded into stretches of its tasks' lives: waits, attempts, pauses. Pure.

Only row values before and after count, not the kind of an event: a task moves the same way whichever toolset moved it,
and an undo moves it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.gates.gate import GATE_MACHINE, Gate, gates_of
from handrail.domain.overview.pipeline import phase_asked_at, phase_spans
from handrail.domain.overview.rows import agent_names
from handrail.domain.pipeline.flow import BY_TASK, Flow
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.work.lease import Lease
from handrail.domain.work.task import AT_WORK, RUNNING, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.ledger import Change, Event, Only
from handrail.kernel.records import Query, UnitOfWork, found_by

_KEPT = ("name", "status", "unmet", "open_children", "assigned_agent_id", "attempts")
"""Columns of a task that decide which stretch it is in."""
_ENDED_BY = {"task.released": "released", "task.replanned": "replanned", "ledger.undo": "taken back"}


class Stretch(msgspec.Struct, kw_only=True):
    """One stretch of one task. It can change until its attempt is over."""

    task_id: str
    kind: str
    """queue, work or paused."""
    attempt: int
    since: int
    until: int | None = None
    agent_id: str | None = None
    phase: str | None = None
    status: str
    how: str = ""


class _Life(msgspec.Struct, kw_only=True):
    """A task, as far as its events have been folded."""

    row: dict[str, Any]
    now: Stretch | None = None
    """The stretch it is in."""
    attempt: list[Stretch] = []
    """The stretches of the current attempt."""


class Attempts:
    """The lives of a workflow's tasks, as far as its events have been folded."""

    def __init__(self, since: int) -> None:
        self._since = since
        """The time from which a task is taken to have been in the state it had before its first event here."""
        self._lives: dict[str, _Life] = {}
        self._stretches: list[Stretch] = []
        self._phase: str | None = None

    def take(self, event: Event) -> None:
        if event.kind == "pipeline.moved":
            phase = event.data.get("phase")
            self._phase = phase if isinstance(phase, str) and phase else self._phase
        for change in event.changes:
            if change.table == "task":
                self._take(event, change)

    def knows(self, task_id: str) -> bool:
        return task_id in self._lives

    def name_of(self, task_id: str) -> str:
        """The name of a task that is no longer in the plan."""
        life = self._lives.get(task_id)
        return str(life.row.get("name") or task_id) if life is not None else task_id

    def stretches(self) -> list[Stretch]:
        """All stretches, except waits of no length: those tasks began the moment they could."""
        return [one for one in self._stretches if one.kind != "queue" or one.since != one.until]

    def ended_at(self, at_ms: int) -> list[Stretch]:
        """All stretches, for a workflow that ended at that time: nothing continues after it."""
        for life in self._lives.values():
            if life.now is not None:
                life.now.until = max(at_ms, life.now.since)
                life.now = None
        return self.stretches()

    # -- one change of one task ---------------------------------------------------------------------------------------

    def _take(self, event: Event, change: Change) -> None:
        life = self._lives.get(change.key)
        if life is None:
            life = self._lives[change.key] = self._first_seen(event, change)
        row, after = life.row, change.after
        if after is None:
            self._close(life, event, "skipped", "removed")
            return
        had = row.get("assigned_agent_id") if row.get("status") in AT_WORK else None
        for name in _KEPT:
            if name in after:
                row[name] = after[name]
        kind, was = _kind(row), life.now.kind if life.now is not None else None
        taken = had is not None and row.get("assigned_agent_id") not in (None, had)  # another agent has it now
        if kind == was and not taken:
            self._go_on(life)
            return
        if taken and kind == was == "work":
            self._close(life, event, "failed", "taken over")
        elif kind is None or (kind == "queue" and was is not None):
            self._close(life, event, str(life.row.get("status")), _ENDED_BY.get(event.kind, ""))
        elif life.now is not None:  # from the queue to work, or between work and a pause
            self._step(life, event)
        if kind is not None:
            self._open(life, event, change.key, kind)

    def _first_seen(self, event: Event, change: Change) -> _Life:
        """A task that this change created, or that existed before the first event."""
        if change.before is None:
            return _Life(row={})
        life = _Life(row={name: value for name, value in change.before.items() if name in _KEPT})
        kind = _kind(life.row)
        if kind is not None:
            self._open(life, event, change.key, kind, since=self._since)
        return life

    def _open(self, life: _Life, event: Event, key: str, kind: str, since: int | None = None) -> None:
        done = int(life.row.get("attempts") or 0)
        begun = kind != "queue" and life.row.get("status") != "planning"
        stretch = Stretch(
            task_id=key,
            kind=kind,
            attempt=max(1, done if begun else done + 1),
            since=event.at_ms if since is None else since,
            phase=self._phase,
            status=str(life.row.get("status") or "pending"),
        )
        if kind != "queue":
            stretch.agent_id = life.row.get("assigned_agent_id") or event.actor
        life.now = stretch
        life.attempt = [*life.attempt, stretch]
        self._stretches.append(stretch)

    def _go_on(self, life: _Life) -> None:
        """Continues the same stretch with what is known now: planning that became work, a claim that came later."""
        if life.now is None:
            return
        life.now.status = str(life.row.get("status") or life.now.status)
        if life.now.kind != "queue":
            done = int(life.row.get("attempts") or 0)
            life.now.attempt = max(life.now.attempt, done)
            life.now.agent_id = life.row.get("assigned_agent_id") or life.now.agent_id

    def _step(self, life: _Life, event: Event) -> None:
        """Ends a stretch within an attempt. A wait is credited to the agent that then begins."""
        assert life.now is not None
        life.now.until = event.at_ms
        if life.now.kind == "queue":
            life.now.agent_id = life.row.get("assigned_agent_id") or event.actor
        life.now = None

    def _close(self, life: _Life, event: Event, status: str, how: str) -> None:
        """Ends an attempt, and records on all of its stretches how it ended."""
        if life.now is not None:
            life.now.until = event.at_ms
            life.now = None
        for stretch in life.attempt:
            if stretch.kind != "queue" or len(life.attempt) == 1:
                stretch.status, stretch.how = status, how
        life.attempt = []


def _kind(row: Mapping[str, Any]) -> str | None:
    """The kind of stretch a task with these values is in; None if it waits for others, failed or is over."""
    status = row.get("status")
    if status in AT_WORK:
        return "work"
    if status == "paused":
        return "paused"
    if status == "pending" and not row.get("unmet") and not row.get("open_children"):
        return "queue"
    return None


BARS = 5000
EVENTS = 12_000
"""How many of a workflow's newest events are folded: enough for the most bars shown."""
GATES = 500
UNSEEN = 500
"""How many tasks that were under way before the first folded event are shown anyway."""
FOLDED = ("task.", "workflow.", "pipeline.", "workspace.", "ledger.")
"""Prefixes of the kinds of events that can move a task."""
_ASKED = {"open": "waiting", "answered": "completed", "withdrawn": "skipped"}
"""How the wait for an answer is drawn."""
_RENAMED = {"since": "from", "until": "to"}


class Bar(msgspec.Struct, frozen=True, kw_only=True, rename=_RENAMED):
    """A stretch of time in the life of a task or, if `task_id` is null, of a phase without tasks."""

    id: str
    task_id: str | None
    name: str
    agent: str | None
    agent_id: str | None
    """The agent that did it; for a wait, the one that ended it by beginning."""
    phase: str | None
    group: str | None
    attempt: int
    kind: str
    """queue, work, approval or paused."""
    since: int
    until: int | None
    """None while it continues."""
    status: str
    """How the attempt ended, or the task's state while it continues."""
    how: str
    """The same in the ledger's terms if those are more specific: released, taken, replanned, removed."""


class GateSpan(msgspec.Struct, frozen=True, kw_only=True, rename=_RENAMED):
    """A question, from when it was asked to when it was answered or withdrawn."""

    id: str
    question: str
    task_id: str | None
    phase: str | None
    state: str
    """open, answered or withdrawn."""
    answer: str | None
    since: int
    until: int | None


class NamedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that bars can be put in."""

    id: str
    name: str


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A phase as a row."""

    id: str
    label: str


class TimelineRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows in the order they are first needed; phases in flow order."""

    agents: list[NamedRow]
    phases: list[PhaseRow]


class WorkflowTimeline(msgspec.Struct, frozen=True, kw_only=True, rename=_RENAMED):
    """The bars of a workflow, in order of their start."""

    since: int
    until: int
    """Now, or when the workflow ended."""
    rows: TimelineRows
    bars: list[Bar]
    gates: list[GateSpan]
    more: int
    """How many bars are left out; at least 1 if the history was too long to fold completely."""


def timeline(unit: UnitOfWork, workflow: Workflow) -> WorkflowTimeline:
    events = unit.newest(EVENTS, Only(streams=(workflow.id,), kinds=FOLDED))
    cut = len(events) == EVENTS
    folded = Attempts(since=events[0].at_ms if cut else workflow.created_at)
    events.reverse()
    while events:  # release each event once folded: all their row changes together would take much memory
        folded.take(events.pop())
    end = workflow.updated_at if workflow.status in CLOSED else None
    stretches = folded.ended_at(end) if end is not None else folded.stretches()
    if cut and end is None:
        stretches += _unseen(unit, workflow, folded)
    gates, withdrawn = _gates(unit, workflow), _withdrawn(unit, workflow)
    run = unit.get(PipelineRun, workflow.id)
    flow = run.flow_followed() if run is not None else None
    bars = _drawn(unit, folded, sorted(stretches, key=lambda one: one.since)[-BARS:], end)
    bars += _approvals(unit, gates, withdrawn)
    if flow is not None:
        bars += _phase_bars(unit, workflow.id, flow, end)
    bars.sort(key=lambda bar: (bar.since, bar.id))
    kept = bars[-BARS:]
    more = max(0, len(stretches) - BARS) + len(bars) - len(kept) + cut
    return WorkflowTimeline(
        since=kept[0].since if more and kept else workflow.created_at,
        until=end if end is not None else unit.now_ms(),
        rows=_rows(kept, flow),
        bars=kept,
        gates=[_span(gate, flow, withdrawn) for gate in gates],
        more=more,
    )


def _unseen(unit: UnitOfWork, workflow: Workflow, folded: Attempts) -> list[Stretch]:
    """Tasks under way that the folded events do not mention."""
    conditions = (("workflow_id", workflow.id), ("status", RUNNING))
    tasks = unit.select(Task, Query(conditions, ("-updated_at", "-id"), UNSEEN))
    return [
        Stretch(
            task_id=task.id,
            kind="paused" if task.status == "paused" else "work",
            attempt=max(1, task.attempts),
            since=task.started_at or task.updated_at,
            agent_id=task.assigned_agent_id,
            status=task.status,
        )
        for task in tasks
        if not folded.knows(task.id)
    ]


def _drawn(unit: UnitOfWork, folded: Attempts, stretches: Sequence[Stretch], end: int | None) -> list[Bar]:
    tasks = {task.id: task for task in found_by(unit, Task, "id", (one.task_id for one in stretches))}
    names = agent_names(unit, (one.agent_id for one in stretches))
    left = _left_at(unit, [one for one in stretches if one.until is None and one.kind == "work"])
    bars = []
    for one in stretches:
        task = tasks.get(one.task_id)
        name = task.name if task is not None else folded.name_of(one.task_id)
        goes_on = one.until is None and one.kind == "work"
        until = left.get(one.task_id, end) if goes_on else one.until if one.until is not None else end
        bars.append(
            Bar(
                id=f"{one.task_id}/{one.kind}/{one.since}",
                task_id=one.task_id,
                name=name,
                agent=names.get(one.agent_id) if one.agent_id is not None else None,
                agent_id=one.agent_id,
                phase=one.phase,
                group=task.parallel_group if task is not None else None,
                attempt=one.attempt,
                kind=one.kind,
                since=one.since,
                until=max(until, one.since) if until is not None else None,
                status=one.status,
                how=one.how or ("left" if goes_on and one.task_id in left else one.status),
            )
        )
    return bars


def _left_at(unit: UnitOfWork, stretches: Iterable[Stretch]) -> dict[str, int]:
    """When the claims on these tasks expired, for those that did: a lost agent is not at work after that."""
    now = unit.now_ms()
    leases = found_by(unit, Lease, "id", (one.task_id for one in stretches))
    return {lease.id: lease.expires_ms for lease in leases if lease.holder and not lease.holding.is_held(now)}


def _rows(bars: Iterable[Bar], flow: Flow | None) -> TimelineRows:
    agents: dict[str, str] = {}
    for bar in bars:
        if bar.agent_id is not None:
            agents.setdefault(bar.agent_id, bar.agent or bar.agent_id)
    phases = [PhaseRow(id=phase.id, label=phase.label) for phase in flow.phases] if flow is not None else []
    return TimelineRows(agents=[NamedRow(id=key, name=name) for key, name in agents.items()], phases=phases)


# -- waiting for a person, and phases ---------------------------------------------------------------------------------


def _gates(unit: UnitOfWork, workflow: Workflow) -> list[Gate]:
    """The decisions that were asked for, oldest first."""
    found = gates_of(unit, workflow.id, ("-created_at", "-id"), GATES, DECISION)
    return sorted(found, key=lambda gate: (gate.created_at, gate.id))[-GATES:]


def _withdrawn(unit: UnitOfWork, workflow: Workflow) -> dict[str, int]:
    """When questions were withdrawn, by id; their own records do not say."""
    told = unit.newest(GATES, Only(streams=(workflow.id,), kinds=("gate.withdrawn",)))
    return {change.key: event.at_ms for event in told for change in event.changes if change.table == "gate"}


def _span(gate: Gate, flow: Flow | None, withdrawn: Mapping[str, int]) -> GateSpan:
    phase = phase_asked_at(gate)
    return GateSpan(
        id=gate.id,
        question=gate.question,
        task_id=gate.task_id,
        phase=phase if flow is not None and flow.knows(phase) else None,
        state=gate.status,
        answer=gate.answer,
        since=gate.created_at,
        until=_closed_at(gate, withdrawn),
    )


def _closed_at(gate: Gate, withdrawn: Mapping[str, int]) -> int | None:
    """When a question was answered or withdrawn; None while it is open."""
    if gate.status == GATE_MACHINE.initial:
        return None
    return gate.answered_at if gate.answered_at is not None else withdrawn.get(gate.id, gate.created_at)


def _approvals(unit: UnitOfWork, gates: Sequence[Gate], withdrawn: Mapping[str, int]) -> list[Bar]:
    """Waits for a person that concern one task. Those of a whole run are shown as questions."""
    about = [gate for gate in gates if gate.task_id is not None]
    tasks = {task.id: task for task in found_by(unit, Task, "id", (gate.task_id or "" for gate in about))}
    names = agent_names(unit, (task.assigned_agent_id for task in tasks.values()))
    return [
        Bar(
            id=gate.id,
            task_id=task.id,
            name=task.name,
            agent=names.get(task.assigned_agent_id or ""),
            agent_id=task.assigned_agent_id,
            phase=None,
            group=task.parallel_group,
            attempt=max(1, task.attempts),
            kind="approval",
            since=gate.created_at,
            until=_closed_at(gate, withdrawn),
            status=_ASKED[gate.status],
            how=gate.answer or gate.status,
        )
        for gate in about
        if (task := tasks.get(gate.task_id or "")) is not None
    ]


def _phase_bars(unit: UnitOfWork, workflow_id: str, flow: Flow, end: int | None) -> list[Bar]:
    """The work of phases without tasks; waits for a person are shown as questions."""
    spans = phase_spans(unit, workflow_id, flow)
    names = agent_names(unit, (span.by for held in spans.values() for span in held))
    found: list[Bar] = []
    for phase in flow.phases:
        if phase.kind == "gate" or phase.kind in BY_TASK:
            continue
        for number, span in enumerate(spans.get(phase.id, ()), 1):
            until = span.until if span.until is not None else end
            facts: dict[str, Any] = {"agent": names[span.by], "agent_id": span.by, "phase": phase.id, "attempt": number}
            found.append(
                Bar(
                    id=f"{phase.id}/{span.since}",
                    task_id=None,
                    name=phase.label,
                    group=None,
                    kind="work",
                    since=span.since,
                    until=until,
                    status="in_progress" if until is None else "completed",
                    how="at work" if until is None else "over",
                    **facts,
                )
            )
    return found
