"""What `handrail watch` shows: one reading of the store, as lines that fit a terminal. Nothing is printed here.

`frame` is a function of that reading, the size and the time. What does not fit is counted, never silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.presence import claims_of
from handrail.domain.gates.gate import REVIEW
from handrail.domain.overview.events import told
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli.chosen import workflow_meant
from handrail.surfaces.cli.columns import as_words, bar, bold, counted, dim, fit, mark, pad, paint, widest, width
from handrail.surfaces.cli.see.status import Active, OpenWork, OpenWorkflow, WaitingQuestion
from handrail.surfaces.cli.see.status import read_status as look_at_status
from handrail.toolsets.plan.agent import ListAgents, agent_list

EVENTS = 200
"""How many of the newest events are read: folded, as many as a tall terminal shows."""
AGENTS = 50
LATE_AFTER = 2
"""After this many missed heartbeats an agent is late; after three it is lost."""
BAR = 12
MOVED = "pipeline.moved"
"""A run's turn: the one kind of event that comes in series, and that says where its run is."""
_TIERS = {"ok": ("●", "completed"), "late": ("◐", "paused"), "lost": ("✗", "failed")}
"""Each tier's mark, and the state whose colour it uses."""


class Watcher(msgspec.Struct, frozen=True, kw_only=True):
    """An agent being watched."""

    name: str
    tier: str
    """ok, late or lost."""
    heard_at: int | None
    task: str | None


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One event in words."""

    at: int
    """The time of the newest, if several are folded."""
    who: str
    kind: str
    about: str
    words: str = ""
    """The same for people: what was done, to what, by name."""
    times: int = 1
    """How many similar ones came in a row."""


class WatchReading(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a frame shows."""

    title: str
    now: int
    status: OpenWork
    agents: tuple[Watcher, ...]
    agents_in_all: int
    events: tuple[Happened, ...]
    position: int = 0
    """The position of the newest event it includes."""


class FrameSize(NamedTuple):
    columns: int
    rows: int


class _Section(NamedTuple):
    """A heading and its lines; at least `least` of them stay as long as anything does."""

    title: str
    lines: list[str]
    least: int
    more: int = 0
    """How many more there are than lines here, before any were cut."""


# -- looking ----------------------------------------------------------------------------------------------------------


def read_frame(call: Call, workflow: str | None, title: str) -> WatchReading:
    """Reads everything open here, or one workflow."""
    unit = call.work
    status = look_at_status(call, workflow)
    found = agent_list(call, ListAgents(limit=AGENTS))
    agents = [_watcher(call, agent) for agent in found.agents]
    shown = [agent for agent in agents if agent is not None]
    only = Only(streams=(workflow_meant(call, workflow).id,)) if workflow is not None else Only()
    return WatchReading(
        title=status.workflows[0].name if workflow is not None and status.workflows else title,
        now=unit.now_ms(),
        status=status,
        agents=tuple(sorted(shown, key=lambda agent: (agent.tier != "lost", agent.task is None, agent.name))),
        agents_in_all=len(shown) + max(0, found.total - len(found.agents)),
        events=tuple(_grouped_events(unit, unit.newest(EVENTS, only))),
        position=unit.position(),
    )


def _watcher(call: Call, agent: dict[str, Any]) -> Watcher | None:
    """None for an agent that has left and holds nothing: nobody waits for it."""
    seen = agent["liveness"]
    task = agent.get("current_task", {}).get("name") or _left_behind(call.work, agent["id"])
    heard_at = seen.get("last_call")
    if seen["state"] == "lost" and task is None:
        return None
    silent = call.work.now_ms() - heard_at if heard_at else 0
    late = silent > LATE_AFTER * call.crew.heartbeat_ms
    tier = "lost" if seen["state"] == "lost" else "late" if late else "ok"
    return Watcher(name=agent["name"], tier=tier, heard_at=heard_at, task=task)


def _left_behind(unit: UnitOfWork, agent_id: str) -> str | None:
    """The task of a claim that expired and that nobody has taken since."""
    _, lapsed = claims_of(unit, agent_id)
    task = unit.get(Task, lapsed[0].id) if lapsed else None
    return task.name if task is not None else None


