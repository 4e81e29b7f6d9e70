"""The instructions of agents: Markdown files of the project, and ours if it has none.

Reread at each call: the next run sees an edit. A project's file that cannot be used is refused by name; ours never
silently takes its place.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from handrail.kernel.errors import InvalidFlow, PlaceUnusable
from handrail.kernel.wording import did_you_mean
from handrail.outside.user_files import bundled_folder
from handrail.regular_files import FileRefused, read_regular

FOLDERS = (Path(".handrail") / "agents", Path("agents"))
"""Where a project may keep its own, nearest first."""
BUNDLED = bundled_folder("roles")
ROLE_BYTES = 32 * 1024
"""The largest file. Longer instructions would fill the whole prompt; ours have two kilobytes."""
NAME_CHARACTERS = 100
_NAME = r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*"
_FRONT_MATTER = r"\A---[ \t]*\n.*?^(?:---|\.\.\.)[ \t]*(?:\n|\Z)"


class Role(NamedTuple):
    """An agent's instructions and where they come from."""

    name: str
    source: str
    """`project` or `bundled`."""
    file: str
    text: str


class RoleFiles:
    """A project's roles. `project` is the folder that holds `.handrail`."""

    def __init__(self, project: Path) -> None:
        self._project = project

    def role(self, name: str) -> Role:
        """The instructions of an agent. Raises InvalidFlow for one that nobody has described, PlaceUnusable for a file
        that cannot be used."""
        if len(name) > NAME_CHARACTERS or not re.fullmatch(_NAME, name):
            raise InvalidFlow(
                f"{name[:NAME_CHARACTERS]} is not an agent's name",
                hint="letters, digits, and single hyphens, dots or underscores between them",
            )
        for folder in FOLDERS:
            text = _own_text(self._project, folder / f"{name}.md")
            if text is not None:
                return Role(name, "project", str(self._project / folder / f"{name}.md"), text)
        file = BUNDLED / f"{name}.md"
        try:
            return Role(name, "bundled", str(file), file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidFlow(
                f"there is no agent {name}{did_you_mean(name, self.names())}",
                hint=f"describe it in {FOLDERS[0].as_posix()}/{name}.md, or name one of {', '.join(self.names())}",
                agent=name,
            ) from None

    def names(self) -> list[str]:
        """Every agent that is described, in alphabetical order."""
        found: set[str] = set()
        for folder in (*(self._project / folder for folder in FOLDERS), BUNDLED):
            try:
                with os.scandir(folder) as listing:
                    found |= {entry.name.removesuffix(".md") for entry in listing if entry.name.endswith(".md")}
            except OSError:
                continue
        return sorted(name for name in found if re.fullmatch(_NAME, name))


def _own_text(project: Path, place: Path) -> str | None:
    """The text of a project's file; None if it has none."""
    file = project / place
    try:
        raw = read_regular(file, ROLE_BYTES, within=project)
    except (FileNotFoundError, NotADirectoryError):
        if file.is_symlink():
            raise _unusable(place, "is a symbolic link to nothing", "put the file itself there") from None
        return None
    except FileRefused as problem:
        raise _unusable(place, problem.why.removeprefix("it "), problem.hint) from None
    except OSError as problem:
        raise _unusable(place, f"cannot be read: {problem.strerror}", "make it readable, or take it away") from None
    try:
        text = raw.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise _unusable(place, "is not UTF-8", "save it as UTF-8") from None
    text = re.sub(_FRONT_MATTER, "", text, count=1, flags=re.MULTILINE | re.DOTALL)
    if not text.strip():
        raise _unusable(place, "is empty", "write the agent's instructions, or take the file away")
    return text


def _unusable(place: Path, why: str, hint: str) -> PlaceUnusable:
    return PlaceUnusable(f"{place.as_posix()} {why}", hint=hint, file=place.as_posix())
