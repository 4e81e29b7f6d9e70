"""`handrail pipeline`: the runs of this repository for people: where each is and what it cost; pausing, resuming,
forking and abandoning one, and taking over one that was copied here. `run_lines.py` draws runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.domain.pipeline.budget import LIMITS
from handrail.domain.pipeline.controls import Going, abandon_run, fork_run, name_in, pause_run
from handrail.domain.pipeline.flow import weakens
from handrail.domain.pipeline.request import slug
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state_import import Imported, imported_run
from handrail.domain.pipeline.turns import run_at
from handrail.domain.pipeline.workspace_texts import document_bytes
from handrail.kernel.errors import InvalidParams, NotAllowed, RunNotFound
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.decide.approve import check_person
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of
from handrail.surfaces.cli.plans.run_lines import brief, listed_lines, shown_run, shown_run_lines
from handrail.surfaces.cli.plans.runs import run_meant, workspace_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.gate_answers import documents_of
from handrail.surfaces.run_controls import resumed
from handrail.toolsets.pipeline.start import TEMPLATES
from handrail.toolsets.pipeline.turns import STATE_FILE, destination, rules_of, state_json
from handrail.wiring import assemble

MOST = 100
FORKS = 100
TOLD = 10
"""How many things that are repeated after an import are listed."""


@click.group(cls=ListFirst)
def pipeline() -> None:
    """Show, steer and end pipeline runs. Without a command, list them."""


@pipeline.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List the runs of this repository, most recent first."""
    runs = in_one_look(root, options, _runs)
    if as_json:
        echo_json(runs)
        return
    if not runs:
        click.echo("No pipeline has run here. An agent begins one with pipeline_init.")
    for run in runs:
        echo_lines(listed_lines(run, columns()))


