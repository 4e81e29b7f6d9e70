"""`handrail approve` and `handrail reject`: a person's answer to a gate. Work waits for it; nothing else opens it.

At a terminal the document is shown first, and the answer is asked for. With `approvals = "human"`, the answer must come
from a terminal: a program started by an agent is not a person.

A gate as a person sees it before answering: the run, the question, the document itself, and its hash.

Finds the gate a person means, and draws it; `surfaces/gate_answers.py` says what it is about.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.pipeline.answers import ABANDON, REJECT
from handrail.domain.pipeline.request import SPECS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.kernel.errors import IllegalTransition, InvalidParams, NotAllowed, NotFound, SeveralOpen
from handrail.kernel.records import Query
from handrail.operation import Call
from handrail.surfaces import gate_answers
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import bold, columns, counted, dim, fit, kept_in_shape, one_line, wrapped
from handrail.surfaces.cli.options import common_options, sits_at_terminal
from handrail.surfaces.cli.plans.runs import fits_run, workspace_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.gate_answers import OpenGate, asked_now, documents_of
from handrail.surfaces.refusals import EXIT_REFUSED

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


CHANGE = "What should change? (press Enter to skip)"


@click.command()
@click.argument("gate", required=False, shell_complete=completions.gates)
@click.option("--say", metavar="TEXT", help="A message to the next agent.")
@click.option("--with", "word", metavar="OPTION", help="Choose another of the gate's options, such as post or skip.")
@click.option("--show", is_flag=True, help="Show what is asked without answering.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@common_options
def approve(
    gate: str | None,
    say: str | None,
    word: str | None,
    show: bool,
    yes: bool,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Approve GATE, so that the work goes on.

    GATE is an id, the beginning of one, or a run; you can leave it out if only one gate is waiting. At a terminal you
    see what you approve and are asked first.
    """
    if show:
        _show(in_one_look(root, options, lambda call: asked_about(call, gate)), as_json=as_json)
        return
    _decide(root, options, gate, word, say, ask=not yes, as_json=as_json)


@click.command()
@click.argument("gate", required=False, shell_complete=completions.gates)
@click.option("--say", metavar="TEXT", help="What to change; a message to the next agent.")
@click.option("--abandon", is_flag=True, help="End the run instead of sending it back. Its documents stay.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@common_options
def reject(
    gate: str | None, say: str | None, abandon: bool, yes: bool, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Send the work back from GATE to the phase that produced it.

    At a terminal you see what you reject and are asked what to change.
    """
    _decide(root, options, gate, ABANDON if abandon else REJECT, say, ask=not yes, as_json=as_json)


def _show(asked: OpenGate, *, as_json: bool = False) -> None:
    if as_json:
        echo_json(document_of(asked))
        return
    echo_lines(asked_lines(asked, columns()))
    click.echo()
    echo_lines(answer_lines(asked, columns()))
    click.echo()


def _decide(
    root: Path | None,
    options: dict[str, Any],
    text: str | None,
    word: str | None,
    say: str | None,
    *,
    ask: bool,
    as_json: bool,
) -> None:
    asking = ask and sits_at_terminal()
    if asking and as_json:
        raise InvalidParams("--json shows nothing and asks nothing", hint="add --yes, or look first: approve --show")
    seen = in_one_look(root, options, lambda call: asked_about(call, text)) if asking else None
    while seen is not None:
        _show(seen)
        if not click.confirm(f"{_word(seen, word)}?"):
            click.echo("Nothing is answered; the run still waits.")
            sys.exit(EXIT_REFUSED)
        if word == REJECT and say is None:
            say = click.prompt(CHANGE, default="", show_default=False, prompt_suffix=" ").strip()
        done = _answer(root, options, seen.gate.id, word, say or None)
        if isinstance(done, dict):
            return _print_answer(done, as_json=False)
        seen = done  # changed while it was being read: show and ask again
    done = _answer(root, options, text, word, say)
    if isinstance(done, OpenGate):
        raise _show_and_refuse(done, word, as_json=as_json)
    return _print_answer(done, as_json=as_json)


def _answer(
    root: Path | None, options: dict[str, Any], text: str | None, word: str | None, say: str | None
) -> dict[str, Any] | OpenGate:
    return in_one_look(root, options, lambda call: _answer_in_unit(call, text, word, say))


def _answer_in_unit(call: Call, text: str | None, word: str | None, say: str | None) -> dict[str, Any] | OpenGate:
    """What was answered or, if the current document was not shown to anybody, the open gate about it."""
    asked = asked_about(call, text)
    check_person(call, "decides", asked.run)
    answer = _word(asked, word)
    if asked.changed:
        return asked
    return gate_answers.answer(call.work, asked, answer, say, gate_answers.documents_of(call, asked.run))


def _word(asked: OpenGate, word: str | None) -> str:
    """The answer that is meant. Raises InvalidParams if `approve` is not an option or the document is gone."""
    gate = asked.gate
    answer = word or gate.options[0]
    if word is None and answer != "approve":
        raise InvalidParams(
            f"{gate.question} asks for one of {', '.join(gate.options)}", hint="say which with --with OPTION"
        )
    gate_answers.check_there(asked, answer)
    return answer


def _show_and_refuse(asked: OpenGate, word: str | None, *, as_json: bool) -> IllegalTransition:
    """The refusal of an answer about something outdated, printed below the current version."""
    if not as_json:
        _show(asked)
    command = "handrail reject" if word in (REJECT, ABANDON) else "handrail approve"
    return IllegalTransition(
        f"{asked.path or asked.gate.question} was changed since it was asked about; nothing is answered",
        hint=f"read it as it is now; `{command} {asked.gate.id}` answers that",
        gate_id=asked.gate.id,
        content_hash=asked.gate.content_hash,
    )


def _print_answer(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        echo_json(done)
        return
    about = f"{done['shows']}, " if done["shows"] else ""
    for text in (
        f"Answered {done['gate']} with {done['answer']}. {done['next']}",
        f'"{done["title"]}" in {done["workspace"]}: {about}content hash {done["content_hash"]}',
    ):
        echo_lines(wrapped(text, columns()))


def check_person(call: Call, does: str, run: PipelineRun | None = None) -> None:
    """Raises NotAllowed if only a person may do this, here or according to the run, and nobody is at a terminal."""
    if (call.humans_decide or (run is not None and run.for_people)) and not sits_at_terminal():
        raise NotAllowed(
            f"here only a person {does}, and this is not a terminal", hint="run it yourself in a terminal of your own"
        )
