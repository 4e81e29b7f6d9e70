"""`handrail pipeline`: the runs of this repository for people. Where each stands, what it cost, giving one up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import abandon_run, find_run, open_gate
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.work.explaining import spoken_time
from handrail.kernel.query import Query
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, columns, dim, fit, one_line, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options
from handrail.surfaces.cli.plan import in_one_look
from handrail.surfaces.cli.render import echo_json

MOST = 100


@click.group(cls=ListFirst)
def pipeline() -> None:
    """Show runs and end them. Without a command, list them."""


@pipeline.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List the runs of this repository, the one that moved last first."""
    runs = in_one_look(root, options, _runs)
    if as_json:
        echo_json(runs)
        return
    if not runs:
        click.echo("No pipeline has run here. An agent begins one with pipeline_init.")
    for run in runs:
        where = run["ended"] or (f"waits for you at {run['waits_at']}" if run["waits_at"] else f"at {run['phase']}")
        click.echo(f"{bold(fit(run['title'], columns() - 40))}  {where}, {spoken_time(run['quiet_ms'])} ago")
        click.echo(f"  {dim(run['workspace'])}  {run['flow']}, {run['tokens']} tokens")


@pipeline.command()
@click.argument("workspace")
@common_options
def show(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show WORKSPACE's run: every phase, and what each cost."""
    found = in_one_look(root, options, lambda call: _shown(call, workspace))
    if as_json:
        echo_json(found)
        return
    for line in _lines(found, columns()):
        click.echo(line)


@pipeline.command()
@click.argument("workspace")
@common_options
def abandon(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Give WORKSPACE's run up. Its documents stay; it does not go on again."""
    run = in_one_look(root, options, lambda call: abandon_run(call.work, _found(call, workspace)))
    if as_json:
        echo_json({"workspace": run.workspace, "status": "abandoned"})
    else:
        click.echo(f"{run.workspace} is abandoned; its documents stay.")


def _found(call: Call, workspace: str) -> PipelineRun:
    name = workspace if workspace.startswith(".specs/") else f".specs/{workspace}"
    return find_run(call.work, call.here.repository, name)


def _runs(call: Call) -> list[dict[str, Any]]:
    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), MOST)
    return [_brief(call, run) for run in call.work.select(PipelineRun, newest)]


def _brief(call: Call, run: PipelineRun) -> dict[str, Any]:
    gate = open_gate(call.work, run.id)
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "title": run.title,
        "flow": run.flow["name"],
        "phase": run.dispatched["phase"] if run.dispatched is not None else "its beginning",
        "ended": run.run_state().ended,
        "waits_at": gate.question if gate is not None else None,
        "tokens": sum(entry["tokens"] for entry in run.log),
        "quiet_ms": call.work.now_ms() - run.updated_at,
    }


def _shown(call: Call, workspace: str) -> dict[str, Any]:
    run = _found(call, workspace)
    flow, state, facts = run.flow_followed(), run.run_state(), run.facts(humans_decide=call.humans_decide)
    phases = []
    for phase in flow.phases:
        costs = [entry for entry in run.log if entry["phase"] == phase.id]
        left_out = is_left_out(phase, state, flow, facts)
        phases.append(
            {
                "id": phase.id,
                "label": phase.label,
                "status": "skipped" if left_out else "done" if phase.id in state.done else "open",
                "times": len(costs),
                "tokens": sum(entry["tokens"] for entry in costs),
            }
        )
    return {**_brief(call, run), "branch": run.branch, "effort": run.effort, "phases": phases}


def _lines(found: dict[str, Any], room: int) -> Iterator[str]:
    yield from wrapped(f"{found['title']} ({found['flow']}, effort {found['effort']})", room)
    marks = {"done": "✓", "skipped": "–", "open": "·"}
    for phase in found["phases"]:
        cost = f", {phase['tokens']} tokens in {phase['times']}" if phase["times"] else ""
        yield f"  {marks[phase['status']]} {one_line(phase['label'])} {dim(phase['id'])}{cost}"
    if found["waits_at"]:
        yield f"It waits for you at {found['waits_at']}: `handrail approve` or `handrail reject --say …`."
