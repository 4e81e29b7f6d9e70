"""Reads a run back from its `state.json` if the store does not know it because the workspace was copied from elsewhere.

The file is trusted about finished work only as far as the documents confirm it: a phase whose document is not the
accepted one is done again, with all later phases. It is not trusted with anything that could run a command, reach out
of the workspace, or be too large to store: such a file is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from handrail.domain.pipeline.budget import check_limits
from handrail.domain.pipeline.dispatch import task_states
from handrail.domain.pipeline.flow import BY_TASK, Flow, Phase, read_flow
from handrail.domain.pipeline.request import SOURCES, Flags, slug
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.start import check_phase, new_workflow, own_limits
from handrail.domain.pipeline.state import (
    Facts,
    RunState,
    TaskState,
    all_again,
    back_to,
    outputs_of,
    present_phase,
)
from handrail.domain.pipeline.workspace_texts import fingerprint, is_accepted
from handrail.kernel.errors import InvalidFlow, InvalidParams, InvalidPlan
from handrail.kernel.records import UnitOfWork

VERSION = 1
LONGEST = 4 * 1024 * 1024
"""Maximum characters of a `state.json`: several times the longest a run produces."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
DEEPEST = 12
"""Maximum nesting depth of the document."""
REASON = 20_000
"""Maximum characters of the reason for handing out a phase again: more than any we write."""

TOLD = 20
"""Redone items named in the ledger."""
ACCEPTED = "ACCEPTED"
"""Stands in for the verdict on a task that a person accepted as it was."""

Command = tuple[str, ...]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Line = Annotated[str, Meta(max_length=300)]
Word = Annotated[str, Meta(max_length=500, pattern=r"^([^\x00-\x20\x7f-][^\x00-\x20\x7f]*)?\Z")]
"""A single word that no command could take for an option, or empty."""
SourceType = Literal["text", "github_issue", "jira_issue", "linear_issue", "gitlab_issue"]


class _Cost(msgspec.Struct, omit_defaults=True):
    phase: Line
    tokens: Count
    duration_ms: Count
    model: Line
    at: Count
    times: Count = 1


class _Found(msgspec.Struct):
    severity: Line
    description: Annotated[str, Meta(max_length=10_000)]
    at: Count


class CopiedState(msgspec.Struct):
    """What a file must say about a run. Anything else in it is ignored."""

    spec_name: Line
    title: Line
    request: Annotated[str, Meta(max_length=500_000)]
    source_type: SourceType
    source_url: Word | None
    source_id: Word | None
    effort: Literal["S", "M", "L"]
    branch: Word | None
    flow: dict[str, Any]
    flags: Flags
    state: RunState
    log: Annotated[list[_Cost], Meta(max_length=5000)]
    findings: Annotated[list[_Found], Meta(max_length=500)]
    friction: Annotated[list[Annotated[str, Meta(max_length=10_000)]], Meta(max_length=500)]
    created_at: Count
    limits: dict[str, Any] = {}


class Destination(NamedTuple):
    """Where a run is taken over."""

    repository: str
    workspace: str
    commands: Collection[Command] = ()
    """The commands of the flows known there."""
    limits: Mapping[str, float] = {}
    """What a run may spend there."""


class Setback(NamedTuple):
    """Something that is done again because its document does not confirm that it was done."""

    phase: str
    """The phase the run goes back to."""
    file: str
    why: str
    """What is wrong with the file."""
    task: int | None = None
    """The task that is done again, if it is not the whole phase."""

    @property
    def sentence(self) -> str:
        whole = f"{self.phase} and all that follow are done again"
        what = whole if self.task is None else f"{self.phase} does task {self.task} again"
        return f"{self.file} {self.why}, so {what}"


class Imported(NamedTuple):
    """A run that was taken over."""

    run: PipelineRun
    setbacks: tuple[Setback, ...] = ()
    """What is done again, and why; empty if the documents confirm everything."""


def run_from(text: str, files: Mapping[str, str], there: Destination, now_ms: int, run_id: str = "") -> PipelineRun:
    """The run described by a `state.json`. Raises InvalidParams if it describes none, or an unacceptable one."""
    return _imported(text, files, there, now_ms, run_id).run


def _imported(text: str, files: Mapping[str, str], there: Destination, now_ms: int, run_id: str = "") -> Imported:
    copied = _parsed_copy(text)
    flow = _flow(copied, there.commands)
    _check_source(copied)
    _check_limits(flow, copied.limits)
    _check_state(flow, copied.state)
    state = copied.state.but(before={}, stopped=None, skip=[])
    setbacks: list[Setback] = []
    if state.ended is None:
        facts = Facts(source_type=copied.source_type, skip_pr=copied.flags.skip_pr)
        state, setbacks = _reset_unconfirmed(flow, state, files, facts)
    kept: dict[str, Any] = msgspec.to_builtins(copied)
    name = slug(copied.spec_name)
    own = {
        "id": run_id,
        "repository_path": there.repository,
        "workspace": there.workspace.rstrip("/"),
        "spec_name": name,
        "title": _CONTROL.sub(" ", copied.title).lstrip("-{ ") or name,
        "flow": msgspec.to_builtins(flow),
        "state": msgspec.to_builtins(state),
        "task_ids": {},
        "dispatched": None,
        "lessons": {},
        "limits": {**copied.limits, **own_limits(there.limits, _amounts(copied.limits))},
        "created_at": min(copied.created_at, now_ms),
        "updated_at": now_ms,
    }
    return Imported(PipelineRun(**{**kept, **own}), tuple(setbacks))


