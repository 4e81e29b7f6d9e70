"""Explains in one sentence why a task or a workflow is where it is, and what would move it.

The cause of waiting is a task that can move (`work/blockers.py`); tasks in between only pass the waiting on. For people
and pages; `work/transitions.py` decides which moves are legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from handrail.domain.claims.claim import left_by, missing, whose
from handrail.domain.crew.agent import Agent, agent_name
from handrail.domain.crew.presence import is_present
from handrail.domain.gates.gate import Gate
from handrail.domain.journal.plan_steps import steps_left
from handrail.domain.work.blockers import (
    FEW,
    LOOKED_AT,
    SILENT_MS,
    URGENCY,
    behind,
    can_move,
    legal_moves,
    movable,
    status_or_ready,
)
from handrail.domain.work.lease import Lease, holder_of
from handrail.domain.work.plan_edit import places_taken, tally_of
from handrail.domain.work.task import AT_WORK, Dependency, Task, dependency
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.records import Query, UnitOfWork, chunks
from handrail.kernel.wording import on_one_line, shortened

NAMED_CAUSES = 10
"""Causes listed in an explanation; its sentence names fewer."""
ALSO_NAMED = 3
OPEN_QUESTIONS = 200
AGENTS = 200
"""How many agents, newest first, are checked for what a task requires."""
NAME, TOLD = 80, 160
"""Characters of an agent's text that a sentence quotes."""
_BESIDES_WAITING = {"failed": "failed and ", "paused": "is paused and "}
_DEADLOCK = "waits for tasks that cannot move either: replan what is left"


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A task that can move and that something else waits for."""

    id: str
    name: str
    status: str
    moves: tuple[str, ...]
    """The statuses it may change to now."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task or workflow is where it is."""

    id: str
    name: str
    status: str
    """As shown to everyone; a pending task that nothing holds back is `ready`."""
    sentence: str
    causes: tuple[Cause, ...] = ()
    """The most urgent first."""
    path: tuple[str, ...] = ()
    """Names from the thing itself to the first cause, if that is another task."""
    whole: bool = True
    """False if there was more behind it than was examined."""


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
    """Open questions by task; the workflow's own is under None."""


def explain_task(unit: UnitOfWork, task: Task) -> Explanation:
    """Why a task is where it is."""
    workflow = workflow_of(unit, task)
    scene = _scene(unit, workflow)
    if task.is_finished:
        ended_at = task.finished_at if task.finished_at is not None else task.updated_at  # imported ones may lack it
        return _explanation(scene, task, f"was {task.status} {_ago(scene, ended_at)}{_after_colon(task.outcome)}")
    if workflow.status in CLOSED:
        ended = f"workflow {_quoted(workflow.name)} was {workflow.status} {_ago(scene, workflow.updated_at)}"
        return _explanation(scene, task, f"will not move: {ended}")
    if not can_move(task):
        return _explain_waiting(scene, task)
    return _explanation(scene, task, _own_state_words(scene, task), [task])


def explain_workflow(unit: UnitOfWork, workflow: Workflow, *, completed_by: str = "") -> Explanation:
    """Why a workflow is where it is: which part of it moves, or what would make it move. `completed_by` tells the
    reader how to complete a workflow, where that is not obvious."""
    scene = _scene(unit, workflow)
    tally = tally_of(unit, workflow.id)
    question = scene.questions.get(None)
    if workflow.status in CLOSED:
        left = f" with {tally.unfinished} of {tally.total} tasks open" if tally.unfinished else ""
        return _of_workflow(workflow, f"was {workflow.status} {_ago(scene, workflow.updated_at)}{left}")
    if question is not None:
        return _of_workflow(workflow, _asks(scene, question))
    if workflow.status == "paused":
        return _of_workflow(workflow, "is paused: resume it")
    if workflow.status == "failed":
        return _of_workflow(workflow, "failed: set it in progress again or abandon it")
    if not tally.total:
        return _of_workflow(workflow, "has no tasks: give it a plan")
    if not tally.unfinished:
        how = f" ({completed_by})" if completed_by else ""
        if to_come := steps_left(unit, workflow):
            step, more = _quoted(to_come[0].text), f" and {len(to_come) - 1} more" if len(to_come) > 1 else ""
            missing_steps = f"nobody has started step {step}{more} of its plan"
            return _of_workflow(workflow, f"has no open tasks, but {missing_steps}: start it, or end the workflow{how}")
        move = "complete it" if workflow.status == "in_progress" else "set it in progress, then complete it"
        return _of_workflow(workflow, f"has no open tasks left: {move}{how}")
    return _explain_standing(scene)


