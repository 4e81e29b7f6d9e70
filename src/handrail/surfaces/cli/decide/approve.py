"""`handrail approve` and `handrail reject`: a person's answer to a gate. Work waits for it; nothing else opens it.

At a terminal the document is shown first, and the answer is asked for. With `approvals = "human"`, the answer must come
from a terminal: a program started by an agent is not a person.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from handrail.domain.pipeline.answers import ABANDON, REJECT
from handrail.domain.pipeline.run import PipelineRun
from handrail.kernel.errors import IllegalTransition, InvalidParams, NotAllowed
from handrail.operation import Call
from handrail.surfaces import gate_answers
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.decide.gate_view import OpenGate, answer_lines, asked_about, asked_lines, document_of
from handrail.surfaces.cli.options import common_options, sits_at_terminal
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.refusals import EXIT_REFUSED

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
