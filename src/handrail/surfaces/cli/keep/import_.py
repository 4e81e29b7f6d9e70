"""`handrail import`: turns a plan from another tool's file, or from ours, into a workflow, and a WorkRail guide into
one of ours.

`domain/exchange` defines what a file means and how it becomes a plan. Here it is read, and the result reported.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from handrail.domain.exchange.foreign_tasks import plain_title, several
from handrail.domain.exchange.formats import GUIDE, NAMES, PLANS, format_of, read_plan
from handrail.domain.exchange.importer import (
    ImportedPlan,
    ImportSource,
    New,
    check_addable,
    check_document,
    lay_into,
    lay_new,
    odd_together,
    same_source,
    what_is_new,
)
from handrail.domain.exchange.normalize import fitted
from handrail.domain.exchange.plan_document import HELD_THERE, PlanDocument, PlannedTask
from handrail.domain.exchange.validate import in_order as one_after_the_other
from handrail.domain.exchange.validate import oddities
from handrail.domain.work.task import TASK_MACHINE
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams, InvalidPlan, Refusal
from handrail.kernel.late import late_module
from handrail.operation import Call
from handrail.outside.plan_files import read_text, text_of, write_text
from handrail.outside.user_files import foreign_tree, make_folder
from handrail.settings import Settings
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import workflow_meant
from handrail.surfaces.cli.columns import as_words, columns, counted, hanging, one_line, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of, typed_text
from handrail.surfaces.cli.progress import progress
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.toolsets.here import plan_to_change
from handrail.wiring import WorkPlace, assemble, ledger_at, looking_ledger

if TYPE_CHECKING:
    from handrail.domain.exchange import workrail
    from handrail.domain.guides import definition
    from handrail.outside import linear_matcher
else:
    workrail = late_module("handrail.domain.exchange.workrail")
    definition = late_module("handrail.domain.guides.definition")
    linear_matcher = late_module("handrail.outside.linear_matcher")

REFERENCE_DIGITS = 12


class ImportOptions(NamedTuple):
    """What is to be imported, and where to."""

    document: PlanDocument
    source: ImportSource
    into: str | None
    named: bool
    """True if the person chose a name: then it is a plan of its own, wherever it comes from."""


class ImportSummary(msgspec.Struct, kw_only=True):
    """The result of an import, or what it would be."""

    file: str
    format: str
    name: str
    workflow: str | None = None
    status: str
    tasks: dict[str, int]
    """Tasks in the file, by state."""
    added: int
    known: int
    """Tasks that existed before, and are left as they were."""
    renamed: list[str] = []
    remarks: list[str] = []
    extended: bool = False
    """True if the workflow existed before."""
    dry_run: bool = False
    units: int = 1
    """How many units of work it took: undo takes back the last of them."""


@click.command("import")
@click.argument("file", metavar="FILE|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--from",
    "form",
    type=click.Choice(NAMES),
    help="The file's format.  [default: recognized from its content]",
)
@click.option("--name", metavar="NAME", help="The new workflow's name.  [default: from the file]")
@click.option(
    "--into",
    metavar="WORKFLOW",
    shell_complete=completions.workflows,
    help="Add what is new to an existing workflow.",
)
@click.option(
    "--tag", metavar="TAG", help="The tag to import from a Task Master file.  [default: master, or the only one]"
)
@click.option("--in-order", is_flag=True, help="Each task waits for the one before it, except those marked [P].")
@click.option("--dry-run", is_flag=True, help="Show what would be imported without writing anything.")
@common_options
def import_(
    file: Path,
    name: str | None,
    into: str | None,
    dry_run: bool,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Import a plan from FILE: what is done stays done, and agents go on with the rest.

    Reads Task Master's tasks.json, the output of `bd export` and `gh issue list --json`, Markdown check lists, and
    files written by `handrail export --format jsonl`; a WorkRail guide becomes a guide. `-` is standard input.

    Importing a file again is refused while its workflow is open; --into WORKFLOW adds only what is new. Up to 10,000
    tasks are imported completely or not at all. Larger plans are imported 10,000 tasks at a time; if that is
    interrupted, importing with --into adds the rest.
    """
    place = place_of(root)
    is_piped = str(file) == "-"
    file_name = "standard input" if is_piped else typed_text(file.name)
    name, tag = (typed_text(text) if text is not None else None for text in (name, options["tag"]))
    text = text_of(sys.stdin.buffer, file_name) if is_piped else read_text(file, place.project)
    form = options["form"] or format_of(text, "" if is_piped else str(file))
    if name is not None and not name.strip():
        raise InvalidParams("The name is empty.", hint="give --name some words, or leave it out")
    if name is not None and into is not None:
        raise InvalidParams("A workflow that is there has a name.", hint="leave out --name or --into")
    if form == GUIDE:
        if into is not None or options["in_order"] or tag is not None:
            raise InvalidParams("A guide is not a plan.", hint="leave out --into, --in-order and --tag")
        _take_guide(text, file_name, name, place, as_json=as_json, dry_run=dry_run)
        return
    stem = "Imported plan" if is_piped else typed_text(file.stem)
    reference = None if is_piped else _reference(file, place)
    document = read_plan(form, text, name=stem, source_ref=reference, part=tag)
    if name is not None:
        document = msgspec.structs.replace(document, name=name)
    if options["in_order"]:
        document = one_after_the_other(document)
    given = ImportOptions(document, ImportSource(file_name, form), into, name is not None)
    if dry_run:
        summary = _look_ahead(place, settings_of(place, options), given)
    else:
        summary = _import(assemble(place, settings_of(place, options)).call, given, quiet=as_json)
    echo_json(summary) if as_json else echo_lines(_lines(summary))