def why_before(first: Ranked, second: Ranked) -> str:
    """Why a ready task precedes the next one: priority, then sequence, then how much it unblocks; empty for a tie."""
    if first.priority != second.priority:
        return f"priority {first.priority}, the next has {second.priority}"
    if first.sequence != second.sequence:
        return "earlier in the plan"
    if first.unblocks != second.unblocks:
        return f"unblocks {first.unblocks}, the next {second.unblocks}"
    return ""


def _scene(unit: UnitOfWork, workflow: Workflow) -> _Scene:
    open_here = (("workflow_id", workflow.id), ("status", "open"), ("kind", "decision"))
    asked = unit.select(Gate, Query(open_here, ("-created_at", "-id"), OPEN_QUESTIONS))
    return _Scene(unit, workflow, unit.now_ms(), {gate.task_id: gate for gate in asked})


def _own_state_words(scene: _Scene, task: Task) -> str:
    """The words for a task that can move itself."""
    if task.status == "in_progress" and task.id not in scene.questions and not _is_stuck(scene, task):
        return f"{_state(scene, task)}; nothing blocks it"
    return _state_and_move(scene, task)


def _explain_waiting(scene: _Scene, task: Task) -> Explanation:
    found = behind(scene.unit, task)
    if not found.causes:
        return _explanation(scene, task, _DEADLOCK) if found.whole else _explain_far(scene, task)
    causes = _most_urgent(scene, found.causes)
    path = [causes[0]]
    while path[-1].id != task.id:
        path.append(found.waiting[path[-1].id])
    path.reverse()
    words = f"{_BESIDES_WAITING.get(task.status, '')}{_chain(scene, path)} {_state_and_move(scene, causes[0])}"
    if len(causes) > 1:
        words += f"; it also waits for {_listed(scene, causes[1:], counted=found.whole)}"
    if not found.whole:
        words += f" (it waits for more than {LOOKED_AT:,} tasks, and not all of them were checked)"
    return _explanation(scene, task, words, causes, path=tuple(step.name for step in path), whole=found.whole)


def _explain_far(scene: _Scene, task: Task) -> Explanation:
    """For a task behind so many others that the search ended before finding a cause. If only one task in the workflow
    can move, that one is the cause; if several can, one of them is."""
    causes = _most_urgent(scene, movable(scene.unit, scene.workflow.id))
    if not causes:
        return _explanation(scene, task, _DEADLOCK, whole=False)
    first = causes[0]
    which = "the first" if len(causes) == 1 else "of the tasks that can move, the most urgent"
    words = (
        f"waits for more than {LOOKED_AT:,} tasks in a row; {which}, {_quoted(first.name)}, "
        f"{_state_and_move(scene, first)}"
    )
    return _explanation(scene, task, words, causes, whole=False)


def _explain_standing(scene: _Scene) -> Explanation:
    causes = _most_urgent(scene, movable(scene.unit, scene.workflow.id))
    if not causes:
        return _of_workflow(scene.workflow, "is stuck, since none of its tasks can move: replan what is left")
    lead = "is idle;"
    moving = [cause.id for cause in causes if cause.status in AT_WORK and not _is_stuck(scene, cause)]
    if moving:
        causes.sort(key=lambda cause: cause.status == "pending")  # tasks that merely could be started come last
        lead = "is under way:" if causes[0].id in moving else "is under way, but"
    first = causes[0]
    said = _state(scene, first) if lead.endswith("way:") else _state_and_move(scene, first)
    words = f"{lead} {_quoted(first.name)} {said}"
    if len(causes) > 1:
        words += f"; also {_listed(scene, causes[1:], counted=len(causes) < FEW)}"
    return _of_workflow(scene.workflow, words, [_cause(scene, cause) for cause in causes[:NAMED_CAUSES]])


