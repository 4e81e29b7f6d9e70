"""Why a task or a workflow stands where it stands, in one sentence, and what would move it.

The cause of waiting is a task that can move (`causes.py`); those in between only pass the waiting on. For people and
pages; which moves are legal is `moving.py`'s to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from handrail.domain.crew.claiming import holder_of
from handrail.domain.crew.lease import Lease
from handrail.domain.crew.offering import left_by, whose
from handrail.domain.gates.gate import Gate
from handrail.domain.work.causes import (
    FEW,
    LOOKED_AT,
    SILENT_MS,
    STARTED,
    URGENCY,
    behind,
    can_move,
    legal_moves,
    movable,
)
from handrail.domain.work.editing import CHUNK, places_taken, tally_of
from handrail.domain.work.moving import workflow_of
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

NAMED_CAUSES = 10
"""Causes that an explanation carries; its sentence names fewer."""
ALSO_NAMED = 3
OPEN_QUESTIONS = 200
NAME, TOLD = 80, 160
"""Characters of an agent's text that a sentence quotes."""
_STUCK = "none of its tasks can move; plan what is left anew"


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A task that can move, and for which something waits."""

    id: str
    name: str
    status: str
    moves: tuple[str, ...]
    """The statuses it may take now."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why something stands where it stands."""

    id: str
    name: str
    status: str
    """As everybody sees it; a pending task that nothing holds back is `ready`."""
    sentence: str
    causes: tuple[Cause, ...] = ()
    """The most urgent first."""
    path: tuple[str, ...] = ()
    """Names from the thing itself to the first cause, where that is another task."""
    whole: bool = True
    """False when more lies behind it than was looked at."""


class Ranked(Protocol):
    """What decides which of two ready tasks comes first."""

    @property
    def priority(self) -> int: ...

    @property
    def sequence(self) -> int: ...

    @property
    def unblocks(self) -> int: ...


class _Scene(NamedTuple):
    """What every sentence about one workflow needs."""

    unit: UnitOfWork
    workflow: Workflow
    now: int
    questions: Mapping[str | None, Gate]
    """Open questions by task; under None the workflow's own."""


def explain_task(unit: UnitOfWork, task: Task) -> Explanation:
    """Why a task stands where it stands."""
    workflow = workflow_of(unit, task)
    scene = _scene(unit, workflow)
    if task.is_finished:
        return _about(scene, task, f"was {task.status} {_ago(scene, task.finished_at)}{_told(task.outcome)}")
    if workflow.status in CLOSED:
        ended = f"workflow {_quoted(workflow.name)} was {workflow.status} {_ago(scene, workflow.updated_at)}"
        return _about(scene, task, f"does not move any more: {ended}")
    if not can_move(task):
        return _explain_waiting(scene, task)
    return _about(scene, task, _standing(scene, task), [task])


def explain_workflow(unit: UnitOfWork, workflow: Workflow) -> Explanation:
    """Why a workflow stands where it stands: what of it moves, or what would make it move."""
    scene = _scene(unit, workflow)
    tally = tally_of(unit, workflow.id)
    question = scene.questions.get(None)
    if workflow.status in CLOSED:
        left = f" with {tally.unfinished} of {tally.total} tasks open" if tally.unfinished else ""
        return _of_workflow(workflow, f"was {workflow.status} {_ago(scene, workflow.updated_at)}{left}")
    if question is not None:
        return _of_workflow(workflow, f"{_asks(scene, question)}; answer it")
    if workflow.status == "paused":
        return _of_workflow(workflow, "is paused; resume it")
    if workflow.status == "failed":
        return _of_workflow(workflow, "failed; set it in progress again or abandon it")
    if not tally.total:
        return _of_workflow(workflow, "has no tasks; give it a plan")
    if not tally.unfinished:
        move = "complete it" if workflow.status == "in_progress" else "set it in progress, then complete it"
        return _of_workflow(workflow, f"has no open task left; {move}")
    return _explain_standing(scene)


def why_before(first: Ranked, second: Ranked) -> str:
    """What puts a ready task before the next one: priority, then sequence, then how much it unblocks."""
    if first.priority != second.priority:
        return f"priority {first.priority}, the next has {second.priority}"
    if first.sequence != second.sequence:
        return f"sequence {first.sequence}, the next has {second.sequence}"
    if first.unblocks != second.unblocks:
        return f"unblocks {first.unblocks}, the next {second.unblocks}"
    return "equal to the next"


def _scene(unit: UnitOfWork, workflow: Workflow) -> _Scene:
    open_here = (("workflow_id", workflow.id), ("status", "open"), ("kind", "decision"))
    asked = unit.select(Gate, Query(open_here, ("-created_at", "-id"), OPEN_QUESTIONS))
    return _Scene(unit, workflow, unit.now_ms(), {gate.task_id: gate for gate in asked})


