"""`handrail decisions`: the log of decisions, and its export as files that a team keeps with its code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.domain.journal.decision_log import LoggedDecision, decision_page, decisions_in
from handrail.domain.journal.markdown import day
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import iso_time
from handrail.kernel.late import late_module
from handrail.kernel.records import CHUNK, Query
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, workflow_meant
from handrail.surfaces.cli.columns import as_words, bold, columns, dim, fit, width, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines

if TYPE_CHECKING:
    from handrail.outside import decision_folder
else:
    decision_folder = late_module("handrail.outside.decision_folder")


@click.command()
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option(
    "--adr", "folder", type=click.Path(path_type=Path), help="Write one Markdown file per decision to this folder."
)
@common_options
def decisions(workflow: str | None, folder: Path | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """List decisions and their reasons, oldest first; superseded ones are marked.

    WORKFLOW is an id, the beginning of one, or a name; without it, every workflow here. With --adr each decision is
    written to a numbered file in a folder. A decision keeps its file and number; files that somebody has edited are
    left alone.
    """
    found = in_one_look(root, options, lambda call: read_decisions(call, workflow))
    if folder is not None:
        _export(folder, found, as_json=as_json)
    elif as_json:
        echo_json({"decisions": [_document(decision) for decision in found]})
    else:
        echo_lines(drawn(found, columns()))


def read_decisions(call: Call, workflow: str | None) -> list[LoggedDecision]:
    """The decisions of the given workflow, or of all workflows here."""
    chosen = [workflow_meant(call, workflow)] if workflow is not None else list(_workflows_here(call))
    return decisions_in(call.work, chosen)


def _workflows_here(call: Call) -> Iterator[Workflow]:
    here = (("repository_path", call.here.repository),) if call.here.shared else ()
    offset = 0
    while page := call.work.select(Workflow, Query(here, ("id",), CHUNK, offset)):
        yield from page
        offset += len(page)


def drawn(found: list[LoggedDecision], room: int) -> Iterator[str]:
    """Decisions as lines of at most `room` columns."""
    if not found:
        yield "Nothing was decided here yet. An agent notes decisions with log_decision."
    for number, decision in enumerate(found):
        if number:
            yield ""
        state = " (superseded)" if decision.replaced_by is not None else ""
        title = fit(decision.title, room - width(state))
        yield f"{dim(title) if state else bold(title)}{state}"
        if decision.chosen != decision.question:
            yield from wrapped(f"{decision.chosen}: {decision.reasoning}".removesuffix(": "), room, "  ")
        elif decision.reasoning:
            yield from wrapped(decision.reasoning, room, "  ")
        if decision.trade_offs:
            yield from wrapped(f"trade-offs: {decision.trade_offs}", room, "  ")
        kind = f"{as_words(decision.category)}, " if decision.category else ""
        made = f"{decision.note.id}, {kind}{day(decision.note.created_at)}, in {decision.task}"
        yield from (dim(line) for line in wrapped(made, room, "  "))
        if decision.replaced_by is not None:
            later = f"superseded by {decision.replaced_by.id}: {decision.replaced_by.summary}"
            yield f"  {dim(fit(later, room - 2))}"


def _document(decision: LoggedDecision) -> dict[str, Any]:
    note = decision.note
    return {
        "id": note.id,
        "created_at": iso_time(note.created_at),
        "workflow_id": note.workflow_id,
        "task_id": note.task_id,
        "task_name": decision.task,
        "category": decision.category or None,
        "question": decision.question,
        "options_considered": decision.options,
        "chosen": decision.chosen,
        "reasoning": decision.reasoning or None,
        "trade_offs": decision.trade_offs or None,
        "superseded_by": decision.replaced_by.id if decision.replaced_by is not None else None,
    }


def _export(folder: Path, found: list[LoggedDecision], *, as_json: bool) -> None:
    def page(decision: LoggedDecision) -> decision_folder.DecisionFile:
        def text(number: int, names: Mapping[str, str]) -> str:
            return "\n".join(decision_page(decision, number, names))

        return decision_folder.DecisionFile(decision.note.id, decision.title, text)

    written = decision_folder.write_decisions(folder, [page(decision) for decision in found])
    if as_json:
        echo_json({"files": [{"id": one.id, "file": str(one.file), "fate": one.fate} for one in written]})
        return
    for one in written:
        click.echo(f"{one.fate:<10}  {one.file}")
    if not written:
        click.echo("Nothing was decided here yet, so nothing was written.")
