"""`handrail why`: says in one sentence what a task or a workflow waits for, down to what can actually be moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
import msgspec

from handrail.domain.overview.explanations import Cause, Explanation, explain_task, explain_workflow
from handrail.domain.work.plan_edit import tasks_in
from handrail.domain.work.task import AT_WORK, Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.workspaces.forecast import MOST_RUNNING, forecast
from handrail.domain.workspaces.lifecycle import workspaces_in
from handrail.domain.workspaces.records import Workspace
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import done_by, in_one_look, looking_call, thing_meant
from handrail.surfaces.cli.columns import columns, dim, fit, fits_beside, mark, pad, widest, wrapped
from handrail.surfaces.cli.options import common_options, place_of
from handrail.surfaces.cli.plans.runs import run_sentence
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.next import in_the_way
from handrail.toolsets.plan.workspace import read_workspaces as look_at

Spaces: TypeAlias = list[Workspace]
SHOWN_FILES = 5
MARK_COLUMNS, ID_COLUMNS = 4, 31
"""The columns that a mark takes before a task's name, and its id after it."""


@click.command()
@click.argument("thing", metavar="TASK|WORKFLOW", shell_complete=completions.things)
@common_options
def why(thing: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Explain in one sentence what a task or workflow waits for, and what would move it.

    Name a task or workflow by id, the beginning of an id, or name; open ones are preferred. The tasks that can be moved
    are listed below the sentence, with their ids.
    """
    found, spaces = in_one_look(root, options, lambda call: _explain(call, thing))
    found = _with_what_will_not_merge(root, options, found, spaces)
    if as_json:
        echo_json(found)
        return
    room = columns()
    echo_lines(wrapped(found.sentence, room))
    causes = [cause for cause in found.causes if cause.id != found.id]
    echo_lines(_cause_lines(causes, room))


def _cause_lines(causes: Sequence[Cause], room: int) -> Iterator[str]:
    names = widest((cause.name for cause in causes), room)
    beside = fits_beside(names, MARK_COLUMNS + ID_COLUMNS, room)
    for cause in causes:
        if beside:
            name = pad(cause.name, min(names, room - MARK_COLUMNS - ID_COLUMNS - 2))
            yield f"  {mark(cause.status)} {name}  {dim(cause.id)}"
        else:
            yield f"  {mark(cause.status)} {fit(cause.name, room - MARK_COLUMNS)}"
            yield f"    {dim(cause.id)}"


def _explain(call: Call, thing: str) -> tuple[Explanation, Spaces]:
    """The explanation; and, for a task in a worktree of its own, that worktree and those it may not merge with."""
    found = read_reason(call, thing)
    task = call.work.get(Task, found.id)
    own = call.work.get(Workspace, task.workspace_id) if task is not None and task.workspace_id is not None else None
    if own is None or own.status != "active":
        return found, []
    others = [space for space in workspaces_in(call.work, own.workflow_id) if space.id != own.id]
    return found, [own, *others]


def _with_what_will_not_merge(
    root: Path | None, options: dict[str, Any], found: Explanation, spaces: Spaces
) -> Explanation:
    """Adds that a task's work in its worktree cannot be merged while it conflicts. Runs git outside the unit."""
    if not spaces:
        return found
    own, *_ = spaces
    branches = {space.id: space.branch for space in spaces}
    call = looking_call(place_of(root), options)
    seen = look_at(call, call.here.repository, spaces)
    clashes = [clash for clash in seen.clashes if own.id in (clash.one, clash.other)]
    if not clashes:
        return found
    first = clashes[0]
    other = first.other if first.one == own.id else first.one
    against = branches.get(other, own.base_branch or "its base")
    named = ", ".join(first.paths[:SHOWN_FILES])
    words = f"{found.sentence} But its worktree {own.branch} will not merge with {against}: {named}."
    return msgspec.structs.replace(found, sentence=words)


def read_reason(call: Call, thing: str) -> Explanation:
    meant = thing_meant(call, thing)
    if not isinstance(meant, Task):
        explained = explain_workflow(call.work, meant, completed_by=done_by(meant))
        told = run_sentence(call.work, meant.id)  # a run has its own sentence for what it waits for
        return msgspec.structs.replace(explained, sentence=told) if told else explained
    found = explain_task(call.work, meant)
    return _with_what_is_in_the_way(call, meant, found) if found.status == "ready" else found


def _with_what_is_in_the_way(call: Call, task: Task, found: Explanation) -> Explanation:
    """Adds that a ready task may still be unsafe to start: somebody else has its files."""
    running = tasks_in(call.work, task.workflow_id, AT_WORK, MOST_RUNNING)
    workflow = workflow_of(call.work, task)
    foreseen = forecast(call.work, workflow, [task], running, places=1, repository=call.here.repository)
    if not foreseen.conflicts:
        return found
    first = msgspec.structs.asdict(foreseen.conflicts[0])
    others = len(foreseen.conflicts) - 1
    more = f"; and {others} more {'conflict' if others == 1 else 'conflicts'}" if others else ""
    words = f"{in_the_way(first, call.work.now_ms(), 'is ready, but has to wait')}{more}."
    return msgspec.structs.replace(found, sentence=words)