def _standing(scene: _Scene, task: Task) -> str:
    """What is said of a task that can move itself."""
    running, most = places_taken(scene.unit, scene.workflow.id), scene.workflow.max_parallel_tasks
    if task.status == "pending" and scene.workflow.status != "paused" and running >= most:
        return f"is ready and waits for a free place: {running} under way, and {most} may run at once"
    if task.status == "in_progress" and task.id not in scene.questions and not _is_stuck(scene, task):
        return f"{_state(scene, task)}; nothing blocks it"
    return f"{_state(scene, task)}; {_move(scene, task)}"


def _explain_waiting(scene: _Scene, task: Task) -> Explanation:
    found = behind(scene.unit, task)
    if not found.causes:
        return _about(scene, task, f"waits, and {_STUCK}") if found.whole else _explain_far(scene, task)
    causes = _most_urgent(scene, found.causes)
    path = [causes[0]]
    while path[-1].id != task.id:
        path.append(found.waiting[path[-1].id])
    path.reverse()
    words = f"{_chain(path)}, which {_state(scene, causes[0])}; {_move(scene, causes[0])}"
    if len(causes) > 1:
        words += f"; it also waits for {_listed(scene, causes[1:], counted=found.whole)}"
    if not found.whole:
        words += f" (more than {LOOKED_AT:,} tasks lie behind it, and not all were looked at)"
    return _about(scene, task, words, causes, path=tuple(step.name for step in path), whole=found.whole)


def _explain_far(scene: _Scene, task: Task) -> Explanation:
    """For a task behind so many others that the search ended before it met a cause. With only one task in the
    workflow that can move, that is the cause; of several, one is."""
    causes = _most_urgent(scene, movable(scene.unit, scene.workflow.id))
    if not causes:
        return _about(scene, task, f"waits, and {_STUCK}", whole=False)
    first = causes[0]
    relation = "and behind them for" if len(causes) == 1 else "and first of those that can move is"
    words = (
        f"waits for a chain of more than {LOOKED_AT:,} tasks, {relation} {_quoted(first.name)}, "
        f"which {_state(scene, first)}; {_move(scene, first)}"
    )
    return _about(scene, task, words, causes, whole=False)


def _explain_standing(scene: _Scene) -> Explanation:
    causes = _most_urgent(scene, movable(scene.unit, scene.workflow.id))
    if not causes:
        return _of_workflow(scene.workflow, f"stands still: {_STUCK}")
    lead = "stands still:"
    moving = [cause.id for cause in causes if cause.status in STARTED and not _is_stuck(scene, cause)]
    if moving:
        causes.sort(key=lambda cause: cause.status == "pending")  # that more could be started is no trouble
        lead = "moves:" if causes[0].id in moving else "moves, but"
    first = causes[0]
    words = f"{lead} {_quoted(first.name)} {_state(scene, first)}; {_move(scene, first)}"
    if len(causes) > 1:
        words += f"; beside it: {_listed(scene, causes[1:], counted=len(causes) < FEW)}"
    return _of_workflow(scene.workflow, words, [_cause(scene, cause) for cause in causes[:NAMED_CAUSES]])


def _most_urgent(scene: _Scene, tasks: Iterable[Task]) -> list[Task]:
    """What needs somebody first; among equals the order they were found in. What stands still because its agent is not
    heard of comes right after what failed: both need somebody, however much is under way by name."""
    found = list(tasks)
    claimed = [task.id for task in found if task.status in STARTED and task.assigned_agent_id is not None]
    for start in range(0, len(claimed), CHUNK):  # seen once, so that none is asked for alone
        scene.unit.select(Lease, Query((("id", tuple(claimed[start : start + CHUNK])),)))

    def rank(task: Task) -> float:
        if task.id in scene.questions:
            return -1
        return 0.5 if _is_stuck(scene, task) else URGENCY.index(task.status)

    return sorted(found, key=rank)


def _is_deserted(scene: _Scene, task: Task) -> bool:
    """Whether somebody began it under a claim that has run out."""
    claimed = task.status in STARTED and task.assigned_agent_id is not None
    return claimed and holder_of(scene.unit, task) is None


def _is_stuck(scene: _Scene, task: Task) -> bool:
    """Whether it is under way by name alone: its agent is lost, or nothing was heard of it for long."""
    if task.status not in STARTED or task.open_children:
        return False
    return scene.now - task.updated_at >= SILENT_MS or _is_deserted(scene, task)


def _chain(path: Sequence[Task]) -> str:
    first, last = path[1], path[-1]
    words = f"waits for {_its(first, path[0])}{_quoted(first.name)}"
    if len(path) == 3:
        words += f", which waits for {_its(last, first)}{_quoted(last.name)}"
    elif len(path) > 3:
        between = len(path) - 3
        words += f", and behind it and {between} more for {_quoted(last.name)}"
    return words


