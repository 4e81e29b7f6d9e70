"""`handrail approve` and `handrail reject`: a person's answer to a gate. Work waits for it; nothing else opens it.

Where `approvals = "human"`, the answer must come from a terminal: a program that an agent started is not a person.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.pipeline.gatekeeping import DECISION
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import answer_gate
from handrail.kernel.errors import InvalidParams, NotAllowed, NotFound, SeveralOpen
from handrail.kernel.query import Query
from handrail.operation import Call
from handrail.surfaces.cli.columns import columns, one_line, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look
from handrail.surfaces.cli.render import echo_json

SHOWN = 10
LOOKED_AT = 500


@click.command()
@click.argument("gate", required=False)
@click.option("--say", metavar="TEXT", help="Told to the next agent, once.")
@click.option("--with", "word", metavar="OPTION", help="Another of the gate's options, such as post or skip.")
@common_options
def approve(
    gate: str | None, say: str | None, word: str | None, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Open GATE: the work goes on. GATE is an id, the beginning of one, or a run's workspace; it may be left out where
    only one waits."""
    _decide(root, options, gate, word, say, as_json=as_json)


@click.command()
@click.argument("gate", required=False)
@click.option("--say", metavar="TEXT", help="What is to change; told to the next agent, once.")
@common_options
def reject(gate: str | None, say: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Send the work back from GATE to the phase that made what was shown."""
    _decide(root, options, gate, "reject", say, as_json=as_json)


def _decide(
    root: Path | None, options: dict[str, Any], text: str | None, word: str | None, say: str | None, *, as_json: bool
) -> None:
    done = in_one_look(root, options, lambda call: _answered(call, text, word, say))
    if as_json:
        echo_json(done)
        return
    for line in wrapped(f"{done['gate']}: {done['answer']}. {done['next']}", columns()):
        click.echo(line)


def check_person(call: Call, does: str) -> None:
    """Raises NotAllowed where only a person does this, and nobody sits at a terminal."""
    if call.humans_decide and not _is_terminal():
        raise NotAllowed(
            f"here only a person {does}, and this is no terminal", hint="run it yourself in a terminal of your own"
        )


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _answered(call: Call, text: str | None, word: str | None, say: str | None) -> dict[str, Any]:
    check_person(call, "decides")
    gate = _meant(call, text)
    if word is None and gate.options[0] != "approve":
        raise InvalidParams(
            f"{gate.question} asks for one of {', '.join(gate.options)}", hint="say which with --with OPTION"
        )
    about = call.work.get(PipelineRun, gate.workflow_id)
    files = call.specs(call.here.repository).texts(about.workspace) if about is not None else {}
    run = answer_gate(call.work, gate, word or gate.options[0], say, files)
    state = run.run_state()
    after = f"The run is {state.ended}." if state.ended else "The run goes on when its agent asks what is next."
    return {"gate_id": gate.id, "gate": gate.question, "answer": word or gate.options[0], "next": after}


def _meant(call: Call, text: str | None) -> Gate:
    conditions = (("kind", DECISION), ("status", GATE_MACHINE.initial))
    waiting = [
        gate for gate in call.work.select(Gate, Query(conditions, ("created_at",), LOOKED_AT)) if _is_here(call, gate)
    ]
    found = [gate for gate in waiting if text is None or _fits(call, gate, text)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{gate.id} ({one_line(gate.question)})" for gate in (found or waiting)[:SHOWN])
    if not found:
        raise NotFound(
            f"no gate {one_line(text)} waits" if text else "no gate waits", hint=f"waiting: {listed or 'nothing'}"
        )
    raise SeveralOpen(f"{len(found)} gates wait", hint=f"say which: {listed}")


def _fits(call: Call, gate: Gate, text: str) -> bool:
    run = call.work.get(PipelineRun, gate.workflow_id)
    return gate.id.startswith(text) or gate.question == text or (run is not None and text in (run.workspace, run.id))


def _is_here(call: Call, gate: Gate) -> bool:
    run = call.work.get(PipelineRun, gate.workflow_id)
    return run is not None and run.repository_path == call.here.repository