def _most_urgent(scene: _Scene, tasks: Iterable[Task]) -> list[Task]:
    """Most in need of attention first; ties keep the order they were found in. A task whose agent has gone silent comes
    right after failed ones: both need attention, even if the task is nominally under way."""
    found = list(tasks)
    claimed = [task.id for task in found if task.status in AT_WORK and task.assigned_agent_id is not None]
    for chunk in chunks(claimed):  # loaded together, so that leases are not fetched one by one
        scene.unit.select(Lease, Query((("id", chunk),)))

    def rank(task: Task) -> float:
        if task.id in scene.questions:
            return -1
        return 0.5 if _is_stuck(scene, task) else URGENCY.index(task.status)

    return sorted(found, key=rank)


def _is_deserted(scene: _Scene, task: Task) -> bool:
    """Whether it was started under a claim that has since expired."""
    claimed = task.status in AT_WORK and task.assigned_agent_id is not None
    return claimed and holder_of(scene.unit, task) is None


def _is_stuck(scene: _Scene, task: Task) -> bool:
    """Whether it is under way in name only: its agent is gone, or nothing has been heard of it for a long time."""
    if task.status not in AT_WORK or task.open_children:
        return False
    return scene.now - task.updated_at >= SILENT_MS or _is_deserted(scene, task)


def _chain(scene: _Scene, path: Sequence[Task]) -> str:
    """What a task waits for, down to a task that can move. The caller appends the state of that task."""
    first, last = path[1], path[-1]
    words = f"waits{_as_part(scene, path[0], first)} for {_subtask_word(first, path[0])}{_quoted(first.name)}"
    if len(path) == 2:
        return f"{words}, which"
    if len(path) == 3:
        return f"{words}, which waits for {_subtask_word(last, first)}{_quoted(last.name)}; {_quoted(last.name)}"
    return f"{words}, the last of {len(path) - 1} tasks in a row; the first, {_quoted(last.name)},"


def _as_part(scene: _Scene, task: Task, need: Task) -> str:
    """Which of its enclosing tasks causes the wait, if it is not the task itself."""
    held: Task | None = task
    while held is not None:
        link = scene.unit.get(Dependency, dependency(held.workflow_id, held.id, need.id).id)
        if link is None or not link.inherited:
            return f", as part of {_quoted(held.name)}," if link is not None and held.id != task.id else ""
        held = scene.unit.get(Task, held.parent_task_id) if held.parent_task_id is not None else None
    return ""


def _subtask_word(part: Task, whole: Task) -> str:
    return "its subtask " if part.parent_task_id == whole.id else ""


def _state_and_move(scene: _Scene, task: Task) -> str:
    """The state of a task that can move, and what can be done about it."""
    return f"{_state(scene, task)}{_move(scene, task)}"


def _state(scene: _Scene, task: Task) -> str:
    """The state of a task that can move, as the end of a sentence about it."""
    question = scene.questions.get(task.id)
    if question is not None:
        return _asks(scene, question)
    if task.status == "failed":
        again = f" on attempt {task.attempts}" if task.attempts > 1 else ""
        told = f" ({_quoted(task.error, TOLD)})" if task.error else ""
        return f"failed {_ago(scene, task.updated_at)}{again}{told}"
    if task.status == "pending":
        lease = holder_of(scene.unit, task)
        claimed = f" and claimed by {agent_name(scene.unit, lease.holder or '')}" if lease is not None else ""
        again = f" again, after {task.attempts} {'try' if task.attempts == 1 else 'tries'}" if task.attempts else ""
        return f"is ready{again}{claimed}"
    if _is_deserted(scene, task):
        return f"was {left_by(scene.unit, task)}"
    if task.status == "in_progress":
        return f"has been in progress for {_since(scene, task.started_at)}{_worker_and_last_news(scene, task)}"
    word = "in planning" if task.status == "planning" else "paused"
    return f"has been {word} for {_since(scene, task.updated_at)}"


def _worker_and_last_news(scene: _Scene, task: Task) -> str:
    """Who works on it, and when it was last heard from, if that says more than when it began."""
    said = whose(scene.unit, task)
    by = f" {said}" if said else ""
    last = _since(scene, task.updated_at)
    return by if last == _since(scene, task.started_at) else f"{by} (last heard from {last} ago)"


