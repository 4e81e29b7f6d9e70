"""`handrail diff`: exactly what one task changed, as a patch, a list of files or JSON.

The patch is made from snapshots of the working copy at the task's start and end; for an open task, the end is now. On a
terminal it is coloured, and nothing in it can control the terminal; anywhere else it is byte for byte what `git apply`
takes. Nothing in the repository is touched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.journal.entry import LETTERS, lines_in_words, totals, totals_in_words
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, thing_meant
from handrail.surfaces.cli.columns import columns, dim, one_line, pad, widest, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.terminal import styled
from handrail.surfaces.task_changes import (
    Difference,
    Journalled,
    difference,
    given_up,
    journalled,
    never_kept,
    patch_of,
)

_IN_PATCH = (b"\ndiff --git ", b"\nrename from ")
"""Lines that stand for one file each; a renamed file has two."""
_NAMED = b"\n# "
_LONGEST = max(map(len, (*_IN_PATCH, _NAMED)))
_COLOURS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("diff --git ", "index ", "--- ", "+++ ", "new file ", "deleted file ", "old mode ", "new mode "), {"bold": True}),
    (("similarity index ", "rename from ", "rename to ", "GIT binary patch"), {"bold": True}),
    (("@@",), {"fg": "cyan"}),
    (("+",), {"fg": "green"}),
    (("-",), {"fg": "red"}),
)


@click.command()
@click.argument("task", metavar="TASK", shell_complete=completions.tasks)
@click.option("--stat", "form", flag_value="stat", help="List the changed files with line counts, without the patch.")
@click.option("--name-only", "form", flag_value="names", help="List the names of the changed files, one per line.")
@common_options
def diff(task: str, form: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show exactly what TASK changed, committed or not, and nothing else.

    TASK is an id, the beginning of one, or a name; open ones are preferred. For an open task, shows its changes so far.
    When the output is not a terminal, the patch is exactly what `git apply` takes.
    """
    meant = in_one_look(root, options, lambda call: read_diff(call, task))
    found = difference(meant)
    try:
        if as_json:
            echo_json(_document(meant, found))
        elif form == "names":
            for change in found.report["files"]:
                click.echo(_shown_name(change["path"]))
        elif form == "stat":
            echo_lines(stat_lines(found, columns()))
        else:
            _print_patch(meant, found)
    finally:
        if found.is_open:
            meant.tracker.forget(found.after)


def read_diff(call: Call, text: str) -> Journalled:
    """The task that is meant, with its entry."""
    meant = thing_meant(call, text)
    if isinstance(meant, Workflow):
        raise InvalidParams(
            f"{meant.id} is a workflow; a patch is of one task", hint=f"`handrail journal {meant.id}` shows its tasks"
        )
    return journalled(call, meant)


def _document(meant: Journalled, found: Difference) -> dict[str, Any]:
    counted = totals(found.report["files"])
    return {
        "task_id": meant.task.id,
        "task_name": meant.task.name,
        "status": meant.task.shown_status,
        "open": found.is_open,
        "directory": meant.entry.directory,
        "before": found.before.shown_id,
        "after": found.after.shown_id,
        "snapshot_type": found.before.kind,
        "totals": counted._asdict(),
        **found.report,
    }


def stat_lines(found: Difference, room: int) -> Iterator[str]:
    """The changed files in columns, their totals, and what a reader should know."""
    files = found.report["files"]
    names = widest((_shown_name(change["path"]) for change in files), room - 24)
    for change in files:
        yield f"{LETTERS[change['change']]} {pad(_shown_name(change['path']), names)}  {lines_in_words(change)}"
    yield dim(totals_in_words(totals(files))) if files else found.nothing
    for warning in found.warnings:
        yield from wrapped(warning, room)


def _shown_name(path: str) -> str:
    """A name on a line of its own: as it is, or quoted if it contains unprintable characters."""
    if path.isprintable():
        return path
    return '"' + "".join(letter if letter.isprintable() else _escaped(letter) for letter in path) + '"'


def _escaped(letter: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter.encode("utf-8", "surrogateescape"))


# -- the patch --------------------------------------------------------------------------------------------------------


def _print_patch(meant: Journalled, found: Difference) -> None:
    """Prints the patch on standard output, and on standard error anything that makes it incomplete."""
    paths = [change["path"] for change in found.report["files"]]
    for warning in found.warnings if found.is_open or found.report.get("partial") else ():
        click.echo(one_line(warning), err=True)
    if not paths:
        click.echo(found.nothing, err=True)
        return
    counted = Counted(patch_of(meant.tracker, found, paths))
    if sys.stdout.isatty():
        echo_lines(terminal_lines(counted))
    else:
        for chunk in counted:
            click.echo(chunk, nl=False)
    missing = len(paths) - counted.files
    if missing > 0 and not counted.files:
        raise never_kept(len(paths)) if counted.named else given_up(len(paths))
    if missing > 0:
        named = f", {counted.named} of them are only named" if counted.named else ""
        told_of = f"{missing} of {len(paths)} changed files are not in this patch{named}"
        click.echo(f"{told_of}: --stat has all of them", err=True)


class Counted:
    """A patch passed on in pieces as it comes, with counts of its files."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.files = 0
        """Files whose changes it contains."""
        self.named = 0
        """Files it only names, because their contents are not kept."""

    def __iter__(self) -> Iterator[bytes]:
        tail = b"\n"
        for chunk in self._chunks:
            seen = tail + chunk
            self.files += sum(seen.count(sign) - tail.count(sign) for sign in _IN_PATCH)
            self.named += seen.count(_NAMED) - tail.count(_NAMED)
            tail = seen[1 - _LONGEST :]
            yield chunk


def terminal_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """A patch for a terminal: coloured, and with printable characters only."""
    for line in _lines(chunks):
        text = line.decode("utf-8", "replace").expandtabs(8).removesuffix("\r")
        plain = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
        style = next((style for beginnings, style in _COLOURS if plain.startswith(beginnings)), None)
        yield plain if style is None else styled(plain, **style)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest
