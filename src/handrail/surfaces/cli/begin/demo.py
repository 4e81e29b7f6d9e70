"""`handrail demo`: three agents at work on a temporary repository, for anyone who wants to see it before setting it up.

It prints what the real tools answered, and asks you at the gate. Nothing outside a folder of its own is written.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

import click
import msgspec

from handrail.domain.pipeline.answers import REJECT
from handrail.domain.pipeline.turns import answer_gate
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, columns, fit, pad, wrapped
from handrail.surfaces.cli.decide.approve import OpenGate, asked_about, asked_lines
from handrail.surfaces.cli.terminal import styled
from handrail.surfaces.refusals import EXIT_REFUSED

if TYPE_CHECKING:
    from handrail.demo.stage import Ground

BEAT_S = 0.9
"""The pause after each line at speed 1."""
NAME_ROOM = 8
YOU = Actor("you", "cli")
COLOURS = {"Ada": "magenta", "Ben": "cyan", "Cleo": "yellow", "You": "green"}
PATCH_COLOURS = {"+": "green", "-": "red"}
APPROVE = "approve"


class Terminal:
    """The stage on a terminal. Implements `handrail.demo.stage.Stage`."""

    def __init__(self, *, speed: float, headless: bool) -> None:
        self._pause_s = 0.0 if headless or not speed else BEAT_S / speed
        self._headless = headless

    def title(self, text: str) -> None:
        click.echo(f"\n{bold(text)}")

    def line(self, who: str, what: str) -> None:
        room = columns()
        for number, text in enumerate(wrapped(what, room, " " * NAME_ROOM)):
            name = _coloured(pad(who, NAME_ROOM), COLOURS.get(who))
            click.echo(name + text[NAME_ROOM:] if number == 0 else text)

    def patch(self, text: str) -> None:
        click.echo(" " * NAME_ROOM + _coloured(fit(text, columns() - NAME_ROOM), PATCH_COLOURS.get(text[:1])))

    def beat(self) -> None:
        if self._pause_s:
            threading.Event().wait(self._pause_s)

    def decide(self, call: Call) -> tuple[str, str]:
        """Shows the document, asks, and answers the gate as `handrail approve` and `handrail reject` do."""
        asked: OpenGate = call.ledger.run(YOU, lambda unit: asked_about(_with_unit(call, unit), None))
        for text in asked_lines(asked, columns()):
            click.echo(text)
        click.echo()
        word = self._ask_for_answer(asked)
        say = self._ask("What is to change?", "") if word == REJECT else ""
        files = call.world.specs(call.here.repository).texts(asked.run.workspace)
        call.ledger.run(YOU, lambda unit: answer_gate(unit, asked.gate, word, say or None, files), writing=True)
        return word, say

    def _ask_for_answer(self, asked: OpenGate) -> str:
        options = click.Choice(list(asked.gate.options))
        if self._headless:
            click.echo(f"Your answer ({', '.join(options.choices)}): {APPROVE}")
            return APPROVE
        word: str = click.prompt("Your answer", type=options)
        return word

    def _ask(self, question: str, default: str) -> str:
        said: str = click.prompt(question, default=default, show_default=False)
        return said


def _coloured(text: str, colour: str | None) -> str:
    return text if colour is None else styled(text, fg=colour)


def _with_unit(call: Call, unit: object) -> Call:
    return msgspec.structs.replace(call, unit=unit)


@click.command()
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    metavar="N",
    default=1.0,
    show_default=True,
    help="2 is twice as fast; 0 does not pause.",
)
@click.option("--headless", is_flag=True, help="Do not pause; the gate is answered for you.")
@click.option("--keep", is_flag=True, help="Keep the folder so that you can look at it.")
def demo(speed: float, headless: bool, keep: bool) -> None:
    """Watch three agents plan, claim tasks, foresee a conflict, merge, and wait for your decision.

    It runs in a temporary repository. Every line is what a real tool answered. Your home folder, your git settings and
    this folder are not touched; --keep makes ~/.handrail/machine-key if there is none, so that you can open the store.
    """
    from handrail.demo.acts import perform  # noqa: PLC0415 - not to show help
    from handrail.demo.stage import has_git, prepared  # noqa: PLC0415 - as above

    if not has_git():
        click.echo("The demo needs git, and there is none on the PATH.", err=True)
        sys.exit(EXIT_REFUSED)
    with prepared() as ground:
        finished = False
        try:
            click.echo(f"Three agents, a repository of their own: {ground.project}")
            perform(ground, Terminal(speed=speed, headless=headless))
            finished = True
        except (KeyboardInterrupt, click.Abort):
            click.echo("\nStopped.")
        finally:
            _leave(ground, keep=keep)
    if keep:
        _hand_over(ground)
    if not finished:
        sys.exit(EXIT_REFUSED)
    click.echo("Next: `handrail init` sets up the clients of your own repository.")


def _hand_over(ground: Ground) -> None:
    """Makes the store of the demo, which has a home of its own, one that this user's commands recognise."""
    from pathlib import Path  # noqa: PLC0415 - only for a folder that is kept

    from handrail.outside.machine_key import machine_key  # noqa: PLC0415 - as above
    from handrail.outside.snapshot_origin import mark_snapshots, snapshot_folder  # noqa: PLC0415 - as above
    from handrail.surfaces.cli.keep.db_trust import own_file  # noqa: PLC0415 - as above
    from handrail.wiring import WorkPlace, has_store, settings_at  # noqa: PLC0415 - as above

    place = WorkPlace(project=ground.project, home=Path.home(), environ={})
    if has_store(place, settings_at(place, {})):
        own_file(place, "")
        mark_snapshots(snapshot_folder(ground.project), machine_key(place.home))


def _leave(ground: Ground, *, keep: bool) -> None:
    """Cleans up, whatever keys are pressed meanwhile, and says where the folder is or was."""
    from handrail.demo.stage import clear  # noqa: PLC0415 - as above

    if keep:
        click.echo(f"The folder is kept: {ground.folder}")
        root = f"--root {ground.project}"
        click.echo(f"See it on the page with `handrail up {root}`, or here with `handrail watch {root}`.")
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gone = clear(ground)
    finally:
        signal.signal(signal.SIGINT, before)
    click.echo(
        f"The folder is removed: {ground.folder}" if gone else f"Not all of it could be removed: {ground.folder}"
    )