def _grouped_events(unit: UnitOfWork, events: Sequence[Event]) -> Iterator[Happened]:
    """Events in words, newest first. The newest of similar ones in a row stands for all: a run that takes turn after
    turn would crowd out everything else."""

    def alike(event: Event) -> tuple[str, str, str]:
        about = event.stream if event.kind == MOVED else _subject(unit, event)
        return event.actor, event.kind, about

    groups = [list(group) for _, group in groupby(reversed(events), alike)]
    words = told(unit, [newest for newest, *_ in groups])
    for newest, *older in groups:
        happened = _happened(unit, newest)
        yield msgspec.structs.replace(happened, words=words[newest.position], times=1 + len(older))


def _happened(unit: UnitOfWork, event: Event) -> Happened:
    agent = unit.get(Agent, event.actor)
    return Happened(
        at=event.at_ms,
        who=agent.name if agent is not None else event.actor,
        kind=event.kind,
        about=_subject(unit, event),
    )


def _subject(unit: UnitOfWork, event: Event) -> str:
    """The name of what an event is about: its task, or what its stream belongs to; for a run's turn, the phase."""
    for change in event.changes:
        if event.kind != MOVED and change.table == "task" and (task := unit.get(Task, change.key)) is not None:
            return task.name
    workflow = unit.get(Workflow, event.stream)
    if workflow is not None:
        phase = event.data.get("phase") if event.kind == MOVED else None
        return f"{workflow.name}, at {phase}" if phase else workflow.name
    inbox = event.stream.removeprefix("inbox:")
    agent = unit.get(Agent, inbox)
    return agent.name if agent is not None else inbox


# -- drawing ----------------------------------------------------------------------------------------------------------


def frame(look: WatchReading, size: FrameSize, zone: tzinfo | None = None) -> list[str]:
    """The reading as at most `size.rows` lines of at most `size.columns` columns."""
    room = size.columns
    sections = [
        section
        for section in (
            _waiting(look.status, room),
            _workflows(look.status, room),
            _under_way(look.status, room),
            _agents(look, room),
            _events(look, room, zone),
        )
        if section.lines
    ]
    lines = [_heading(look, room, zone)]
    if not look.status.workflows:
        lines += ["", fit("No workflow is open here. Ask your agent to plan its work with Handrail.", room)]
    given = _rows_per_section(sections, size.rows - len(lines))
    for section, rows in zip(sections, given, strict=True):
        lines += _section_lines(section, rows)
    return lines[: max(1, size.rows)]


def _heading(look: WatchReading, room: int, zone: tzinfo | None) -> str:
    clock = _clock(look.now, zone)
    title = fit(f"Handrail  {look.title}", max(1, room - len(clock) - 2))
    return f"{bold(title)}{' ' * (room - width(title) - len(clock))}{dim(clock)}" if room > len(clock) + 2 else title


def _rows_per_section(sections: Sequence[_Section], rows: int) -> list[int]:
    """How many lines each section gets, not counting its heading: first the minimum of each, as far as there is room,
    then more in order. A section that gets none is left out."""
    given = [0] * len(sections)
    for number, section in enumerate(sections):
        least = min(section.least, len(section.lines))
        needed = 2 + least  # a blank line and the heading
        if needed <= rows:
            given[number] = least
            rows -= needed
    for number, section in enumerate(sections):
        if given[number]:
            added = min(rows, len(section.lines) + bool(section.more) - given[number])
            given[number] += added
            rows -= added
    return given


def _section_lines(section: _Section, rows: int) -> Iterator[str]:
    """As many lines as there is room for; the last says how many are missing."""
    if not rows:
        return
    yield ""
    yield bold(section.title)
    shown = section.lines if len(section.lines) + bool(section.more) <= rows else section.lines[: rows - 1]
    yield from shown
    missing = len(section.lines) - len(shown) + section.more
    if missing:
        yield dim(f"  and {missing} more")


def _waiting(status: OpenWork, room: int) -> _Section:
    decisions = [question for question in status.questions if question.kind != REVIEW]
    reviews = [question for question in status.questions if question.kind == REVIEW]
    lines = [_decision(question, room) for question in decisions]
    lines += [f"  {paint('!', 'paused')} {_question_line(question, question.question, room)}" for question in reviews]
    if status.unread_messages:
        unread = f"{counted(status.unread_messages, 'unread message')}: handrail message"
        lines.append(f"  {paint('✉', 'paused')} {fit(unread, room - 4)}")
    return _Section("Waiting for you", lines, least=4)


