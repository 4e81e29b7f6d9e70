"""The documents taken apart: fenced blocks, commands in them, code in prose, headings, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.rglob("*.md"))]

SHELLS = ("sh", "bash", "shell")
PROGRAMS = ("handrail", "./run", "git", "claude", "codex", "pip", "uv", "python", "curl", "psql", "export", "cd", "npx")
"""What a line in a block without a language begins with where it is a command."""

_FENCE = re.compile(r"^ *```(?P<language>[\w-]*)[^`]*$")
_FILE = re.compile(r"(?:.* )?`(?P<file>[\w./-]+)`:")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")


class Block(NamedTuple):
    """A fenced block."""

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]
    file: str | None = None
    """The file it is the text of: the page names it in the line above, as `path`:."""


class Typed(NamedTuple):
    """One command of a block, and what the page shows below it; None where a page shows commands alone. Or a file that
    the reader is asked to write."""

    where: str
    command: str
    shown: tuple[str, ...] | None
    file: str | None = None


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks_and_prose(page: Path, text: str) -> tuple[list[Block], list[str]]:
    """A page's fenced blocks, and its lines with those left empty."""
    blocks: list[Block] = []
    prose: list[str] = []
    opened: tuple[int, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        prose.append("" if fence or opened else line)
        if fence and opened is None:
            opened, inside = (number, fence["language"]), []
        elif fence and opened is not None:
            blocks.append(Block(page, *opened, tuple(inside), _file_named(prose[: opened[0] - 1])))
            opened = None
        elif opened is not None:
            inside.append(line)
    assert opened is None, f"{page}: a block is not closed"
    return blocks, prose


def _file_named(above: list[str]) -> str | None:
    close = above[-2:] if above and not above[-1].strip() else above[-1:]  # at most one empty line between
    found = _FILE.fullmatch(close[0]) if close else None
    return found["file"] if found else None


def read(page: Path) -> tuple[list[Block], list[str]]:
    return blocks_and_prose(page, page.read_text(encoding="utf-8"))


def typed(block: Block) -> Iterator[Typed]:
    """The commands of a block: with what they print in a session, alone elsewhere."""
    where = f"{block.page.name}:{block.line}"
    if block.file is not None:
        yield Typed(where, "".join(f"{line}\n" for line in block.lines), None, block.file)
    elif block.language == "console":
        yield from _session(where, block.lines)
    elif block.language in SHELLS:
        yield from (Typed(where, command, None) for command in _script(block.lines))
    elif block.language == "":
        for line in block.lines:
            words = line.split()
            if words and (words[0] in PROGRAMS or words[0].startswith(".venv/bin/")):
                yield Typed(where, line, None)


def _session(where: str, lines: tuple[str, ...]) -> Iterator[Typed]:
    """`$ ` begins a command; `> ` right below it goes on with it, as a shell shows it."""
    commands: list[tuple[list[str], list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            commands.append(([line[2:]], []))
        elif line.startswith("> ") and not commands[-1][1]:
            commands[-1][0].append(line[2:])
        elif line == ">" and not commands[-1][1]:
            commands[-1][0].append("")
        else:
            commands[-1][1].append(line)
    for parts, shown in commands:
        yield Typed(where, "\n".join(parts), tuple(shown))


def _script(lines: tuple[str, ...]) -> Iterator[str]:
    if lines and lines[0].startswith("#!"):  # a file to be written, not something to type
        return
    held = ""
    for line in lines:
        held += line
        if held.endswith("\\"):
            held += "\n"
        elif held.strip() and not held.lstrip().startswith("#"):
            yield held
            held = ""
        else:
            held = ""


def without_comment(command: str) -> str:
    return re.sub(r"\s+#\s.*$", "", command)


def code_in_prose(prose: list[str]) -> Iterator[str]:
    """What stands between backticks, also across the end of a line."""
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose)):
        for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", paragraph):
            yield " ".join(code.split())


def links(prose: list[str]) -> Iterator[str]:
    """Where a page links to, pictures too."""
    text = re.sub(r"(?<!`)`[^`\n]*`(?!`)", "``", "\n".join(prose))
    yield from (found["target"] for found in _LINK.finditer(text))


def anchors(text: str) -> set[str]:
    """The anchors of a page: its headings, as GitHub names them, and those set by hand."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for line in blocks_and_prose(ROOT, text)[1]:
        heading = re.match(r"#{1,6} +(.*?) *$", line)
        if heading:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            found.add(next(one for one in _numbered(name) if one not in found))
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 0
    while True:
        number += 1
        yield f"{name}-{number}"