def _move(scene: _Scene, task: Task) -> str:
    """What can be done about a task that can move, with the punctuation that joins it to its state."""
    if task.id in scene.questions:
        return ""  # the state already says who has to answer
    if _is_deserted(scene, task):
        return ": take it over, or release it"
    if _is_stuck(scene, task):
        alone = task.assigned_agent_id is None  # then there is nothing to release
        return f": check whether it is still being worked on, or {'go on with it' if alone else 'release it'}"
    if task.status == "in_progress":
        return "; wait for it"
    if scene.workflow.status == "paused":
        return f", but workflow {_quoted(scene.workflow.name)} is paused: resume the workflow first"
    if (question := scene.questions.get(None)) is not None:
        return f", but its workflow {_asks(scene, question)}"
    if task.status == "pending" and holder_of(scene.unit, task) is not None:
        return ": wait until it is started, or release it"
    if full := _no_free_place(scene, task):
        skip = ": skip it, or retry it when a running one has ended" if task.status == "failed" else ""
        return f", but {full}{skip}"
    if task.status in ("pending", "failed") and (wanting := _wanting(scene, task)):
        return f", but needs {wanting}, which no agent here has"
    if task.status == "failed":
        return ": retry it" if task.open_children else ": retry it or skip it"
    return {"pending": ": start it", "paused": ": resume it", "planning": ": start it when its plan is ready"}[
        task.status
    ]


def _no_free_place(scene: _Scene, task: Task) -> str:
    """Why a task cannot be started, retried or resumed now, if that is for want of a free slot."""
    if task.status in AT_WORK or task.open_children:  # it has a slot, or leaves it to its parts
        return ""
    running, most = places_taken(scene.unit, scene.workflow.id), scene.workflow.max_parallel_tasks
    if running < most:
        return ""
    already = f"{running} {'is' if running == 1 else 'are'} already running"
    return f"the plan is for {most} {'task' if most == 1 else 'tasks'} at a time and {already}"


def _wanting(scene: _Scene, task: Task) -> str:
    """What a task requires that no present agent has, judged by the agent that lacks the least."""
    if not task.requires:
        return ""
    known = scene.unit.select(Agent, Query((("status", ("online", "busy")),), ("-created_at", "-id"), AGENTS))
    here = [agent for agent in known if is_present(scene.unit, agent.id)]
    lacking = min((missing(task, agent) for agent in here), key=len, default=task.requires)
    return " and ".join(_quoted(need) for need in lacking)


def _listed(scene: _Scene, tasks: Sequence[Task], *, counted: bool) -> str:
    """Some of these tasks by name. `counted` means that these are all of them."""
    named = [f"{_quoted(task.name)} ({_state_word(scene, task)})" for task in tasks[:ALSO_NAMED]]
    if len(tasks) > ALSO_NAMED:
        named.append(f"{len(tasks) - ALSO_NAMED} more" if counted else "others")
    return ", ".join(named[:-1]) + (" and " if len(named) > 1 else "") + named[-1]


def _state_word(scene: _Scene, task: Task) -> str:
    if task.id in scene.questions:
        return "has a question"
    if _is_stuck(scene, task):
        return "stalled"
    return status_or_ready(task).replace("_", " ")


def _asks(scene: _Scene, question: Gate) -> str:
    asked = _ago(scene, question.created_at)
    return f"waits for a person to answer {_quoted(question.question, TOLD)} (asked {asked})"


def _after_colon(text: str | None) -> str:
    return f": {_quoted(text, TOLD)}" if text else ""


def _ago(scene: _Scene, at: int | None) -> str:
    return f"{_since(scene, at)} ago"


def _since(scene: _Scene, at: int | None) -> str:
    return spoken_time(scene.now - (scene.now if at is None else at))


def _quoted(text: str, most: int = NAME) -> str:
    """An agent's text inside a sentence: on one line and shortened."""
    return f'"{shortened(on_one_line(text), most)}"'


def _sentence(words: str) -> str:
    """Ends with a full stop, unless the quoted text at its end already does."""
    return words if words.endswith(('."', '!"', '?"', '…"')) else f"{words}."


def _explanation(
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
        status=status_or_ready(task),
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
    return Cause(id=task.id, name=task.name, status=status_or_ready(task), moves=legal_moves(task, scene.workflow))