def _its(part: Task, whole: Task) -> str:
    return "its subtask " if part.parent_task_id == whole.id else ""


def _state(scene: _Scene, task: Task) -> str:
    """What a task that can move is at, as the end of a sentence about it."""
    question = scene.questions.get(task.id)
    if question is not None:
        return _asks(scene, question)
    if task.status == "failed":
        again = f" at attempt {task.attempts}" if task.attempts > 1 else ""
        return f"failed {_ago(scene, task.updated_at)}{again}{_told(task.error)}"
    if task.status == "pending":
        return "is ready"
    if _is_deserted(scene, task):
        return f"stands still, {left_by(scene.unit, task)}"
    if task.status == "in_progress":
        return f"has been in progress for {_since(scene, task.started_at)}{_heard(scene, task)}"
    word = "in planning" if task.status == "planning" else "paused"
    return f"has been {word} for {_since(scene, task.updated_at)}"


def _heard(scene: _Scene, task: Task) -> str:
    """Who works on it, and when it last gave a sign, where that tells more than when it began."""
    said = whose(scene.unit, task)
    by = f" {said}" if said else ""
    last = _since(scene, task.updated_at)
    return by if last == _since(scene, task.started_at) else f"{by} (last heard of {last} ago)"


def _move(scene: _Scene, task: Task) -> str:
    """What can be done about a task that can move."""
    if task.id in scene.questions:
        return "answer it"
    if _is_deserted(scene, task):
        return "it is free to take, or give it back"
    if _is_stuck(scene, task):
        return "see whether it still moves, or give it back"
    if task.status == "in_progress":
        return "wait for it"
    if scene.workflow.status == "paused":
        return f"nothing starts while workflow {_quoted(scene.workflow.name)} is paused: resume it first"
    if task.status == "failed":
        return "retry it" if task.open_children else "retry it or skip it"
    return {"pending": "start it", "paused": "resume it", "planning": "start it once its plan stands"}[task.status]


def _listed(scene: _Scene, tasks: Sequence[Task], *, counted: bool) -> str:
    """Some of these tasks by name. `counted` when these are all there are."""
    named = [f"{_quoted(task.name)} ({_word(scene, task)})" for task in tasks[:ALSO_NAMED]]
    if len(tasks) > ALSO_NAMED:
        named.append(f"{len(tasks) - ALSO_NAMED} more" if counted else "others")
    return ", ".join(named[:-1]) + (" and " if len(named) > 1 else "") + named[-1]


def _word(scene: _Scene, task: Task) -> str:
    if task.id in scene.questions:
        return "asks something"
    if _is_stuck(scene, task):
        return "stands still"
    return _shown(task).replace("_", " ")


def _shown(task: Task) -> str:
    return "ready" if task.status == "pending" and can_move(task) else task.shown_status


def _asks(scene: _Scene, question: Gate) -> str:
    asked = _ago(scene, question.created_at)
    return f"waits for an answer to {_quoted(question.question, TOLD)}, asked {asked}"


def _told(text: str | None) -> str:
    return f": {_quoted(text, TOLD)}" if text else ""


def _ago(scene: _Scene, at: int | None) -> str:
    return f"{_since(scene, at)} ago"


def _since(scene: _Scene, at: int | None) -> str:
    return spoken_time(scene.now - (scene.now if at is None else at))


def _quoted(text: str, most: int = NAME) -> str:
    """An agent's text inside a sentence: on one line, and not too much of it."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= most else f'"{line[: most - 1]}…"'


def _sentence(words: str) -> str:
    """With its full stop, unless somebody's own words at its end have one."""
    return words if words.endswith(('."', '!"', '?"', '…"')) else f"{words}."


def _about(
    scene: _Scene,
    task: Task,
    words: str,
    causes: Sequence[Task] = (),
    *,
    path: tuple[str, ...] = (),
    whole: bool = True,
) -> Explanation:
    return Explanation(
        id=task.id,
        name=task.name,
        status=_shown(task),
        sentence=_sentence(f"{_quoted(task.name)} {words}"),
        causes=tuple(_cause(scene, cause) for cause in causes[:NAMED_CAUSES]),
        path=path,
        whole=whole,
    )


def _of_workflow(workflow: Workflow, words: str, causes: Sequence[Cause] = ()) -> Explanation:
    sentence = _sentence(f"{_quoted(workflow.name)} {words}")
    return Explanation(
        id=workflow.id, name=workflow.name, status=workflow.status, sentence=sentence, causes=tuple(causes)
    )


def _cause(scene: _Scene, task: Task) -> Cause:
    return Cause(id=task.id, name=task.name, status=_shown(task), moves=legal_moves(task, scene.workflow))