@pipeline.command()
@click.argument("workspace", metavar="RUN", shell_complete=completions.runs)
@common_options
def show(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show RUN: its phases, who approved them, and their cost.

    RUN is a folder in .specs, its name without the date, the end of its name, or a workflow's id.
    """
    found = in_one_look(root, options, lambda call: shown_run(call, run_meant(call, workspace)))
    if as_json:
        echo_json(found)
        return
    echo_lines(shown_run_lines(found, columns()))


@pipeline.command()
@click.argument("workspace", metavar="RUN", shell_complete=completions.runs)
@common_options
def abandon(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Abandon RUN. Its documents stay, but it cannot be resumed."""
    run = in_one_look(root, options, lambda call: abandon_run(call.work, run_meant(call, workspace)))
    _print_result(
        as_json,
        {"workspace": run.workspace, "status": "abandoned"},
        f"{run.workspace} is abandoned; its documents stay.",
    )


@pipeline.command()
@click.argument("workspace", metavar="RUN", shell_complete=completions.runs)
@common_options
def pause(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Pause RUN before its next phase."""
    run = in_one_look(root, options, lambda call: pause_run(call.work, run_meant(call, workspace)))
    _print_result(as_json, {"workspace": run.workspace, "status": "paused"}, f"{run.workspace} stops at its next turn.")


@pipeline.command()
@click.argument("workspace", metavar="RUN", shell_complete=completions.runs)
@click.option("--from", "again_from", metavar="PHASE", help="Repeat this phase and all after it.")
@click.option("--until", metavar="PHASE", help="Stop after this phase; `end` for the end of the flow.")
@click.option(
    "--limit", "limits", metavar="NAME=AMOUNT", multiple=True, help="A new limit, such as hard_tokens=900000."
)
@common_options
def resume(
    workspace: str,
    again_from: str | None,
    until: str | None,
    limits: tuple[str, ...],
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Resume a paused RUN, or send it back to a phase."""
    going = Going(again_from, until, dict(_limit(text) for text in limits))

    run = in_one_look(root, options, lambda call: _resume_run(call, workspace, going))
    shown = {"workspace": run.workspace, "status": "in_progress", "limits": run.limits}
    _print_result(as_json, shown, f"{run.workspace} continues at its agent's next call.")


@pipeline.command()
@click.argument("workspace", metavar="RUN", shell_complete=completions.runs)
@click.option("--from", "phase", metavar="PHASE", required=True, help="The first phase of the new run.")
@click.option("--name", metavar="NAME", help="The new run's name.  [default: the old name and a number]")
@common_options
def fork(workspace: str, phase: str, name: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Start a new run from PHASE of RUN.

    The new run starts with the documents of the phases before PHASE.
    """
    chosen: list[str] = []
    made = in_one_look(root, options, lambda call: _fork(call, workspace, phase, name, chosen))
    branch = f", on the branch {made['branch']}, which is yours to make" if made["branch"] else ""
    chose = name_in(made["workspace"])
    named = f" Its name is {chose}: letters, digits and hyphens." if name is not None and chose != name else ""
    _print_result(as_json, made, f"{made['workspace']} goes on from {phase}{branch}.{named}")


@pipeline.command("import")
@click.argument("workspace", metavar="RUN")
@common_options
def import_(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Take over RUN, a folder that was copied into .specs.

    Its state is read from state.json.
    """
    run, setbacks = _import_workspace(root, options, workspace)
    done = run.run_state().done
    shown = {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "completed_phases": done,
        "done_again": [{**one._asdict(), "told": one.sentence} for one in setbacks],
    }
    said = [f"{run.workspace} is taken over after {done[-1] if done else 'its request'}."]
    said += [f"{one.sentence}." for one in setbacks[:TOLD]]
    said += [f"And {len(setbacks) - TOLD} more are done again."] if len(setbacks) > TOLD else []
    _print_result(as_json, shown, "\n".join(said))


def _print_result(as_json: bool, shown: dict[str, Any], text: str) -> None:
    if as_json:
        echo_json(shown)
        return
    echo_lines(wrapped(text, columns()))


def _limit(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name.strip(), float(amount)
    except ValueError:
        raise InvalidParams(f"{text} is no limit", hint=f"NAME=AMOUNT, of {', '.join(LIMITS)}") from None


def _resume_run(call: Call, workspace: str, going: Going) -> PipelineRun:
    """The run as it continues. Raises IllegalTransition, and changes nothing, if it would stop again at once."""
    run = run_meant(call, workspace)
    check_person(call, "lets a run go on, or go back", run)
    return resumed(call.work, run, going, documents_of(call, run), rules_of(call))


def _fork(call: Call, workspace: str, phase: str, name: str | None, chosen: list[str]) -> dict[str, Any]:
    """Writes the documents before it creates the run. A retried unit of work keeps the place it chose."""
    run = run_meant(call, workspace)
    check_person(call, "takes answers along into another run", run)
    specs = call.world.specs(call.here.repository)
    if not chosen:
        chosen.append(_free_place(call, run.workspace, name))
    place, files = chosen[0], specs.texts(run.workspace)
    forked = fork_run(call.work, run, files, phase, place)
    for document in forked.documents:
        specs.write(place, document, document_bytes(files, document))
    specs.write(place, STATE_FILE, state_json(forked.run))
    return {
        "workspace": place,
        "workflow_id": forked.run.id,
        "forked_from": run.id,
        "branch": forked.run.branch,
        "documents": forked.documents,
    }


def _free_place(call: Call, workspace: str, name: str | None) -> str:
    day = workspace.removesuffix(name_in(workspace))
    places = [f"{day}{slug(name)}"] if name else [f"{workspace}-{number}" for number in range(2, FORKS)]
    specs = call.world.specs(call.here.repository)
    for place in places:
        if not specs.exists(place) and _is_new(call, place):
            return place
    raise InvalidParams(f"{places[0]} is there already", hint="give another --name")


def _is_new(call: Call, workspace: str) -> bool:
    return run_at(call.work, call.here.repository, workspace) is None


def _import_workspace(root: Path | None, options: dict[str, Any], workspace: str) -> Imported:
    """The run of a workspace, recorded here, and what in it is repeated. Creates a store if there is none."""
    place = place_of(root)
    call = assemble(place, settings_of(place, options)).call
    check_person(call, "takes over which gates were opened elsewhere")
    folder, specs = workspace_of(workspace), call.world.specs(call.here.repository)
    text, files = specs.state(folder), specs.texts(folder)
    if text is None:
        raise RunNotFound(f"{folder} has no state.json that can be read", hint="copy the workspace whole")
    there = destination(call, folder)

    def taken(unit: UnitOfWork) -> Imported:
        if run_at(unit, call.here.repository, folder) is not None:
            raise InvalidParams(f"{folder} is known here already", hint=f"`handrail pipeline show {folder}`")
        taken_over = imported_run(unit, text, files, there)
        _check_flow(call, taken_over.run)
        return taken_over

    return call.ledger.run(person(), taken, writing=True)


def _check_flow(call: Call, run: PipelineRun) -> None:
    """Raises NotAllowed if only people open gates and the flow that came along asks them less than ours."""
    flow, ours = run.flow_followed(), call.world.flows().bundled(TEMPLATES[run.effort])
    less = weakens(flow, ours) if ours is not None else []
    if call.humans_decide and less and flow.name not in call.own_flows:
        raise NotAllowed(
            f"here only people open gates, and the flow {flow.name} of this run asks less of them: {less[0]}",
            hint=f"begin the run anew; or name {flow.name} in own_flows of .handrail/config.toml, and run "
            "`handrail trust`",
        )


def _runs(call: Call) -> list[dict[str, Any]]:
    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), MOST)
    return [brief(call, run) for run in call.work.select(PipelineRun, newest)]
