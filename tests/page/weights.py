"""Which scripts of the page a browser needs before it shows a screen, and their weight. Read from the files alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from handrail.surfaces.web.static_files import FOLDER

FIRST_SCREENS = ("home.js", "graph.js")
IMPORTED = re.compile(r'^(?:import|export) [^;"]*"\./(\w+\.js)";', re.MULTILINE)
IMPORTED_LATER = re.compile(r'import\("\./(\w+\.js)"\)')
MARKUP = (FOLDER / "index.html").read_text(encoding="utf-8")
SCRIPTS = {file.name: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.js"))}


def needed_by(names: Iterable[str]) -> set[str]:
    """These scripts and all that they import at once."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += IMPORTED.findall(SCRIPTS[name])
    return found


def begun() -> set[str]:
    """What the markup begins with."""
    return set(re.findall(r'<script[^>]* src="(\w+\.js)"', MARKUP))


def shell() -> set[str]:
    """What every screen needs."""
    return needed_by(begun())


def weight(names: Iterable[str]) -> int:
    return sum(len(SCRIPTS[name].encode()) for name in names)


def first_paint(screen: str) -> int:
    """Bytes of script before this screen is shown for the first time."""
    return weight(shell() | needed_by([screen]))
