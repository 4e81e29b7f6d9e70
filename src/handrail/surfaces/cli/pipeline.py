"""`handrail pipeline`: the runs of this repository for people. Where each stands and what it cost; pausing one, letting
it go on, forking it, giving it up, taking over one that was copied here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.pipeline.asking import SPECS, slug
from handrail.domain.pipeline.beginning import costs_of, finished_runs
from handrail.domain.pipeline.budget import LIMITS, spent
from handrail.domain.pipeline.estimating import estimate
from handrail.domain.pipeline.flow import weakens
from handrail.domain.pipeline.gatekeeping import open_gate
from handrail.domain.pipeline.holding import shown_holder
from handrail.domain.pipeline.importing import import_run
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import Rules, facts_of, find_run, run_at, why_stopped
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.pipeline.steering import Going, abandon_run, fork_run, name_in, pause_run, resume_run
from handrail.domain.work.explaining import spoken_time
from handrail.kernel.errors import InvalidParams, NotAllowed, RunNotFound
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, columns, dim, fit, one_line, wrapped
from handrail.surfaces.cli.deciding import check_person
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of
from handrail.surfaces.cli.plan import in_one_look
from handrail.surfaces.cli.render import echo_json
from handrail.toolsets.pipeline_starting import TEMPLATES
from handrail.toolsets.pipeline_turns import destination
from handrail.wiring import assemble

MOST = 100
FORKS = 100


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
        where = run["ended"] or (f"waits for you at {run['waits_at']}" if run["waits_at"] else _where(run))
        click.echo(f"{bold(fit(run['title'], columns() - 40))}  {where}, {spoken_time(run['quiet_ms'])} ago")
        click.echo(f"  {dim(run['workspace'])}  {run['flow']}, {run['tokens']} tokens")


def _where(run: dict[str, Any]) -> str:
    return f"stands still ({run['stopped']})" if run["stopped"] else f"at {run['phase']}"


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
    _say(
        as_json,
        {"workspace": run.workspace, "status": "abandoned"},
        f"{run.workspace} is abandoned; its documents stay.",
    )


@pipeline.command()
@click.argument("workspace")
@common_options
def pause(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Stop WORKSPACE's run at its next turn, without giving it up."""
    run = in_one_look(root, options, lambda call: pause_run(call.work, _found(call, workspace)))
    _say(as_json, {"workspace": run.workspace, "status": "paused"}, f"{run.workspace} stops at its next turn.")


@pipeline.command()
@click.argument("workspace")
@click.option("--from", "again_from", metavar="PHASE", help="Do this phase again, and all after it.")
@click.option("--until", metavar="PHASE", help="Stop after this phase; `end` for the end of the flow.")
@click.option("--limit", "limits", metavar="NAME=AMOUNT", multiple=True, help="Such as hard_tokens=900000.")
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
    """Let WORKSPACE's run go on that stands still, or send it back to a phase."""
    going = Going(again_from, until, dict(_limit(text) for text in limits))

    def resumed(call: Call) -> PipelineRun:
        check_person(call, "lets a run go on, or go back")
        run = _found(call, workspace)
        facts = facts_of(call.work, run, Rules(call.humans_decide, call.budget.prices))
        return resume_run(call.work, run, going, facts)

    run = in_one_look(root, options, resumed)
    shown = {"workspace": run.workspace, "status": "in_progress", "limits": run.limits}
    _say(as_json, shown, f"{run.workspace} goes on when its agent asks what is next.")


