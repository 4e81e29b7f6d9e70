"""`handrail why`: in one sentence, what a task or a workflow waits for, down to what can actually be moved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.work.editing import tasks_in
from handrail.domain.work.explaining import Explanation, explain_task, explain_workflow
from handrail.domain.work.moving import workflow_of
from handrail.domain.work.task import Task
from handrail.domain.workspaces.forecast import MOST_RUNNING, forecast
from handrail.operation import Call
from handrail.surfaces.cli.columns import columns, dim, mark, pad, widest, wrapped
from handrail.surfaces.cli.next import in_the_way
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, thing_meant
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.runs import run_sentence


@click.command()
@click.argument("thing", metavar="TASK|WORKFLOW")
@common_options
def why(thing: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Say in one sentence what a task or a workflow waits for, and what would move it.

    It is named by its id, the beginning of one, or its name in what is open here. Below the sentence stand the tasks
    that can be moved, with their ids.
    """
    found = in_one_look(root, options, lambda call: look(call, thing))
    if as_json:
        echo_json(found)
        return
    room = columns()
    for line in wrapped(found.sentence, room):
        click.echo(line)
    causes = [cause for cause in found.causes if cause.id != found.id]
    names = widest((cause.name for cause in causes), room - 37)
    for cause in causes:
        click.echo(f"  {mark(cause.status)} {pad(cause.name, names)}  {dim(cause.id)}")


def look(call: Call, thing: str) -> Explanation:
    meant = thing_meant(call, thing)
    if not isinstance(meant, Task):
        explained = explain_workflow(call.work, meant)
        told = run_sentence(call.work, meant.id)  # a run says itself what it waits for
        return msgspec.structs.replace(explained, sentence=told) if told else explained
    found = explain_task(call.work, meant)
    return _with_what_is_in_the_way(call, meant, found) if found.status == "ready" else found


def _with_what_is_in_the_way(call: Call, task: Task, found: Explanation) -> Explanation:
    """A ready task may still be unsafe to start: somebody else has its files."""
    running = tasks_in(call.work, task.workflow_id, ("planning", "in_progress"), MOST_RUNNING)
    workflow = workflow_of(call.work, task)
    foreseen = forecast(call.work, workflow, [task], running, places=1, repository=call.here.repository)
    if not foreseen.conflicts:
        return found
    first = msgspec.structs.asdict(foreseen.conflicts[0])
    others = len(foreseen.conflicts) - 1
    more = f"; {others} more {'is' if others == 1 else 'are'} in its way" if others else ""
    words = f"{found.sentence} But {in_the_way(first, call.work.now_ms())}{more}."
    return msgspec.structs.replace(found, sentence=words)
