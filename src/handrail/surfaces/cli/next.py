"""`handrail next`: what can be started now, the best first, and why it is first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.work.explaining import explain_workflow, why_before
from handrail.kernel.clock import spoken_time
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, columns, dim, fit, mark, pad, widest, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, workflow_meant
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.runs import run_sentence
from handrail.toolsets.here import SHOWN, find_workflow, open_workflows, workflow_here
from handrail.toolsets.orchestration import NextTask, NextTasks, NextTasksFound, workflow_next_tasks


class Startable(msgspec.Struct, frozen=True, kw_only=True):
    """What can be started in one workflow."""

    workflow_id: str
    name: str
    found: NextTasksFound
    reasons: tuple[str, ...]
    """For each task, what puts it before the one after it."""
    why: str
    """How the workflow stands, in a sentence."""
    now: int


@click.command("next")
@click.argument("workflow", required=False)
@click.option("--limit", type=click.IntRange(1, 200), default=5, show_default=True, help="Tasks of each workflow.")
@common_options
def next_(workflow: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what can be started now, the best first, with what puts it there.

    WORKFLOW is an id, the beginning of one, or a name; without it every open workflow is shown. Tasks come by priority,
    then by sequence, then by how many others wait for them.
    """
    found = in_one_look(root, options, lambda call: look(call, workflow, limit))
    if as_json:
        echo_json({"workflows": [_document(one) for one in found]})
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        for line in drawn(one, columns()):
            click.echo(line)


def look(call: Call, workflow: str | None, limit: int) -> list[Startable]:
    """What can be started in the named workflow, or in each open one. Refuses where none is open."""
    if workflow is not None:
        chosen = [workflow_meant(call, workflow)]
    else:
        chosen = open_workflows(call, SHOWN) or [workflow_here(call, None)]
    return [_startable(call, one.id, limit) for one in chosen]


def _startable(call: Call, workflow_id: str, limit: int) -> Startable:
    # One more than is shown, so that the last one too can be told apart from what follows it.
    found = workflow_next_tasks(call, NextTasks(workflow_id, limit=min(200, limit + 1)))
    workflow = find_workflow(call.work, workflow_id)
    reasons = [why_before(task, after) for task, after in itertools.pairwise(found.tasks)]
    reasons.append("nothing else is ready" if len(found.tasks) == 1 else "the last that is ready")
    return Startable(
        workflow_id=workflow.id,
        name=workflow.name,
        found=_first_of(found, limit),
        reasons=tuple(reasons[: min(limit, len(found.tasks))]),
        why=run_sentence(call.work, workflow.id) or explain_workflow(call.work, workflow).sentence,
        now=call.work.now_ms(),
    )


def _first_of(found: NextTasksFound, limit: int) -> NextTasksFound:
    """What was found about the first so many tasks."""
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
    yield f"{bold(fit(one.name, room - 31))}  {one.workflow_id}"
    if not one.found.tasks:
        yield from wrapped(one.why, room, "  ")
        return
    yield f"  {_places(one.found)}"
    names = widest((task.name for task in one.found.tasks), room - 39)
    for number, (task, reason) in enumerate(zip(one.found.tasks, one.reasons, strict=True), start=1):
        status = "ready" if task.status == "pending" else task.status
        yield f"{number:>3} {mark(status)} {pad(task.name, names)}  {task.id}"
        yield f"      {dim(fit(_because(task, reason), room - 6))}"
    for conflict in one.found.conflicts:
        yield from wrapped(in_the_way(conflict, one.now), room, "  ")


def _places(found: NextTasksFound) -> str:
    running = len(found.running)
    places = f"{found.max_parallel} may run at once, {running} {'is' if running == 1 else 'are'} under way"
    if not found.recommended_count:
        return f"{places}: wait until one ends"
    if found.batch is None:
        return f"{places}: start the first"
    numbers = [at for at, task in enumerate(found.tasks, start=1) if task.id in found.batch]
    if not numbers:
        return f"{places}: none is safe to start now"
    if numbers == list(range(1, len(numbers) + 1)):
        return f"{places}: start the first{f' {len(numbers)}' if len(numbers) > 1 else ''}"
    *most, last = map(str, numbers)
    return f"{places}: start {', '.join(most)}{' and ' if most else ''}{last}{' together' if most else ''}"


def in_the_way(conflict: dict[str, Any], now: int) -> str:
    """Why two things are not safe together, in a sentence."""
    first, other, path = f'"{conflict["name"]}"', conflict["other_name"], conflict["path"]
    how = f"({conflict['declared']}; {conflict['other_declared']})"
    if conflict["other"] == "reserved":
        return f"{first} has to wait: {other} keeps {path} for {spoken_time(conflict['until'] - now)} more {how}"
    if conflict["other"] == "running":
        return f'{first} has to wait: "{other}" is under way, and both touch {path} {how}'
    return f'{first} not together with "{other}": both touch {path} {how}'


def _because(task: NextTask, reason: str) -> str:
    words = [reason]
    if task.unblocks and "unblocks" not in reason:
        words.append(f"unblocks {task.unblocks}")
    if task.unknown_scope:
        words.append("does not say what it touches")
    if task.error:
        words.append(f"failed before: {task.error}")
    elif task.description:
        words.append(task.description)
    return "; ".join(words)
