"""What lies in the workspace when an action is handed out. A file that was there before is not what comes of it, and a
task list that was changed after it was accepted is accepted anew. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from handrail.domain.pipeline.documents import tasks_in
from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.state import RunState, TaskState, back_to
from handrail.kernel.errors import InvalidPlan


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def handed_out(
    flow: Flow, state: RunState, files: Mapping[str, str], phase_id: str, tasks: Sequence[int] = ()
) -> RunState:
    """The run once an action of this phase went out to an agent: to be kept with it, before the agent begins.

    Handed out once more, after a crash or for a second reading, the files still stand against what lay there first.
    """
    state = settled(flow, state, files)
    output = flow.phase(phase_id).output
    if output is None:
        return state
    names = [output.replace("{N}", str(number)) for number in tasks] or [output]
    return state.but(before={**{name: text_hash(files.get(name, "")) for name in names}, **state.before})


def is_old(state: RunState, name: str, text: str) -> bool:
    """Whether this text was there before the work was handed out, or was acted on already."""
    found = text_hash(text)
    return state.before.get(name) == found or found in state.judged.get(name, ())


def taken(state: RunState, name: str, text: str) -> RunState:
    """The run once a file was taken for what came of an action."""
    judged = {**state.judged, name: [*state.judged.get(name, ()), text_hash(text)]}
    return state.but(judged=judged, before={file: old for file, old in state.before.items() if file != name})


def task_states(text: str, name: str) -> list[TaskState]:
    """The tasks of a list, none of them begun. Raises InvalidPlan at the line."""
    return [
        TaskState(
            number=task.number,
            title=task.title,
            mode=task.mode,
            depends_on=list(task.depends_on),
            files=list(task.files),
        )
        for task in tasks_in(text, name)
    ]


def settled(flow: Flow, state: RunState, files: Mapping[str, str]) -> RunState:
    """The run with the task list as it lies there, while no task has been handed out.

    A list that is not the one that was accepted is reviewed and shown again; one that cannot be read is written again.
    """
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    if doing is None or state.plan is None:
        return state
    begun = any(_is_begun(task) or _file_of(doing, task) in state.before for task in state.tasks)
    if begun or doing.id in (*state.done, *state.skip, *flow.skip):
        return state
    earlier = flow.phases[: flow.position(doing.id)]
    writer = next((phase for phase in earlier if phase.output == doing.plan and phase.id in state.done), None)
    text = files.get(doing.plan or "", "")
    if writer is None or text_hash(text) == state.plan:
        return state
    try:
        tasks = task_states(text, doing.plan or "")
    except InvalidPlan as problem:
        return back_to(flow, state, writer.id).but(again={**state.again, writer.id: problem.message})
    again = flow.phases[flow.position(writer.id) + 1]
    return back_to(flow, state, again.id).but(tasks=tasks, plan=text_hash(text))


def _file_of(phase: Phase, task: TaskState) -> str:
    return (phase.output or "").replace("{N}", str(task.number))


def _is_begun(task: TaskState) -> bool:
    return task.implemented or task.skipped or task.retries > 0
