"""`handrail export`: a workflow as a file: its report for people, or its plan for programs.

What a report says is `domain/overview/report.py`'s, what a plan is `domain/exchange`'s. A file that is there is not
replaced unless that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from handrail.domain.exchange import checklist, jsonl, mermaid
from handrail.domain.exchange.exporter import document_of
from handrail.domain.exchange.plan_document import PlanDocument
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.operation import Call
from handrail.outside.plan_files import LARGEST, OWN_TIMES, write_text
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, workflow_meant_or_open
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import common_options, typed_text
from handrail.surfaces.cli.render import echo_document, echo_json, is_terminal
from handrail.surfaces.report.build import report_data, report_html, report_markdown

NAME = 60
"""Characters of a file's name that are made from the workflow's."""
REPORTS: dict[str, Callable[[Call, Workflow], str]] = {"html": report_html, "md": report_markdown}
PLANS: dict[str, Callable[[PlanDocument], str]] = {"jsonl": jsonl.write, "checklist": checklist.write}
FORMATS = ("html", "md", "json", "jsonl", "checklist", "mermaid")
ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".json": "json",
    ".jsonl": "jsonl",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
}


class ExportedFile(NamedTuple):
    """What is written, of which workflow, and what the form cannot say of it."""

    name: str
    text: str
    remark: str = ""


@click.command()
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="What to write.  [default: from the file's ending, else html]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; `-` is standard output.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--all", "whole", is_flag=True, help="Draw every task in mermaid, not only the first 500.")
@common_options
def export(
    workflow: str | None,
    form: str | None,
    output: Path | None,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Export WORKFLOW to a file: its report or its plan.

    \b
    html, md, json   the report: goal, totals, tasks and their changes,
                     decisions, issues, who answered what; html draws
                     the plan and a timeline
    jsonl            the plan and all that is known of it, a line a task;
                     `handrail import` reads it again without loss
    checklist        the plan as a Markdown check list; it can be imported
                     again, with what a check list can say
    mermaid          the plan as a chart

    WORKFLOW is an id, the beginning of one, or a name; without it, the only one that is open here. HTML goes to a file
    named after the workflow, unless the output is redirected; everything else goes to standard output. `handrail
    report` prints the same report as md.
    """
    chosen = form or _form_of(output) or ("json" if as_json else "html")
    made = in_one_look(root, options, lambda call: _export_as(call, workflow, chosen, whole=options["whole"]))
    target = output or (Path(f"{_file_name(made.name)}.html") if chosen == "html" and is_terminal() else None)
    if target is None or str(target) == "-":
        echo_document(made.text)
        if made.remark:
            click.echo(made.remark, err=True)
        return
    write_text(target, made.text, replace=options["force"])
    shown = typed_text(str(target))
    if as_json:
        echo_json({"output": shown, **({"remark": made.remark} if made.remark else {})})
        return
    click.echo(f"wrote {one_line(shown)}")
    if made.remark:
        click.echo(made.remark, err=True)
    elif form is None and chosen == "md":
        click.echo("It is the report; --format checklist writes the plan as a check list.", err=True)


def _form_of(output: Path | None) -> str | None:
    """The form that a file's ending means; None where it has none, and a refusal where it means nothing here."""
    ending = output.suffix.lower() if output is not None else ""
    if ending and ending not in ENDINGS:
        raise InvalidParams(
            f"no form has the ending {one_line(ending)}",
            hint=f"say which it is with --format: {', '.join(FORMATS)}; or use an ending: {', '.join(ENDINGS)}",
        )
    return ENDINGS.get(ending)


def _export_as(call: Call, workflow: str | None, form: str, *, whole: bool) -> ExportedFile:
    meant = workflow_meant_or_open(call, workflow)
    if form in REPORTS:
        return ExportedFile(meant.name, REPORTS[form](call, meant))
    if form == "json":
        document = msgspec.json.encode(report_data(call, meant))
        return ExportedFile(meant.name, msgspec.json.format(document, indent=2).decode() + "\n")
    plan = document_of(call.work, meant)
    if form == "mermaid":
        chart = mermaid.draw(plan, whole=whole)
        remark = f"{chart.drawn} of {len(plan.tasks):,} tasks are drawn; --all draws all of them"
        return ExportedFile(meant.name, chart.text, remark if chart.drawn < len(plan.tasks) else "")
    left_out = checklist.left_out(plan) if form == "checklist" else []
    remark = f"A check list leaves out: {', '.join(left_out)}. --format jsonl has everything." if left_out else ""
    text = PLANS[form](plan)
    if form == "jsonl" and len(text.encode()) > OWN_TIMES * LARGEST:
        remark = f"It is larger than {OWN_TIMES * LARGEST // (1024 * 1024)} MB, the most that `handrail import` reads."
    return ExportedFile(meant.name, text, remark)


def _file_name(name: str) -> str:
    """A name that every system takes, from one that may say anything."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words)[:NAME].strip("-") or "report"
