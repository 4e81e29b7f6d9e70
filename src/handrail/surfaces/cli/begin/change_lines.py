"""Changes of files as a person sees them before anything is written: each file with what is added and removed. Nothing
is read or printed here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from handrail.domain.setup.file_plan import FileEdit
from handrail.surfaces.cli.columns import bold
from handrail.surfaces.cli.terminal import styled

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def change_lines(change: FileEdit, project: Path) -> Iterator[str]:
    """One file: its name, its purpose, and the difference line by line."""
    yield bold(short(change.file, project)) + _purpose(change)
    for line in _diff(change, project):
        colour = _COLOURS.get(line[:1])
        yield styled(line, fg=colour) if colour else line
    yield ""


def short(file: str, project: Path) -> str:
    return file.removeprefix(f"{project}/")


def action(change: FileEdit) -> str:
    """What happens to a file, in a word."""
    return "delete" if change.after is None else "make" if change.before is None else "change"


def _purpose(change: FileEdit) -> str:
    if change.purposes:
        return f"  {'; '.join(change.purposes)}"
    return "  deleted" if change.after is None else ""


def _diff(change: FileEdit, project: Path) -> list[str]:
    import difflib  # noqa: PLC0415 - only here

    name = short(change.file, project)
    old = (change.before or "").splitlines(keepends=True)
    new = (change.after or "").splitlines(keepends=True)
    before = "/dev/null" if change.before is None else name
    after = "/dev/null" if change.after is None else name
    lines: list[str] = []
    for line in difflib.unified_diff(old, new, before, after):
        lines.append(line.rstrip("\r\n"))
        if line[:1] in "+- " and not line.endswith(("\n", "\r")):
            lines.append("\\ no newline at the end")
    return lines
