"""A gate as a person sees it before answering: the run, the question, the document itself, and its hash.

Finds the gate a person means, and draws it; `surfaces/gate_answers.py` says what it is about. Prints and answers
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.pipeline.answers import ABANDON, REJECT
from handrail.domain.pipeline.request import SPECS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.kernel.errors import NotFound, SeveralOpen
from handrail.kernel.query import Query
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, counted, dim, fit, kept_in_shape, one_line, wrapped
from handrail.surfaces.cli.plans.runs import fits_run, workspace_of
from handrail.surfaces.gate_answers import OpenGate, asked_now, documents_of

__all__ = ["OpenGate", "answer_lines", "asked_about", "asked_lines", "document_of"]

SHOWN = 10
LOOKED_AT = 500
SHOWN_LINES = 60
"""How many lines of a document are shown; for the rest, its path is given."""
INDENT = "  "
APPROVE = "approve"


def asked_about(call: Call, text: str | None) -> OpenGate:
    """The gate that is meant, about the current document."""
    known, run = _waiting_gate_meant(call, text)
    return asked_now(call.work, known, documents_of(call, run))


def _waiting_gate_meant(call: Call, text: str | None) -> tuple[Gate, PipelineRun]:
    conditions = (("kind", DECISION), ("status", GATE_MACHINE.initial))
    every = call.work.select(Gate, Query(conditions, ("created_at",), LOOKED_AT))
    waiting = [(gate, run) for gate in every if (run := _run_here(call, gate)) is not None]
    found = [(gate, run) for gate, run in waiting if text is None or _fits(gate, run, text)]
    exact = [(gate, run) for gate, run in found if _is_exact(gate, run, text)]
    if len(exact or found) == 1:
        return (exact or found)[0]
    listed = ", ".join(_listed(gate, run) for gate, run in (found or waiting)[:SHOWN])
    if not found:
        raise NotFound(
            f"no gate {one_line(text)} waits" if text else "no gate waits",
            hint=f"waiting: {listed}" if listed else "nothing waits for you; `handrail status` shows how all stands",
        )
    raise SeveralOpen(f"{len(found)} gates wait", hint=f"say which: {listed}")


def _listed(gate: Gate, run: PipelineRun) -> str:
    return f'{gate.id} ({one_line(gate.question)} of "{fit(run.title, 60)}", {run.workspace})'


def _fits(gate: Gate, run: PipelineRun, text: str) -> bool:
    return gate.id.startswith(text) or gate.question == text or fits_run(run, text)


def _is_exact(gate: Gate, run: PipelineRun, text: str | None) -> bool:
    return text is not None and (text in (gate.id, run.id) or workspace_of(text) == run.workspace)


def _run_here(call: Call, gate: Gate) -> PipelineRun | None:
    run = call.work.get(PipelineRun, gate.workflow_id)
    return run if run is not None and run.repository_path == call.here.repository else None


# -- shown ------------------------------------------------------------------------------------------------------------


def document_of(asked: OpenGate) -> dict[str, Any]:
    """A gate for programs."""
    gate = asked.gate
    return {
        "gate_id": gate.id,
        "gate": gate.question,
        "options": gate.options,
        "title": asked.run.title,
        "workspace": asked.run.workspace,
        "workflow_id": asked.run.id,
        "why": asked.why,
        "shows": asked.path,
        "content_hash": gate.content_hash,
        "text": asked.text,
        "changed": asked.changed,
    }


def asked_lines(asked: OpenGate, room: int) -> Iterator[str]:
    """A gate for people: the run, the question, the document."""
    gate = asked.gate
    yield bold(fit(asked.run.title, room))
    yield from wrapped(f"{asked.run.workspace}, at {gate.question} ({asked.label})", room, INDENT)
    for told in (gate.id, f"content {gate.content_hash}"):
        yield from (dim(line) for line in wrapped(told, room, INDENT))
    yield from wrapped(asked.why or "", room, INDENT)
    if asked.path is not None:
        yield ""
        yield from _document_lines(asked, room)
    if asked.changed:
        yield ""
        yield from wrapped("This was changed since it was asked about. It is now asked about as it stands here.", room)


def answer_lines(asked: OpenGate, room: int) -> Iterator[str]:
    """Each answer that the gate accepts, as the command that gives it."""
    name = asked.run.workspace.removeprefix(f"{SPECS}/")
    known = {
        APPROVE: (f"handrail approve {name}", "the work goes on"),
        REJECT: (f"handrail reject {name}", "it goes back and is changed"),
        ABANDON: (f"handrail reject {name} --abandon", "the run ends; its documents stay"),
    }
    answers = [known.get(word, (f"handrail approve {name} --with {word}", "")) for word in asked.gate.options]
    wide = max(len(command) for command, _ in answers)
    yield bold("Answers")
    for command, does in answers:
        if wide + len(does) + 2 * len(INDENT) <= room:
            yield f"{INDENT}{command.ljust(wide)}{INDENT}{dim(does)}".rstrip()
        else:  # a command is never wrapped, so that it can be copied
            yield f"{INDENT}{command}"
            yield from (dim(line) for line in wrapped(does, room, 2 * INDENT))


def _document_lines(asked: OpenGate, room: int) -> Iterator[str]:
    if asked.text is None:
        yield from wrapped(f"{asked.path} is not there.", room)
        return
    lines = list(kept_in_shape(asked.text, room, INDENT))
    yield bold(fit(asked.path or "", room))
    yield from lines[:SHOWN_LINES]
    if len(lines) > SHOWN_LINES:
        left = len(lines) - SHOWN_LINES
        yield ""
        yield from wrapped(f"{counted(left, 'more line')}: the whole text is {asked.path}", room)
