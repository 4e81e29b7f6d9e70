"""`handrail done`: a person ends a workflow. The same operation as the tool `workflow_update_status`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.domain.work.editing import tally_of
from handrail.operation import Call
from handrail.surfaces.arguments import parse_arguments
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, workflow_meant
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.mcp.tools import operation_named


@click.command()
@click.argument("workflow")
@click.option("--abandon", is_flag=True, help="End it although it is not done; its tasks stay as they are.")
@click.option("--reason", metavar="TEXT", help="Kept with the event, for whoever reads the log.")
@common_options
def done(workflow: str, abandon: bool, reason: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """End WORKFLOW: completed, or with --abandon abandoned. Refused while tasks of it are open, which are named.

    WORKFLOW is an id, the beginning of one, or the name of an open one.
    """
    ended = in_one_look(root, options, lambda call: end(call, workflow, abandon=abandon, reason=reason))
    if as_json:
        echo_json(ended)
        return
    left = f" with {ended['open_tasks']} tasks open" if ended["open_tasks"] else ""
    for line in wrapped(f'"{ended["name"]}" is {ended["status"]}{left}. `handrail undo` takes it back.', columns()):
        click.echo(line)


def end(call: Call, workflow: str, *, abandon: bool, reason: str | None) -> dict[str, Any]:
    """Ends the workflow and tells what became of it."""
    meant = workflow_meant(call, workflow)
    status = "abandoned" if abandon else "completed"
    operation = operation_named("workflow_update_status")
    assert operation is not None, "the catalog has it"
    operation.handler(call, parse_arguments(operation, {"id": meant.id, "status": status, "reason": reason}))
    left = tally_of(call.work, meant.id).unfinished
    return {"id": meant.id, "name": meant.name, "status": status, "open_tasks": left, "reason": reason}
