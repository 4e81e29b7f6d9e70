"""`handrail done`: a person ends a workflow. The same operation as the tool `workflow_update_status`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.catalog import operation_named
from handrail.domain.work.plan_edit import tally_of
from handrail.kernel.errors import TasksOpen
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import looking_call, read_once, workflow_meant
from handrail.surfaces.cli.columns import columns, counted, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.invocation import invoke


@click.command()
@click.argument("workflow", shell_complete=completions.workflows)
@click.option("--abandon", is_flag=True, help="Abandon it instead; open tasks stay as they are.")
@click.option("--reason", metavar="TEXT", help="A reason, kept in the log.")
@common_options
def done(workflow: str, abandon: bool, reason: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Mark WORKFLOW as completed, or with --abandon as abandoned.

    Refused while it has open tasks; the refusal names them. WORKFLOW is an id, the beginning of one, or the name of an
    open one.
    """
    ended = end(looking_call(place_of(root), options), workflow, abandon=abandon, reason=reason)
    if as_json:
        echo_json(ended)
        return
    left = f" with {counted(ended['open_tasks'], 'task')} open" if ended["open_tasks"] else ""
    echo_lines(wrapped(f'"{ended["name"]}" is {ended["status"]}{left}. `handrail undo` takes it back.', columns()))


def end(call: Call, workflow: str, *, abandon: bool, reason: str | None) -> dict[str, Any]:
    """Ends the workflow and returns the outcome."""
    meant = read_once(call, lambda looking: workflow_meant(looking, workflow, exact=True))
    status = "abandoned" if abandon else "completed"
    operation = operation_named("workflow_update_status")
    assert operation is not None, "the catalog has it"
    try:
        invoke(operation, call, {"id": meant.id, "status": status, "reason": reason}, actor=person())
    except TasksOpen as still_open:  # the tool's hint names a move of the tool
        instead = f"finish or skip them first, or leave them open: `handrail done {meant.id} --abandon`"
        raise TasksOpen(still_open.message, hint=instead, **still_open.details) from None
    left = read_once(call, lambda looking: tally_of(looking.work, meant.id).unfinished)
    return {"id": meant.id, "name": meant.name, "status": status, "open_tasks": left, "reason": reason}
