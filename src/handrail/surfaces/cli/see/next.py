"""`handrail next`: what can be started now, the best first, and why it is first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.overview.explanations import why_before
from handrail.domain.work.lookup import find_workflow
from handrail.kernel.clock import spoken_time
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import how_it_stands, in_one_look, workflow_meant, workflow_meant_or_open
from handrail.surfaces.cli.columns import columns, dim, fit, fits_beside, headline, mark, one_line, pad, widest, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.toolsets.here import SHOWN, open_workflows
from handrail.toolsets.plan.orchestration import workflow_next_tasks
from handrail.toolsets.plan.orchestration_shapes import NextTask, NextTasks, NextTasksFound

INNER = "      "
MARK_COLUMNS, ID_COLUMNS = 6, 31
"""The columns that a number and a mark take before a task's name, and its id after it."""


class Startable(msgspec.Struct, frozen=True, kw_only=True):
    """What can be started in one workflow."""

    workflow_id: str
    name: str
    found: NextTasksFound
    reasons: tuple[str, ...]
    """For each task, why it comes before the next one; empty if there is no reason."""
    why: str
    """How the workflow stands, in a sentence."""
    now: int


@click.command("next")
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    metavar="N",
    default=5,
    show_default=True,
    help="Show at most N tasks of each workflow.",
)
@common_options
def next_(workflow: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what can be started now, best first, and why it comes first.

    WORKFLOW is an id, the beginning of one, or a name; without it, every open workflow is shown. Tasks are ordered by
    priority, then sequence, then the number of tasks that wait for them.
    """
    found = in_one_look(root, options, lambda call: read_ready(call, workflow, limit))
    if as_json:
        echo_json({"workflows": [_document(one) for one in found]})
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        echo_lines(drawn(one, columns()))


def read_ready(call: Call, workflow: str | None, limit: int) -> list[Startable]:
    """What can be started in the named workflow, or in each open one. Refused if none is open."""
    if workflow is not None:
        chosen = [workflow_meant(call, workflow)]
    else:
        chosen = open_workflows(call, SHOWN) or [workflow_meant_or_open(call, None)]
    return [_startable(call, one.id, limit) for one in chosen]


def _startable(call: Call, workflow_id: str, limit: int) -> Startable:
    # One more than is shown, so that the last one can be compared with what follows it too.
    found = workflow_next_tasks(call, NextTasks(workflow_id, limit=min(200, limit + 1)))
    workflow = find_workflow(call.work, workflow_id)
    reasons = [why_before(task, after) for task, after in itertools.pairwise(found.tasks)]
    reasons.append("nothing else is ready" if len(found.tasks) == 1 else "")
    return Startable(
        workflow_id=workflow.id,
        name=workflow.name,
        found=_first_of(found, limit),
        reasons=tuple(reasons[: min(limit, len(found.tasks))]),
        why=how_it_stands(call.work, workflow),
        now=call.work.now_ms(),
    )


def _first_of(found: NextTasksFound, limit: int) -> NextTasksFound:
    """The result, limited to the first tasks."""
    hidden = {task.id for task in found.tasks[limit:]}
    if not hidden:
        return found
    about = [one for one in found.conflicts if hidden.isdisjoint((one["task_id"], one["other_id"]))]
    batch = found.batch if found.batch is None else tuple(one for one in found.batch if one not in hidden)
    return msgspec.structs.replace(found, tasks=found.tasks[:limit], batch=batch, conflicts=tuple(about))


def _document(one: Startable) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(one.found)
    for task, reason in zip(shown["tasks"], one.reasons, strict=True):
        task["reason"] = reason
    return {"workflow_name": one.name, **shown, "why": one.why}


def drawn(one: Startable, room: int) -> Iterator[str]:
    """One workflow's next tasks as lines of at most `room` columns."""
    yield from headline(one.name, [one.workflow_id], room)
    if not one.found.tasks:
        yield from wrapped(one.why, room, "  ")
        return
    yield from wrapped(_what_to_start(one.found), room, "  ")
    names = widest((task.name for task in one.found.tasks), room)
    beside = fits_beside(names, MARK_COLUMNS + ID_COLUMNS, room)
    names = min(names, room - MARK_COLUMNS - ID_COLUMNS - 2 if beside else room - MARK_COLUMNS)
    for number, (task, reason) in enumerate(zip(one.found.tasks, one.reasons, strict=True), start=1):
        status = "ready" if task.status == "pending" else task.status
        place = f"{number:>3}" if one.found.recommended_count else "   "  # what has to wait has no turn yet
        if beside:
            yield f"{place} {mark(status)} {pad(task.name, names)}  {task.id}"
        else:
            yield from (f"{place} {mark(status)} {fit(task.name, names)}", f"{INNER}{task.id}")
        told = f"failed before: {task.error}" if task.error else task.description or ""
        if one_line(told):
            yield f"{INNER}{fit(told, room - len(INNER))}"
        yield from (dim(line) for line in wrapped(_because(task, reason), room, INNER))
    for conflict in one.found.conflicts:
        yield from wrapped(in_the_way(conflict, one.now), room, "  ")


def _what_to_start(found: NextTasksFound) -> str:
    running = len(found.running)
    places = f"{found.max_parallel} may run at once, {running} {'is' if running == 1 else 'are'} under way"
    if not found.recommended_count:
        return f"{places}: wait until one ends; ready then"
    if found.batch is None:
        return f"{places}: start the first"
    numbers = [at for at, task in enumerate(found.tasks, start=1) if task.id in found.batch]
    if not numbers:
        return f"{places}: none is safe to start now"
    if numbers == list(range(1, len(numbers) + 1)):
        return f"{places}: start the first{f' {len(numbers)}' if len(numbers) > 1 else ''}"
    *most, last = map(str, numbers)
    return f"{places}: start {', '.join(most)}{' and ' if most else ''}{last}{' together' if most else ''}"


def in_the_way(conflict: dict[str, Any], now: int, waits: str = "has to wait") -> str:
    """Why two things are not safe together, in a sentence. `waits` is said about the one that is not started."""
    first, other, path = f'"{conflict["name"]}"', conflict["other_name"], conflict["path"]
    how = _declared(conflict)
    if conflict["other"] == "reserved":
        left = spoken_time(conflict["until"] - now)
        return f"{first} {waits}: {other} has reserved {path} for another {left}{how}"
    if conflict["other"] == "running":
        return f'{first} {waits}: "{other}" is under way, and both touch {path}{how}'
    return f'do not start {first} together with "{other}": both touch {path}{how}'


def _declared(conflict: dict[str, Any]) -> str:
    """What each of the two says it touches, if that is not the path itself."""
    areas = [conflict[name].partition(": ")[2] for name in ("declared", "other_declared")]
    return "" if set(areas) == {conflict["path"]} else f" ({areas[0]} and {areas[1]})"


def _because(task: NextTask, reason: str) -> str:
    """What else to know about it before choosing it."""
    words = [reason]
    if task.unblocks and "unblocks" not in reason:
        words.append(f"unblocks {task.unblocks}")
    if task.unknown_scope:
        words.append("does not say what it touches")
    return "; ".join(filter(None, words))
