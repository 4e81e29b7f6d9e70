"""`handrail report`: a workflow's report in Markdown. It is the one that `handrail export --format md` and the page
write too (`surfaces/report`); here it is printed, unless a file is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.operation import Call
from handrail.outside.plan_files import write_text
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, workflow_meant_or_open
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_document, echo_json
from handrail.surfaces.report.build import report_markdown


@click.command()
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option("--output", type=click.Path(path_type=Path), help="Write it to this file instead of printing it.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@common_options
def report(
    workflow: str | None, output: Path | None, force: bool, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Print WORKFLOW's report in Markdown: its goal and plan, what it took, what each task did and changed, decisions,
    issues, and who answered what.

    This is for people who review the work or take it over. `handrail export` writes the same report as HTML, with the
    plan and a timeline drawn, or as JSON.

    WORKFLOW is an id, the beginning of one, or a name; without it, the only one that is open here.
    """
    text = in_one_look(root, options, lambda call: tell(call, workflow))
    if output is None:
        echo_json({"markdown": text}) if as_json else echo_document(text)
        return
    write_text(output, text, replace=force)
    echo_json({"output": str(output)}) if as_json else click.echo(f"wrote {output}")


def tell(call: Call, workflow: str | None) -> str:
    """The report of the workflow that is meant."""
    return report_markdown(call, workflow_meant_or_open(call, workflow))
