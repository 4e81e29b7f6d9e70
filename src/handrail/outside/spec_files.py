"""The documents of runs on disk: Markdown files in a folder below `.specs/` of one repository. Nothing else is read, no
link is followed out of it, and what is written is written whole."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from handrail.kernel.errors import InvalidParams, PlaceUnusable

SPECS = ".specs"
FILE_BYTES = 2 * 1024 * 1024
"""One document. What is longer is no text an agent reads."""
FILES = 2000
NAME_BYTES = 255
"""What common file systems take as one name."""
STATE_FILE = "state.json"
INDEX_FILE = "index.json"
MIRROR_BYTES = 8 * 1024 * 1024


class SpecFiles:
    """Implements the `Specs` port."""

    def __init__(self, repository: Path) -> None:
        self._root = repository

    def texts(self, workspace: str) -> dict[str, str]:
        folder = self._folder(workspace)
        if not folder.is_dir():
            return {}
        found: dict[str, str] = {}
        for path in sorted(folder.iterdir())[:FILES]:
            if path.suffix == ".md" and path.is_file() and not path.is_symlink():
                with path.open("rb") as opened:
                    data = opened.read(FILE_BYTES + 1)
                # Of a longer one only a part would be read, and the rest may say the opposite: it counts as empty.
                found[path.name] = data.decode("utf-8", "replace") if len(data) <= FILE_BYTES else ""
        return found

    def state(self, workspace: str) -> str | None:
        return _read(self._folder(workspace) / STATE_FILE)

    def index(self) -> str | None:
        return _read(self._specs() / INDEX_FILE)

    def write(self, workspace: str, name: str, text: str) -> None:
        if "/" in name or name.startswith("."):
            raise InvalidParams(f"{name} is no plain name of a file", hint="documents lie directly in the workspace")
        self._put(self._folder(workspace), name, text)

    def write_index(self, text: str) -> None:
        self._put(self._specs(), INDEX_FILE, text)

    def _put(self, folder: Path, name: str, text: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            draft = folder / f".{name}.{secrets.token_hex(4)}"
            draft.write_text(text, encoding="utf-8")
            os.replace(draft, folder / name)  # noqa: PTH105 - the same, and as atomic
        except OSError as problem:
            raise PlaceUnusable(
                f"{name} cannot be written to {SPECS}: {problem.strerror}", hint="mend the folder, then call again"
            ) from None

    def exists(self, workspace: str) -> bool:
        return self._folder(workspace).is_dir()

    def _folder(self, workspace: str) -> Path:
        """The folder a workspace means; refused where it leads out of `.specs/`."""
        parts = workspace.strip("/").split("/")
        plain = len(parts) == 2 and parts[0] == SPECS and parts[1] not in ("", ".", "..") and "\0" not in workspace
        plain = plain and len(parts[1].encode("utf-8", "replace")) <= NAME_BYTES
        folder = self._specs() / parts[-1]
        if not plain or folder.is_symlink():
            raise InvalidParams(
                f"{workspace} is no workspace", hint=f"a workspace is a folder directly below {SPECS}/, not a link"
            )
        return folder

    def _specs(self) -> Path:
        folder = self._root / SPECS
        if folder.is_symlink():
            raise InvalidParams(f"{SPECS} is a link, which is not followed", hint=f"make {SPECS} a folder")
        return folder


def _read(path: Path) -> str | None:
    """A mirror as it lies there; None where there is none that can be read whole."""
    try:
        if not path.is_file() or path.is_symlink():
            return None
        with path.open("rb") as opened:
            data = opened.read(MIRROR_BYTES + 1)
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= MIRROR_BYTES else None
