"""Who may answer gates: asked once, by `init` or by `up`, and written to the project's own file.

A project that has decided is not asked again, and never made less strict. It asks only at a terminal.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from handrail.domain.setup import file_entries, toml_edit
from handrail.domain.setup.edits import NotUnderstood
from handrail.domain.setup.file_entries import WriteStep
from handrail.domain.setup.file_plan import SetupManifest, SetupPlan, plan, recorded
from handrail.domain.setup.steps import CONFIG, ignoring_step
from handrail.kernel.errors import InvalidParams
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.outside.trusted_settings import agree, agreed_for
from handrail.outside.world import SystemClock
from handrail.strictness import Agreed
from handrail.surfaces.cli.options import sits_at_terminal
from handrail.wiring import WorkPlace

INTRODUCTION = "Handrail starts here for the first time. One question, and it is kept in .handrail/config.toml."
QUESTION = "Gates in pipelines: may only a person answer them, at a terminal or the page?"


def said_approvals(files: ClientFiles, agreed: Agreed) -> object:
    """What the project's own file says about gates; None if it cannot be read, which the plan will report. That agents
    may answer counts only if this person has agreed to it: the file may have come with the repository."""
    try:
        said = toml_edit.plain(files.read(f"{files.project}/{CONFIG}") or "").get("approvals")
    except NotUnderstood:
        return None
    return None if said == "agent" and agreed.limits.get("approvals") != said else said


def keep_word(place: WorkPlace, word: str, todo: SetupPlan) -> None:
    """Records that the answer in the file is this person's own, unless it could not be written there."""
    if not any(left.file == f"{place.project}/{CONFIG}" for left in todo.left):
        agree(place.project, place.home, {"approvals": word}, now_ms=SystemClock().now_ms())


def approvals_wanted(there: object, told: str | None, *, asks: bool) -> str | None:
    """What to write about gates; None if nothing."""
    if there == "human" and told == "agent":
        raise InvalidParams(f"{CONFIG} says approvals = human", hint="only a person changes that, in the file")
    if told is not None or there is not None:
        return told
    if not asks:
        return "human"
    return "human" if click.confirm(QUESTION, True) else "agent"


def approvals_step(project: str, word: str) -> WriteStep:
    return WriteStep(f"{project}/{CONFIG}", "who may answer a gate", file_entries.key("approvals", word))


def settle_approvals(place: WorkPlace, options: dict[str, Any]) -> None:
    """If nothing says yet who may answer gates, asks the person who starts a server and writes the answer down. `init
    --remove` takes it back."""
    pairs = [pair.partition("=")[0].strip() for pair in options.get("settings", ())]
    if (
        "approvals" in pairs
        or "HANDRAIL_APPROVALS" in place.environ
        or not (sits_at_terminal() and sys.stdout.isatty())
    ):
        return
    files = ClientFiles(place.project, this_machine(place.home, place.environ))
    if (
        place.project == place.home.resolve()
        or said_approvals(files, agreed_for(place.project, place.home)) is not None
    ):
        return
    click.echo(INTRODUCTION)
    word = approvals_wanted(None, None, asks=True)
    assert word is not None, "who asks gets an answer"
    project = str(place.project)
    todo = plan([approvals_step(project, word), ignoring_step(project)], files.read)
    write_changes(files, files.manifest(), todo)
    keep_word(place, word, todo)
    for left in todo.left:
        click.echo(f"{left.file} is left alone: {left.why}", err=True)


def write_changes(files: ClientFiles, known: SetupManifest, todo: SetupPlan) -> None:
    """Writes the manifest first, so that whatever happens next can be taken back. What a repository's own says is not
    sealed along with it."""
    known = files.own_part(known)
    for change in todo.changes:
        known = recorded(known, change, files.missing_folders(change.file))
    files.keep(known)
    for change in todo.changes:
        files.apply(change)