def _reference(file: Path, place: WorkPlace) -> str:
    """A file as every copy of the project would name it. One outside the project, or whose name is not valid text, gets
    a number that distinguishes it from others of that name and reveals nothing about this machine."""
    whole = file.resolve()
    if whole.is_relative_to(place.project):
        within = whole.relative_to(place.project).as_posix()
        if within == typed_text(within):
            return within
    return f"{typed_text(file.name)}@{sha256(os.fsencode(whole)).hexdigest()[:REFERENCE_DIGITS]}"


# -- plans ------------------------------------------------------------------------------------------------------------


def _look_ahead(place: WorkPlace, settings: Settings, given: ImportOptions) -> ImportSummary:
    """What an import would do, without creating a store."""
    ledger = looking_ledger(place, settings, ledger_at(place, settings))
    call = assemble(place, settings, ledger=ledger).call
    return call.ledger.run(person(), lambda unit: _dry_run(msgspec.structs.replace(call, unit=unit), given))


def _dry_run(call: Call, given: ImportOptions) -> ImportSummary:
    """What an import would do."""
    document = fitted(given.document, call.work.now_ms())
    check_document(document)
    if given.into is None:
        _check_not_here(call, document, given)
        remarks = [*document.remarks, *oddities(document.tasks), *_nobodys(document.tasks)]
        fields = {"added": len(document.tasks), "status": document.status or "", "remarks": remarks}
        return _summary(given, document, None, **fields, dry_run=True)
    workflow = _to_extend(call, given.into)
    new = what_is_new(call.work, workflow, document)
    check_addable(call.work, workflow, new)
    return _summary(
        given,
        document,
        workflow,
        added=len(new.tasks),
        known=len(document.tasks) - len(new.tasks),
        renamed=new.renamed,
        remarks=_remarks(document, new),
        status=workflow.status,
        dry_run=True,
    )


def _import(call: Call, given: ImportOptions, *, quiet: bool) -> ImportSummary:
    """Creates the plan in as many units of work as it needs: one, unless it is huge."""
    document = fitted(given.document, call.ledger.run(person(), lambda unit: unit.now_ms()))
    renamed: list[str] = []
    remarks = [*document.remarks, *oddities(document.tasks), *_nobodys(document.tasks)]

    def run(work: Callable[[Call], ImportedPlan]) -> ImportedPlan:
        return call.ledger.run(person(), lambda unit: work(msgspec.structs.replace(call, unit=unit)), writing=True)

    def begin(inner: Call) -> ImportedPlan:
        if given.into is not None:
            new = what_is_new(inner.work, _to_extend(inner, given.into), document)
            renamed[:], remarks[:] = new.renamed, _remarks(document, new)
            return extend(inner, given.into)
        _check_not_here(inner, document, given)
        return lay_new(inner.work, document, given.source, inner.here.repository)

    def extend(inner: Call, key: str) -> ImportedPlan:
        return lay_into(inner.work, _to_extend(inner, key), document, given.source)

    with progress("importing", len(document.tasks), quiet=quiet) as show:
        laid = run(begin)
        key, added, known, units = laid.workflow.id, laid.added, laid.known, 1
        while laid.left:
            show(added + known)
            try:
                laid = run(lambda inner: extend(inner, key))
            except (KeyboardInterrupt, Refusal):
                _say_how_to_go_on(given, key, added, laid.left)
                raise
            added, units = added + laid.added, units + 1
    return _summary(
        given,
        document,
        laid.workflow,
        added=added,
        known=known,
        renamed=renamed,
        remarks=remarks,
        status=laid.workflow.status,
        units=units,
    )


def _to_extend(call: Call, key: str) -> Workflow:
    workflow = workflow_meant(call, key, exact=True)
    check_open(workflow, starting=False)
    plan_to_change(call, workflow)
    return workflow


def _check_not_here(call: Call, document: PlanDocument, given: ImportOptions) -> None:
    """Refuses to create a second workflow from the same source, unless it was given a name of its own."""
    if given.named:
        return
    found = same_source(call.work, document, call.here.repository if call.here.shared else None)
    if found:
        first = found[0]
        raise InvalidPlan(
            f"{one_line(given.source.file)} is here already, as {first.id} ({one_line(first.name)})",
            hint=f"--into {first.id} adds what is new in it; --name NAME makes a second workflow",
            open=[{"id": workflow.id, "name": workflow.name} for workflow in found],
        )