def _decision(question: WaitingQuestion, room: int) -> str:
    answers = f" ({' / '.join(question.options)})" if question.options else ""
    of_run = f' of "{question.run}"' if question.run is not None else ""
    return f"  {paint('?', 'paused')} {_question_line(question, f'{question.question}{of_run}{answers}', room)}"


def _question_line(question: WaitingQuestion, text: str, room: int) -> str:
    since = f", for {spoken_time(question.for_ms)}"
    return fit(text, max(1, room - 4 - width(since))) + since if room > width(since) + 12 else fit(text, room - 4)


def _workflows(status: OpenWork, room: int) -> _Section:
    names = widest((one.name for one in status.workflows), max(12, room // 3))
    lines = [_workflow(one, names, room) for one in status.workflows]
    return _Section("Workflows", lines, least=3, more=status.more_workflows)


def _workflow(one: OpenWorkflow, names: int, room: int) -> str:
    beginning = f"  {mark(one.status)} {pad(one.name, names)}  "
    left = room - 6 - names
    if not one.total_tasks or one.run is not None:
        return beginning + fit(one.why, left)
    counts = one.by_status
    words = [
        f"{one.finished_tasks}/{one.total_tasks}",
        *(
            f"{counts[state]} {as_words(state)}"
            for state in ("in_progress", "planning", "paused", "failed")
            if counts[state]
        ),
        *([f"{one.ready_tasks} ready"] if one.ready_tasks else []),
    ]
    drawn = f"{bar(one.finished_tasks, one.total_tasks, BAR)} " if left > BAR + 10 else ""
    return beginning + fit(drawn + ", ".join(words), left)


def _under_way(status: OpenWork, room: int) -> _Section:
    tasks = [task for one in status.workflows for task in (*one.running, *one.failed)]
    tasks.sort(key=lambda task: (task.status == "failed", -task.since))
    names = widest((task.name for task in tasks), max(12, room // 3))
    counted = sum(
        one.by_status[state] for one in status.workflows for state in ("planning", "in_progress", "paused", "failed")
    )
    lines = [
        f"  {mark(task.status)} {pad(task.name, names)}  {fit(_state_words(task), room - 6 - names)}" for task in tasks
    ]
    return _Section("Under way", lines, least=3, more=max(0, counted - len(tasks)))


def _state_words(task: Active) -> str:
    since = spoken_time(task.for_ms)
    if task.status == "failed":
        return f"failed {since} ago: {task.error or 'without a reason'}"
    words = f"{since} {task.whose}" if task.whose else since
    words = words if task.status == "in_progress" else f"{as_words(task.status)} {words}"
    if task.last_checkpoint is None:
        return words
    ago = spoken_time(max(0, task.since + task.for_ms - task.last_checkpoint.created_at))
    return f"{words}; {ago} ago: {task.last_checkpoint.summary}"


def _agents(look: WatchReading, room: int) -> _Section:
    names = widest((agent.name for agent in look.agents), max(8, room // 5))
    lines = [_agent(agent, look.now, names, room) for agent in look.agents]
    return _Section("Agents", lines, least=2, more=max(0, look.agents_in_all - len(look.agents)))


def _agent(agent: Watcher, now: int, names: int, room: int) -> str:
    sign, colour = _TIERS[agent.tier]
    heard = f"{agent.tier}, {spoken_time(max(0, now - agent.heard_at))} ago" if agent.heard_at else agent.tier
    words = f"{heard}; {agent.task}" if agent.task else f"{heard}; without a task"
    return f"  {paint(sign, colour)} {pad(agent.name, names)}  {fit(words, room - 6 - names)}"


def _events(look: WatchReading, room: int, zone: tzinfo | None) -> _Section:
    left = room - len(_clock(look.now, zone)) - 4
    who = widest((event.who for event in look.events), max(4, left // 5))
    left -= who + 2
    lines = [
        f"  {dim(_clock(event.at, zone))}  {pad(event.who, who)}  {_event_words(event, left)}".rstrip()
        for event in look.events
    ]
    return _Section("Newest", lines, least=3)


def _event_words(event: Happened, room: int) -> str:
    """What was done, and how often if more than once."""
    times = "" if event.times == 1 else f" ×{event.times}"
    words = event.words or f"{event.kind} {event.about}"
    return fit(words, room - width(times)) + times if room > width(times) else fit(words, max(0, room))


def _clock(at_ms: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at_ms / 1000, zone).strftime("%H:%M:%S")