@pipeline.command()
@click.argument("workspace")
@click.option("--from", "phase", metavar="PHASE", required=True, help="The first phase that the fork does itself.")
@click.option("--name", metavar="NAME", help="What the fork is called; the name and a number where it is left out.")
@common_options
def fork(workspace: str, phase: str, name: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Begin a run of its own from PHASE of WORKSPACE's, with the documents of the phases before it."""
    chosen: list[str] = []
    made = in_one_look(root, options, lambda call: _forked(call, workspace, phase, name, chosen))
    branch = f", on the branch {made['branch']}, which is yours to make" if made["branch"] else ""
    text = f"{made['workspace']} goes on from {phase}{branch}."
    _say(as_json, made, text)


@pipeline.command("import")
@click.argument("workspace")
@common_options
def import_(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Take over the run of WORKSPACE, a folder in .specs that was copied here, from its state.json."""
    run = _taken_over(root, options, workspace)
    done = run.run_state().done
    shown = {"workspace": run.workspace, "workflow_id": run.id, "completed_phases": done}
    _say(as_json, shown, f"{run.workspace} is taken over after {done[-1] if done else 'its request'}.")


def _say(as_json: bool, shown: dict[str, Any], text: str) -> None:
    if as_json:
        echo_json(shown)
        return
    for line in wrapped(text, columns()):
        click.echo(line)


def _limit(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name.strip(), float(amount)
    except ValueError:
        raise InvalidParams(f"{text} is no limit", hint=f"NAME=AMOUNT, of {', '.join(LIMITS)}") from None


def _workspace(text: str) -> str:
    return text if text.startswith(f"{SPECS}/") else f"{SPECS}/{text}"


def _forked(call: Call, workspace: str, phase: str, name: str | None, chosen: list[str]) -> dict[str, Any]:
    """The documents are there before the run is. A unit of work may be done over: it then keeps the place it chose."""
    check_person(call, "takes answers along into another run")
    run = _found(call, workspace)
    specs = call.specs(call.here.repository)
    if not chosen:
        chosen.append(_free_place(call, run.workspace, name))
    place, files = chosen[0], specs.texts(run.workspace)
    forked = fork_run(call.work, run, files, phase, place)
    for document in forked.documents:
        specs.write(place, document, files[document])
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
    specs = call.specs(call.here.repository)
    for place in places:
        if not specs.exists(place) and _is_new(call, place):
            return place
    raise InvalidParams(f"{places[0]} is there already", hint="give another --name")


def _is_new(call: Call, workspace: str) -> bool:
    return run_at(call.work, call.here.repository, workspace) is None


def _taken_over(root: Path | None, options: dict[str, Any], workspace: str) -> PipelineRun:
    """The run of a workspace, recorded here. Where it was copied to there may be no store yet: it is made."""
    place = place_of(root)
    call = assemble(place, settings_of(place, options)).call
    check_person(call, "takes over which gates were opened elsewhere")
    folder, specs = _workspace(workspace.rstrip("/")), call.specs(call.here.repository)
    text, files = specs.state(folder), specs.texts(folder)
    if text is None:
        raise RunNotFound(f"{folder} has no state.json that can be read", hint="copy the workspace whole")
    there = destination(call, folder)

    def taken(unit: UnitOfWork) -> PipelineRun:
        if run_at(unit, call.here.repository, folder) is not None:
            raise InvalidParams(f"{folder} is known here already", hint=f"`handrail pipeline show {folder}`")
        run = import_run(unit, text, files, there)
        _check_flow(call, run)
        return run

    return call.ledger.run(person(), taken, writing=True)


def _check_flow(call: Call, run: PipelineRun) -> None:
    """Raises NotAllowed where only people open gates, and the flow that came along asks them less than ours."""
    flow, ours = run.flow_followed(), call.flows().bundled(TEMPLATES[run.effort])
    less = weakens(flow, ours) if ours is not None else []
    if call.humans_decide and less and flow.name not in call.own_flows:
        raise NotAllowed(
            f"here only people open gates, and the flow {flow.name} of this run asks less of them: {less[0]}",
            hint=f"begin the run anew; or name {flow.name} in own_flows of .handrail/config.toml",
        )


def _found(call: Call, workspace: str) -> PipelineRun:
    call.specs(call.here.repository)  # what a run is read back into is made known there
    return find_run(call.work, call.here.repository, _workspace(workspace))


def _runs(call: Call) -> list[dict[str, Any]]:
    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), MOST)
    return [_brief(call, run) for run in call.work.select(PipelineRun, newest)]


def _brief(call: Call, run: PipelineRun) -> dict[str, Any]:
    gate = open_gate(call.work, run.id)
    state = run.run_state()
    have = spent(run.log, call.budget.prices)
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "title": run.title,
        "flow": run.flow["name"],
        "phase": run.dispatched["phase"] if run.dispatched is not None else _last(state.done),
        "ended": state.ended,
        "stopped": why_stopped(call.work, run),
        "waits_at": gate.question if gate is not None else None,
        "tokens": have.tokens,
        "minutes": round(have.minutes, 1),
        "money": round(have.money, 2) if call.budget.prices else None,
        "quiet_ms": call.work.now_ms() - run.updated_at,
    }


def _last(done: list[str]) -> str:
    return f"after {done[-1]}" if done else "its beginning"


def _shown(call: Call, workspace: str) -> dict[str, Any]:
    run = _found(call, workspace)
    flow, state, facts = run.flow_followed(), run.run_state(), run.facts(humans_decide=call.humans_decide)
    phases = []
    for phase in flow.phases:
        costs = [entry for entry in run.log if entry["phase"] == phase.id]
        left_out = is_left_out(phase, state, flow, facts)
        status = "given" if phase.id in state.given else "done" if phase.id in state.done else "open"
        phases.append(
            {
                "id": phase.id,
                "label": phase.label,
                "status": "skipped" if left_out else status,
                "times": sum(entry.get("times", 1) for entry in costs),
                "tokens": sum(entry["tokens"] for entry in costs),
            }
        )
    expected = estimate(costs_of(finished_runs(call.work, run.repository_path), run.effort, call.budget.prices))
    return {
        **_brief(call, run),
        "branch": run.branch,
        "effort": run.effort,
        "limits": run.limits,
        "forked_from": run.forked_from,
        "held_by": shown_holder(run.holder) if run.holder is not None else None,
        "expected": expected,
        "phases": phases,
    }


def _lines(found: dict[str, Any], room: int) -> Iterator[str]:
    yield from wrapped(f"{found['title']} ({found['flow']}, effort {found['effort']})", room)
    marks = {"done": "✓", "given": "○", "skipped": "–", "open": "·"}
    for phase in found["phases"]:
        cost = f", {phase['tokens']:,} tokens in {phase['times']}" if phase["times"] else ""
        given = ", there before it began" if phase["status"] == "given" else ""
        yield f"  {marks[phase['status']]} {one_line(phase['label'])} {dim(phase['id'])}{cost}{given}"
    yield from wrapped(f"Spent: {_spent(found)}.{_expected(found['expected'])}", room)
    if found["waits_at"]:
        yield f"It waits for you at {found['waits_at']}: `handrail approve` or `handrail reject --say …`."
    elif found["stopped"]:
        yield from wrapped(
            f"It stands still ({found['stopped']}): `handrail pipeline resume {found['workspace']}`.", room
        )


def _spent(found: dict[str, Any]) -> str:
    money = f", {found['money']:.2f} of money" if found["money"] is not None else ""
    limits = ", ".join(f"{name} {value:,g}" for name, value in found["limits"].items() if name in LIMITS)
    return f"{found['tokens']:,} tokens, {found['minutes']:g} minutes{money}{f' (limits: {limits})' if limits else ''}"


def _expected(expected: dict[str, Any] | None) -> str:
    if expected is None:
        return ""
    half, most = expected["tokens"]["p50"], expected["tokens"]["p90"]
    return f" Of {expected['runs']} runs of this effort half took at most {half:,} tokens, nine of ten {most:,}."