def _remarks(document: PlanDocument, new: New) -> list[str]:
    return [*document.remarks, *new.remarks, *odd_together(new), *_nobodys(new.tasks)]


def _nobodys(tasks: Sequence[PlannedTask]) -> list[str]:
    """Remarks on tasks that are in progress elsewhere and that nobody here works on."""
    begun = [task.name for task in tasks if task.status in HELD_THERE]
    if not begun:
        return []
    going_on = "to resume one, once nothing it waits for is open, set it to in_progress (task_update_status)"
    return [f"in progress at the source, but nobody works on it here, so paused: {several(begun)}; {going_on}"]


def _say_how_to_go_on(given: ImportOptions, workflow_id: str, added: int, left: int) -> None:
    click.echo(
        f"Interrupted: {added:,} tasks are there, {left:,} are not. Importing "
        f"{one_line(given.source.file)} again with --into {workflow_id} takes the rest.",
        err=True,
    )


def _summary(given: ImportOptions, document: PlanDocument, workflow: Workflow | None, **what: Any) -> ImportSummary:
    states = Counter(task.status for task in document.tasks)
    return ImportSummary(
        file=given.source.file,
        format=given.source.format,
        name=workflow.name if workflow is not None else document.name,
        workflow=workflow.id if workflow is not None else None,
        tasks={state: states[state] for state in TASK_MACHINE.states if states[state]},
        extended=given.into is not None,
        **{"known": 0, **what},
    )


def _lines(summary: ImportSummary) -> list[str]:
    room = columns()
    total = sum(summary.tasks.values())
    states = ", ".join(f"{count:,} {as_words(state)}" for state, count in summary.tasks.items())
    about = f"{summary.file}: {PLANS[summary.format][0]}, {counted(total, 'task')}{f' ({states})' if states else ''}"
    lines = [*wrapped(about, room)]
    for remark in summary.remarks:
        lines += hanging("- ", remark, room, "  ")
    lines += wrapped(_outcome(summary), room)
    for name in summary.renamed:
        lines += hanging("- ", f'"{name}" was renamed: another task here already has its name', room, "  ")
    if summary.added and not summary.dry_run:
        lines += wrapped(_what_now(summary), room)
    return lines


def _outcome(summary: ImportSummary) -> str:
    """The result, or what it would be, in a sentence."""
    if summary.extended and not summary.added:
        return f'Nothing is new: "{summary.name}" has all of its tasks.'
    if not summary.extended:
        called = f" ({summary.workflow})" if summary.workflow is not None else ""
        would = ("would be", "It would be") if summary.dry_run else ("was", "It is")
        return f'"{summary.name}"{called} {would[0]} imported. {would[1]} {as_words(summary.status)}.'
    left = (
        f"; {counted(summary.known, 'task')} left as {'it is' if summary.known == 1 else 'they are'}"
        if summary.known
        else ""
    )
    return (
        f'"{summary.name}": {counted(summary.added, "task")} {"would be added" if summary.dry_run else "added"}{left}.'
    )


def _what_now(summary: ImportSummary) -> str:
    ending = f"`handrail done {summary.workflow} --abandon` gives it up"
    back = "`handrail undo` takes the import back" if summary.units == 1 else ending
    return f"`handrail next` shows what can be started; {back}."


# -- guides -----------------------------------------------------------------------------------------------------------


def _take_guide(text: str, file_name: str, name: str | None, place: WorkPlace, *, as_json: bool, dry_run: bool) -> None:
    """Writes a WorkRail guide as one of the project's."""
    taken = workrail.read_guide(text, Path(file_name).stem, linear_matcher.LinearMatcher())
    called = plain_title(name or "")[: definition.NAME_MAX]
    guide = {**taken.guide, "name": called} if called else taken.guide
    target = place.project / ".handrail" / "guides" / f"{guide['id']}.json"
    if target.exists():
        raise InvalidParams(f"{target} is there already", hint="remove it first, if this one is to replace it")
    if not dry_run:
        make_folder(target.parent, foreign_tree(place.project, place.home))
        write_text(target, msgspec.json.format(msgspec.json.encode(guide), indent=2).decode() + "\n", replace=False)
    if as_json:
        fields = {
            "file": file_name,
            "format": GUIDE,
            "guide": guide["id"],
            "written": typed_text(str(target)),
            "dry_run": dry_run,
        }
        echo_json({**fields, "steps": len(guide["steps"]), "remarks": taken.remarks})
        return
    room = columns()
    echo_lines(wrapped(f'{file_name}: the guide "{guide["name"]}", {counted(len(guide["steps"]), "step")}', room))
    for remark in taken.remarks:
        echo_lines(hanging("- ", remark, room, "  "))
    click.echo(f"{'would write' if dry_run else 'wrote'} {one_line(typed_text(str(target)))}")
    if not dry_run:
        click.echo(f"check it: handrail guide validate {guide['id']}")
