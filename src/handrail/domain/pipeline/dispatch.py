"""What was in the workspace when an action was handed out. A file that already existed is not a result of the action,
and a document changed after a person approved it needs approval again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handrail.domain.pipeline.documents import tasks_in
from handrail.domain.pipeline.flow import Flow, Phase, numbered
from handrail.domain.pipeline.state import RunState, TaskState, back_to, with_reason
from handrail.domain.pipeline.workspace_texts import fingerprint, is_accepted, is_short, unticked, was_there
from handrail.kernel.errors import InvalidPlan


def handed_out(
    flow: Flow, state: RunState, files: Mapping[str, str], phase_id: str, tasks: Sequence[int] = ()
) -> RunState:
    """The run once an action of this phase goes to an agent. Stored together with the action, before the agent starts.

    If the action is handed out again, after a crash or on a second read, the files are still compared with their first
    state.
    """
    state = reopened(flow, settled(flow, state, files), files)
    output = flow.phase(phase_id).output
    if output is None:
        return state
    names = [numbered(output, number) for number in tasks] or [output]
    return state.but(before={**{name: fingerprint(files, name) for name in names}, **state.before})


def is_old(state: RunState, name: str, files: Mapping[str, str]) -> bool:
    """Whether a file is as it was before the work was handed out, or was already acted on."""
    return was_there((state.before.get(name, ""), *state.judged.get(name, ())), fingerprint(files, name))


def accept_file(state: RunState, name: str, files: Mapping[str, str]) -> RunState:
    """The run after a file was accepted as the result of an action."""
    judged = {**state.judged, name: [*state.judged.get(name, ()), fingerprint(files, name)]}
    return state.but(judged=judged, before={file: old for file, old in state.before.items() if file != name})


def task_states(text: str, name: str) -> list[TaskState]:
    """The tasks of a list, none of them started. Raises InvalidPlan naming the line."""
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
    """The run with the task list as it is in the workspace now, as long as no task has been handed out.

    If the list is not the accepted one, it is reviewed and shown again; if it cannot be read, it is written again.
    """
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    if doing is None or state.plan is None:
        return state
    begun = any(_is_begun(task) or doing.output_for(task.number) in state.before for task in state.tasks)
    if begun or doing.id in (*state.done, *state.skip, *flow.skip):
        return state
    earlier = flow.phases[: flow.position(doing.id)]
    writer = next((phase for phase in earlier if phase.output == doing.plan and phase.id in state.done), None)
    text = files.get(doing.plan or "", "")
    if writer is None or is_accepted(state.plan, fingerprint(files, doing.plan or "")):
        return state
    try:
        tasks = task_states(text, doing.plan or "")
    except InvalidPlan as problem:
        return back_to(flow, state, writer.id).but(again={**state.again, writer.id: problem.message})
    again = flow.phases[flow.position(writer.id) + 1]
    return back_to(flow, state, again.id).but(tasks=tasks, plan=fingerprint(files, doing.plan or ""))


def reopened(flow: Flow, state: RunState, files: Mapping[str, str]) -> RunState:
    """The run with every gate reopened whose document has changed since it was approved.

    Only the gate reopens: if approved again, the run continues where it was; if rejected, it goes back as usual.
    """
    for gate in flow.phases:
        if _approved_another(flow, state, gate, files):
            done = [phase for phase in state.done if phase != gate.id]
            state = with_reason(state.but(done=done), gate.id, _why_again(state, gate.shows or "", files))
    return state


def _why_again(state: RunState, name: str, files: Mapping[str, str]) -> str:
    known = state.judged[name][-1]
    if is_short(known) and was_there((known,), fingerprint(files, name)):
        return f"{name} was approved with an older Handrail, which kept too little of its hash to tell it from another"
    return f"{name} was changed after it was approved"


def _approved_another(flow: Flow, state: RunState, gate: Phase, files: Mapping[str, str]) -> bool:
    """Whether this gate was opened for a text that differs from the current one.

    In the task list agents tick off finished tasks: that alone does not count as a change. A file that a later phase
    writes is exempt: it is meant to change.
    """
    name = gate.shows
    if gate.kind != "gate" or name is None or gate.id not in state.done:
        return False
    if state.answers.get(gate.id) != gate.options[0] or not state.judged.get(name):
        return False
    if any(gate.id in phase.after_answer and phase.id in state.done for phase in flow.phases):
        return False  # what the answer let happen has happened: a comment is posted with the text of then
    later = flow.phases[flow.position(gate.id) :]
    if any(phase.output == name for phase in later):
        return False
    if any(phase.plan == name for phase in later):
        return not is_accepted(state.unticked, unticked(files, name))
    return not is_accepted(state.judged[name][-1], fingerprint(files, name))


def _is_begun(task: TaskState) -> bool:
    return task.is_over or task.retries > 0
