"""What must be true of a ledger after a crew has worked on one workflow, whatever was done to its agents. Pure: from
the recorded events and from what every agent said, to what is wrong. Looks at the whole history, not at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.kernel.ledger import Change, Event

Said = dict[str, Any]
LISTED = 15
"""Losses that an agent is told of at once."""
PLANNING = ("workflow.created", "workflow.extended")
"""Events of the stream that are about no task in particular."""
ENDS = ("task.completed", "task.released")


class Life(msgspec.Struct):
    """One process of an agent: what it said, how it ended, and what others were known to have taken from it before it
    began."""

    name: str
    number: int
    agent_id: str | None = None
    said: list[Said] = msgspec.field(default_factory=list)
    killed: bool = False
    lost_before: set[str] = msgspec.field(default_factory=set)

    @property
    def acks(self) -> list[Said]:
        return [line for line in self.said if "did" in line]

    @property
    def refusals(self) -> list[Said]:
        return [line for line in self.said if "refused" in line]


class Write(NamedTuple):
    """An event, and the task it is about."""

    event: Event
    task: str

    def __str__(self) -> str:
        return f"{self.event.seq} {self.event.kind} of {self.task} by {self.event.actor}"

    @property
    def mark(self) -> str | None:
        """What its writer called it."""
        for change in self.event.changes:
            text = (change.after or {}).get("summary" if change.table == "checkpoint" else "outcome")
            if text is not None:
                return str(text)
        return None

    @property
    def lease(self) -> Change | None:
        return next((change for change in self.event.changes if change.table == "lease"), None)


class Counts(NamedTuple):
    """What a run came to."""

    tasks: int
    claims: int
    takeovers: int
    resumed: int
    held: int
    """Writes that were refused because another had the task."""


def audit(
    events: Sequence[Event], workflow: str, needs: Mapping[str, Sequence[str]], lives: Sequence[Life]
) -> list[str]:
    """Everything that is wrong; empty when nothing is. `events` are those of all streams in their order, `needs` is the
    plan: what each task waits for, by name."""
    stream = [event for event in events if event.stream == workflow]
    ids = task_ids(stream)
    if ids.keys() != needs.keys():
        return [f"the plan has {len(needs)} tasks, the ledger {len(ids)}"]
    writes = list(writes_of(stream))
    strange = [f"{event.seq} {event.kind}: nobody knows which task it is about" for event in _strange(stream, writes)]
    return [
        *strange,
        *_counted(stream),
        *_done_once(writes, ids),
        *_fences(writes),
        *_holders(writes),
        *_needs(writes, ids, needs),
        *_acknowledged(writes, lives),
        *_refused(writes, lives),
        *_unheard(events, writes, lives),
        *_told(lives),
    ]


def counts(events: Sequence[Event], workflow: str, lives: Sequence[Life]) -> Counts:
    writes = list(writes_of(event for event in events if event.stream == workflow))
    kinds = Counter(write.event.kind for write in writes)
    takeovers = sum("taken_from" in write.event.data for write in writes)
    held = sum(line["refused"] == "CLAIM_HELD" for life in lives for line in life.refusals)
    return Counts(kinds["task.completed"], kinds["task.claimed"], takeovers, kinds["task.claim_resumed"], held)


def task_ids(stream: Iterable[Event]) -> dict[str, str]:
    """The tasks of a plan by name, from the events that made them."""
    made = (change for event in stream for change in event.changes if change.table == "task" and change.before is None)
    return {change.after["name"]: change.key for change in made if change.after is not None}


def writes_of(stream: Iterable[Event]) -> Iterator[Write]:
    for event in stream:
        if event.kind not in PLANNING and (task := _subject(event)) is not None:
            yield Write(event, task)


def _subject(event: Event) -> str | None:
    """The one task an event is about. Others may change with it: those that it sets free."""
    for change in event.changes:
        if change.table == "lease":
            return change.key
        if change.table == "checkpoint" and change.after is not None:
            return str(change.after["task_id"])
    moved = [change.key for change in event.changes if change.table == "task" and "status" in (change.after or {})]
    return moved[0] if len(moved) == 1 else None


def _strange(stream: Iterable[Event], writes: Iterable[Write]) -> list[Event]:
    known = {write.event.seq for write in writes}
    return [event for event in stream if event.kind not in PLANNING and event.seq not in known]


def _counted(stream: Sequence[Event]) -> Iterator[str]:
    for place, event in enumerate(stream, 1):
        if event.seq != place:
            yield f"event {event.seq} stands where {place} should"
            return


def _done_once(writes: Sequence[Write], ids: Mapping[str, str]) -> Iterator[str]:
    done = Counter(write.task for write in writes if write.event.kind == "task.completed")
    for name, task in ids.items():
        if done[task] != 1:
            yield f"{name} ({task}) was completed {done[task]} times"


def _fences(writes: Sequence[Write]) -> Iterator[str]:
    """Every claim of a task is under the next fence, for the one who asked, and a takeover found the lease run out."""
    fences: Counter[str] = Counter()
    for write in writes:
        if write.event.kind != "task.claimed":
            continue
        fences[write.task] += 1
        data, lease = write.event.data, write.lease
        if data["fence"] != fences[write.task]:
            yield f"{write} is under fence {data['fence']}, not {fences[write.task]}"
        after, before = (lease.after or {}, lease.before or {}) if lease is not None else ({}, {})
        if {after.get("holder", write.event.actor), data["agent_id"]} != {write.event.actor}:
            yield f"{write} gives the task to another"
        left_ms = before.get("expires_ms", 0) - write.event.at_ms
        if left_ms > 0 and not data.get("again"):  # an agent that comes back in time takes up what is still its own
            yield f"{write} took a claim that had {left_ms} ms to run"


def _holders(writes: Sequence[Write]) -> Iterator[str]:
    """Every write to a task is that of the agent that had it just then, under the fence it had it under."""
    held: dict[str, tuple[str, int]] = {}
    ended: set[str] = set()
    for write in writes:
        event, task = write.event, write.task
        if task in ended:
            yield f"{write} comes after the task was done"
        holder, fence = held.get(task, ("nobody", 0))
        if event.kind == "task.claimed":
            before = holder if holder not in ("nobody", event.actor) else None
            if event.data.get("taken_from") != before:
                yield f"{write} was taken from {event.data.get('taken_from')}, but {holder} had it"
            held[task] = (event.actor, event.data["fence"])
            continue
        if event.actor != holder:
            yield f"{write} while {holder} had it"
        elif write.mark is not None and marked_fence(write.mark) != fence:
            yield f"{write} was meant for fence {marked_fence(write.mark)}, and fence {fence} was there"
        if event.kind in ENDS:
            held.pop(task, None)
        if event.kind == "task.completed":
            ended.add(task)


def marked_fence(mark: str) -> int:
    return int(mark.split("/")[2])


def _needs(writes: Sequence[Write], ids: Mapping[str, str], needs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    waits = {ids[name]: {ids[need] for need in found} for name, found in needs.items()}
    done: set[str] = set()
    for write in writes:
        if write.event.kind in ("task.claimed", "task.in_progress") and not waits[write.task] <= done:
            yield f"{write} before {sorted(waits[write.task] - done)[0]} was done"
        if write.event.kind == "task.completed":
            done.add(write.task)


def _key(write: Write) -> tuple[str, str, str]:
    """What an acknowledgement and its event have in common."""
    if write.event.kind == "task.claimed":
        return (write.event.actor, write.task, f"fence {write.event.data['fence']}")
    return (write.event.actor, write.task, str(write.mark))


def _acked_key(life: Life, ack: Said) -> tuple[str, str, str]:
    return (str(life.agent_id), ack["task"], f"fence {ack['fence']}" if ack["did"] == "claim" else str(ack["mark"]))


def _answerable(writes: Iterable[Write]) -> list[Write]:
    """The writes that are answered on their own: what begins with a claim is answered with it."""
    return [write for write in writes if write.event.kind in ("task.claimed", "checkpoint.added", "task.completed")]


def _acknowledged(writes: Sequence[Write], lives: Sequence[Life]) -> Iterator[str]:
    """What an agent was told to be done is there, once, as its own."""
    there = Counter(_key(write) for write in _answerable(writes))
    for life in lives:
        for ack in life.acks:
            found = there[_acked_key(life, ack)]
            if found != 1:
                yield f"lost: {life.name} was told of its {ack['did']} of {ack['task']}; it is there {found} times"


def _refused(writes: Sequence[Write], lives: Sequence[Life]) -> Iterator[str]:
    """What was refused is not there, unless it was done when it was asked again."""
    there = {write.mark for write in writes}
    for life in lives:
        done = {ack["mark"] for ack in life.acks}
        perhaps = {line["mark"] for line in life.refusals if line["unknown"] and "mark" in line}
        for line in life.refusals:
            mark = line.get("mark")
            if mark is not None and mark in there and mark not in done | perhaps:
                yield f"{life.name} was refused {mark} ({line['refused']}), and it is there"


def _unheard(events: Sequence[Event], writes: Sequence[Write], lives: Sequence[Life]) -> Iterator[str]:
    """What is there without its agent having been told is the last thing before that process was killed, or one whose
    answer was lost on the way."""
    acked = {_acked_key(life, ack) for life in lives for ack in life.acks}
    deaths = Counter(life.agent_id for life in lives if life.killed)
    perhaps = {
        (life.agent_id, line["task"]) for life in lives for line in life.refusals if "task" in line and line["unknown"]
    }
    last = _last_of_lives(events, writes)
    for write in _answerable(writes):
        actor = write.event.actor
        if _key(write) in acked or (actor, write.task) in perhaps:
            continue
        deaths[actor] -= 1
        if deaths[actor] < 0 or write.event.position not in last:
            yield f"{write} was never acknowledged, and its process lived on"


def _last_of_lives(events: Sequence[Event], writes: Sequence[Write]) -> set[int]:
    """The positions of those writes after which their agent wrote nothing before it came anew, or nothing at all."""
    answerable = {write.event.position for write in _answerable(writes)}
    newest: dict[str, int] = {}
    last: set[int] = set()
    for event in events:
        if event.kind == "agent.registered":
            last.add(newest.pop(event.stream, 0))
        elif event.position in answerable:
            newest[event.actor] = event.position
    return last | set(newest.values())


def _told(lives: Sequence[Life]) -> Iterator[str]:
    """An agent that comes back is told what others have now."""
    for life in lives:
        told = next((line for line in life.said if "here" in line), None)
        if told is None or len(told["lost"]) >= LISTED:
            continue
        for task in sorted(life.lost_before - set(told["lost"])):
            yield f"{life.name} came back and was not told that it had lost {task}"
