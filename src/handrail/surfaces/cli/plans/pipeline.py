"""`handrail pipeline`: the runs of this repository for people: where each is and what it cost; pausing, resuming,
forking and abandoning one, and taking over one that was copied here.

Runs as `handrail pipeline` lists and shows them: data for programs, lines for people.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.agent import Agent
from handrail.domain.gates.gate import Gate
from handrail.domain.overview.pipeline import command_to_go_on
from handrail.domain.pipeline.budget import LIMITS, estimate, spent
from handrail.domain.pipeline.controls import Going, abandon_run, fork_run, name_in, pause_run
from handrail.domain.pipeline.flow import weakens
from handrail.domain.pipeline.ownership import shown_holder
from handrail.domain.pipeline.request import slug
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.pipeline.run_status import STOPPED
from handrail.domain.pipeline.start import costs_of, finished_runs
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.pipeline.state_import import Imported, imported_run
from handrail.domain.pipeline.turns import limits_of, run_at
from handrail.domain.pipeline.workspace_texts import document_bytes
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import InvalidParams, NotAllowed, RunNotFound
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.records import Query, UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import bold, columns, counted, dim, fit, one_line, pad, widest, width, wrapped
from handrail.surfaces.cli.decide.approve import check_person
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of
from handrail.surfaces.cli.plans.runs import run_meant, spoken, standing, workspace_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.gate_answers import documents_of
from handrail.surfaces.runs import resumed
from handrail.toolsets.pipeline.start import TEMPLATES
from handrail.toolsets.pipeline.turns import STATE_FILE, destination, rules_of, state_json
from handrail.wiring import assemble

LOOKED_AT = 500
"""How many answers to the gates of one run are read."""
LEAST_TITLE = 20
_MARKS = {"done": "✓", "given": "○", "skipped": "–", "open": "·"}


def amount(value: float) -> str:
    """A number for people: `1,000,000`, `2.50`."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


# -- as data ----------------------------------------------------------------------------------------------------------


def brief(call: Call, run: PipelineRun) -> dict[str, Any]:
    """Where a run is and what it has cost."""
    one = standing(call.work, run)
    have = spent(run.log, call.budget.prices)
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "title": run.title,
        "flow": one.flow,
        "phase": one.phase,
        "under_way": one.under_way,
        "ended": one.ended,
        "stopped": one.stopped,
        "waits_at": one.waits_at,
        "gate_id": one.gate_id,
        "stands": spoken(one),
        "go_on_with": command_to_go_on(run, one, rules_of(call)),
        "tokens": have.tokens,
        "minutes": round(have.minutes, 1),
        "money": round(have.money, 2) if call.budget.prices else None,
        "quiet_ms": call.work.now_ms() - run.updated_at,
    }


def shown_run(call: Call, run: PipelineRun) -> dict[str, Any]:
    """A run with its phases."""
    flow, state, facts = run.flow_followed(), run.run_state(), run.facts(humans_decide=call.humans_decide)
    answers = _answers(call, run)
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
                "answer": answers.get(phase.id) if status == "done" else None,
            }
        )
    expected = estimate(costs_of(finished_runs(call.work, run.repository_path), run.effort, call.budget.prices))
    parent = call.work.get(PipelineRun, run.forked_from) if run.forked_from is not None else None
    return {
        **brief(call, run),
        "branch": run.branch,
        "effort": run.effort,
        "limits": {**run.limits, **limits_of(run, rules_of(call))},
        "forked_from": run.forked_from,
        "fork_of": parent.workspace if parent is not None else None,
        "held_by": _holder(call, run),
        "expected": expected,
        "phases": phases,
    }


def _holder(call: Call, run: PipelineRun) -> dict[str, Any] | None:
    """Who drives a run; an agent with its name."""
    if run.holder is None:
        return None
    shown = shown_holder(run.holder)
    agent = call.work.get(Agent, shown.get("agent_id") or "")
    return {"name": agent.name, **shown} if agent is not None else shown


def _answers(call: Call, run: PipelineRun) -> dict[str, dict[str, Any]]:
    """The last answer at each phase's gate, including gates opened because agents had tried often enough."""
    conditions = (("workflow_id", run.id), ("kind", DECISION), ("status", "answered"))
    newest = call.work.select(Gate, Query(conditions, ("-answered_at", "-id"), LOOKED_AT))
    found: dict[str, dict[str, Any]] = {}
    for gate in reversed(newest):
        told = {"gate": gate.question, "answer": gate.answer, "by": gate.answered_by, "channel": gate.channel}
        found[gate.question.removesuffix("-limit").removesuffix("-failed")] = told
    return found


