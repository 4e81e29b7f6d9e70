"""`handrail journal`: what happened in a workflow or a task, in order. Gathered here, drawn in `journal_lines.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.journal.timeline import TimelineMoment, task_timeline, workflow_timeline
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import OPEN, Workflow
from handrail.kernel.clock import iso_time
from handrail.kernel.errors import NothingOpen
from handrail.kernel.query import Query
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, thing_meant
from handrail.surfaces.cli.columns import columns
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.journal_lines import Journal, journal_lines


@click.command()
@click.argument("thing", metavar="[TASK|WORKFLOW]", required=False, shell_complete=completions.things)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=100,
    show_default=True,
    help="Show the newest N entries.",
)
@common_options
def journal(thing: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what happened, in order: starts and ends, progress, decisions, issues, changed files, warnings.

    Name a task or workflow by id, the beginning of an id, or name; open ones are preferred. Without one, the workflow
    that changed last is shown. Newest last; times are UTC.
    """
    found = in_one_look(root, options, lambda call: read_journal(call, thing, limit))
    if as_json:
        echo_json(_document(found))
        return
    echo_lines(journal_lines(found, columns()))


def read_journal(call: Call, thing: str | None, limit: int) -> Journal:
    """The journal of the task or workflow that is meant."""
    meant = thing_meant(call, thing) if thing is not None else _last_moved(call)
    if isinstance(meant, Task):
        timeline = task_timeline(call.work, meant, limit)
        return Journal(workflow_of(call.work, meant), meant, timeline.moments, timeline.earlier)
    timeline = workflow_timeline(call.work, meant, limit)
    others = 0 if thing is not None else _open_here(call) - (meant.status in OPEN)
    return Journal(meant, None, timeline.moments, timeline.earlier, others)


def _here(call: Call) -> tuple[tuple[str, Any], ...]:
    return (("repository_path", call.here.repository),) if call.here.shared else ()


def _last_moved(call: Call) -> Workflow:
    newest = call.work.select(Workflow, Query(_here(call), ("-updated_at", "-id"), 1))
    if not newest:
        raise NothingOpen("nothing was journalled here yet", hint="an agent begins with start_workflow")
    return newest[0]


def _open_here(call: Call) -> int:
    return call.work.count(Workflow, Query((("status", OPEN), *_here(call))))


def _document(found: Journal) -> dict[str, Any]:
    workflow, task = found.workflow, found.task
    document: dict[str, Any] = {
        "workflow_id": workflow.id,
        "workflow_name": workflow.name,
        "workflow_status": workflow.status,
    }
    if task is not None:
        document |= {"task_id": task.id, "task_name": task.name, "task_status": task.shown_status}
    return {**document, "moments": [_moment(moment) for moment in found.moments], "earlier": found.earlier}


def _moment(moment: TimelineMoment) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(moment)
    return {**shown, "at": iso_time(moment.at)}