def import_run(unit: UnitOfWork, text: str, files: Mapping[str, str], there: Destination) -> PipelineRun:
    """Records the run of a workspace that was copied here as a workflow of this store."""
    return imported_run(unit, text, files, there).run


def imported_run(unit: UnitOfWork, text: str, files: Mapping[str, str], there: Destination) -> Imported:
    """Like `import_run`, but also returns what is done again and why."""
    read, setbacks = _imported(text, files, there, unit.now_ms())
    workflow = new_workflow(
        unit, read.title, read.source_type, read.source_url, read.request or read.title, there.repository
    )
    ended = read.run_state().ended
    if ended is not None:
        workflow = msgspec.structs.replace(workflow, status=ended)
    run = msgspec.structs.replace(read, id=workflow.id)
    again = {"again": [one.sentence for one in setbacks[:TOLD]]} if setbacks else {}
    unit.record("pipeline.imported", workflow, run, data={"workspace": run.workspace, **again})
    return Imported(run, setbacks)


def commands_in(flows: Iterable[Flow]) -> set[Command]:
    """Every command in these flows."""
    return {tuple(command) for flow in flows for phase in flow.phases for command in phase.commands}


# -- what is not trusted ----------------------------------------------------------------------------------------------


def _parsed_copy(text: str) -> CopiedState:
    if len(text) > LONGEST:
        raise _unreadable("it is longer than any that a run leaves")
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _unreadable("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise _unreadable(f"it is not of version {VERSION}")
    _check_texts(document, DEEPEST)
    try:
        return msgspec.convert(document, CopiedState)
    except msgspec.ValidationError as problem:
        raise _unreadable(str(problem)) from None


def _check_texts(value: Any, deep: int) -> None:
    """Refuses what no store can keep."""
    if deep == 0:
        raise _unreadable("it is nested too deeply")
    if isinstance(value, str) and "\0" in value:
        raise _unreadable("a text of it holds a NUL character")
    if isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_texts(part, deep - 1)


def _flow(copied: CopiedState, commands: Collection[Command]) -> Flow:
    try:
        flow = read_flow({key: value for key, value in copied.flow.items() if key != "extends"}, lambda _: None)
    except InvalidFlow as problem:
        raise _unreadable(problem.message) from None
    strange = [" ".join(command) for command in sorted(commands_in([flow]) - set(commands))]
    if strange:
        raise InvalidParams(
            f"state.json cannot be taken over: its flow {flow.name} runs what no flow here does: {strange[0][:200]}",
            hint="read that flow first; put it into .handrail/flows if it is one of yours, then try again",
        )
    return flow


def _check_source(copied: CopiedState) -> None:
    known = [source for source in SOURCES if source.type == copied.source_type]
    if bool(copied.source_url) != bool(known) or not all(
        source.pattern.fullmatch(copied.source_url or "") for source in known
    ):
        raise _unreadable("its source_url is not an issue's address")


def _check_limits(flow: Flow, limits: Mapping[str, Any]) -> None:
    try:
        check_limits(_amounts(limits))
        until = limits.get("until")
        if not isinstance(until, str | None):
            raise _unreadable("its until is no phase")
        check_phase(flow, until)
    except InvalidParams as problem:
        raise _unreadable(problem.message) from None


def _amounts(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in limits.items() if name != "until"}


def _check_state(flow: Flow, state: RunState) -> None:
    named = (
        *state.done,
        *state.answers,
        *state.approved,
        *state.tries,
        *state.unread,
        *state.given,
        *state.failed,
        *state.untaken,
        *state.again,
    )
    if any(not flow.knows(phase) for phase in named):
        raise _unreadable("it names phases that its flow does not have")
    if state.ended not in (None, "completed", "abandoned"):
        raise _unreadable(f"a run does not end as {state.ended[:50]}")
    counts = (
        *state.tries.values(),
        *state.unread.values(),
        *state.failed.values(),
        *state.untaken.values(),
        state.turns,
        *(task.retries for task in state.tasks),
    )
    if any(not 0 <= count <= 10**9 for count in counts):
        raise _unreadable("a count in it is negative or too large")
    if any(len(why) > REASON for why in state.again.values()):
        raise _unreadable("a reason in it is too long")


def _unreadable(why: str) -> InvalidParams:
    return InvalidParams(
        f"state.json cannot be taken over: {why}",
        hint="copy the workspace whole, as Handrail left it; or begin anew with pipeline_init",
    )


# -- what the documents confirm ---------------------------------------------------------------------------------------


def _reset_unconfirmed(
    flow: Flow, state: RunState, files: Mapping[str, str], facts: Facts
) -> tuple[RunState, list[Setback]]:
    """The state with everything reset whose document is not the accepted one, and a list of what that is."""
    state, setbacks = _with_tasks(flow, state, files)
    for phase in flow.phases:
        changed = _changed_document(phase, flow, state, files) if phase.id in state.done else None
        if changed is not None:
            state = all_again(flow, state, phase.id).but(tries={}, unread={})
            # This includes anything later that was to be done again.
            setbacks = [Setback(phase.id, changed, _why(changed, files))]
            break
    present = present_phase(flow, state, facts)
    has_command = present is not None and 0 <= state.command < len(present.commands)
    return state if has_command else state.but(command=0), setbacks


def _changed_document(phase: Phase, flow: Flow, state: RunState, files: Mapping[str, str]) -> str | None:
    """The document of a phase that is not the one that completed it. A review passed by a person was completed by no
    document, and a task list that was accepted again after being rewritten is the one that counts."""
    if phase.kind in BY_TASK or (phase.kind == "review" and phase.id not in state.approved):
        return None
    plans = [one.plan for one in flow.phases if one.kind == "tasks" and state.plan is not None]
    for name in outputs_of(phase, state):
        read_from = name in plans and name in files and is_accepted(state.plan, fingerprint(files, name))
        if not read_from and not _is_accepted(name, state, files):
            return name
    return None


def _why(name: str, files: Mapping[str, str]) -> str:
    return "is not the one that was accepted" if name in files else "is not there"


def _is_accepted(name: str, state: RunState, files: Mapping[str, str]) -> bool:
    accepted = state.judged.get(name, [])
    return bool(accepted) and name in files and is_accepted(accepted[-1], fingerprint(files, name))


def _with_tasks(flow: Flow, state: RunState, files: Mapping[str, str]) -> tuple[RunState, list[Setback]]:
    """The state with the tasks of the list, each only as far along as its documents confirm, and what is redone."""
    doing = next((phase for phase in flow.phases if phase.kind == "tasks"), None)
    if doing is None or not (state.tasks or doing.id in state.done):
        return state.but(tasks=[], plan=None), []
    plan = doing.plan or ""
    try:
        listed = task_states(files.get(plan, ""), plan)
    except InvalidPlan:
        listed = []
    if not listed or not is_accepted(state.plan, fingerprint(files, plan)):
        writers = [phase.id for phase in flow.phases if phase.output == plan and phase.id in state.done]
        first = (*writers, doing.id)[0]
        again = all_again(flow, state, first)
        return again.but(tasks=[], plan=None, tries={}, unread={}), [Setback(first, plan, _why(plan, files))]
    judging = next((phase for phase in flow.phases if phase.kind == "task-reviews"), None)
    known = {task.number: task for task in state.tasks}
    tasks = [_confirmed_progress(task, known.get(task.number, task), doing, judging, state, files) for task in listed]
    if doing.id not in state.done and all(task.is_over for task in tasks):
        tasks = listed  # the phase is still to come, so what it has done does not count: there must be something to do
    elif doing.id in state.done and any(not task.is_over for task in tasks):
        state = back_to(flow, state, doing.id)
    elif judging is not None and any(
        task.verdict is None and task.number in known and known[task.number].verdict is not None for task in tasks
    ):
        state = back_to(flow, state, judging.id)
    return state.but(tasks=tasks), _setbacks_of_tasks(tasks, known, doing, judging, files)


def _setbacks_of_tasks(
    tasks: Iterable[TaskState],
    known: Mapping[int, TaskState],
    doing: Phase,
    judging: Phase | None,
    files: Mapping[str, str],
) -> list[Setback]:
    """The tasks that are not as far along as the file claims."""
    found: list[Setback] = []
    for task in tasks:
        before = known.get(task.number, task)
        phase = doing if before.implemented and not task.implemented else judging
        if phase is not None and (before.implemented, before.verdict) != (task.implemented, task.verdict):
            name = phase.output_for(task.number)
            found.append(Setback(phase.id, name, _why(name, files), task.number))
    return found


def _confirmed_progress(
    listed: TaskState,
    known: TaskState,
    doing: Phase,
    judging: Phase | None,
    state: RunState,
    files: Mapping[str, str],
) -> TaskState:
    """A task of the list with its confirmed progress. What a person decided about it needs no document."""
    implemented, verdict = known.implemented, known.verdict if known.implemented else None
    if listed.is_gate:
        return msgspec.structs.replace(listed, implemented=implemented, skipped=known.skipped, verdict=verdict)
    if implemented and not _is_accepted(doing.output_for(listed.number), state, files):
        implemented, verdict = False, None
    if verdict not in (None, ACCEPTED) and not (
        judging and _is_accepted(judging.output_for(listed.number), state, files)
    ):
        verdict = None
    return msgspec.structs.replace(listed, implemented=implemented, verdict=verdict, retries=known.retries)