# -- as lines ---------------------------------------------------------------------------------------------------------


def listed_lines(run: dict[str, Any], room: int) -> Iterator[str]:
    """A run in a list, on two or three lines."""
    where = f"{run['stands']}, {spoken_time(run['quiet_ms'])} ago"
    free = room - width(where) - 2
    if free >= min(width(one_line(run["title"])), LEAST_TITLE):
        yield f"{bold(fit(run['title'], free))}  {where}"
    else:
        yield bold(fit(run["title"], room))
        yield from wrapped(where, room, "  ")
    cost = f"{run['flow']}, {counted(run['tokens'], 'token')}"
    yield f"  {dim(fit(run['workspace'], room - width(cost) - 4))}  {cost}"


def shown_run_lines(found: dict[str, Any], room: int) -> Iterator[str]:
    """One run: what it is, every phase, what it cost, what it waits for."""
    yield from wrapped(f"{found['title']} ({found['flow']}, effort {found['effort']})", room)
    yield from wrapped(_run_words(found), room)
    labels = widest((phase["label"] for phase in found["phases"]), room // 3)
    ids = widest((phase["id"] for phase in found["phases"]), room // 3)
    for phase in found["phases"]:
        yield _phase_line(phase, labels, ids, room)
    yield from wrapped(f"Spent: {_spent(found)}.{_expected(found['expected'])}", room)
    if found["waits_at"]:
        yield from wrapped(
            f"It waits for you at {found['waits_at']}: `handrail approve` shows it and asks; "
            "`handrail reject --say …` sends it back.",
            room,
        )
    if found["stopped"]:
        yield from wrapped(f"It is {STOPPED[found['stopped']]}: {found['go_on_with']}", room)


def _run_words(found: dict[str, Any]) -> str:
    words = [found["workspace"]]
    if found["forked_from"] is not None:
        words.append(f"a fork of {found['fork_of'] or found['forked_from']}")
    words.append(found["stands"])
    if (holder := found["held_by"]) is not None:
        named = " ".join(filter(None, (holder.get("name"), holder.get("agent_id") and f"({holder['agent_id']})")))
        words.append(f"driven by {named or 'somebody without a name'}")
    return ", ".join(words)


def _phase_line(phase: dict[str, Any], labels: int, ids: int, room: int) -> str:
    told = [f"{counted(phase['tokens'], 'token')} in {counted(phase['times'], 'turn')}"] if phase["times"] else []
    told += ["there before it began"] if phase["status"] == "given" else []
    told += [_answer_words(phase)] if phase["answer"] is not None else []
    told += ["left out"] if phase["status"] == "skipped" else []
    rest = fit(", ".join(told), room - 8 - labels - ids)
    key = f"{dim(pad(phase['id'], ids))}  {rest}" if rest else dim(fit(phase["id"], ids))
    return f"  {_MARKS[phase['status']]} {pad(phase['label'], labels)}  {key}"


def _answer_words(phase: dict[str, Any]) -> str:
    answer = phase["answer"]
    if answer["channel"] == HANDRAIL.channel:
        return "opened by --auto"
    at = f" at {answer['gate']}" if answer["gate"] != phase["id"] else ""
    return f"{answer['answer']} by {answer['by']}{at}"


def _spent(found: dict[str, Any]) -> str:
    minutes = f"{found['minutes']:g} {'minute' if found['minutes'] == 1 else 'minutes'}"
    money = f", {found['money']:,.2f} at your prices" if found["money"] is not None else ""
    limits = ", ".join(f"{name} {amount(value)}" for name, value in found["limits"].items() if name in LIMITS)
    return f"{counted(found['tokens'], 'token')}, {minutes}{money}{f' (limits: {limits})' if limits else ''}"


def _expected(expected: dict[str, Any] | None) -> str:
    if expected is None:
        return ""
    half, most = expected["tokens"]["p50"], expected["tokens"]["p90"]
    if expected["runs"] == 1:
        return f" The one run of this effort that has ended took {counted(most, 'token')}."
    return f" Of {expected['runs']:,} runs of this effort half took at most {half:,} tokens, nine of ten {most:,}."


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
