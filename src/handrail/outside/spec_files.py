"""The documents of runs on disk: Markdown files in a folder below `.specs/` of one repository. Nothing else is read, no
link is followed out of it, and files are written whole."""

from __future__ import annotations

from pathlib import Path

from handrail.domain.pipeline.workspace_texts import WorkspaceTexts
from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.outside.atomic_files import write_whole
from handrail.regular_files import read_regular

SPECS = ".specs"
FILE_BYTES = 2 * 1024 * 1024
"""The largest document. Nothing longer is a text that an agent reads."""
FILES = 2000
NAME_BYTES = 255
"""The longest file name that common file systems accept."""
STATE_FILE = "state.json"
INDEX_FILE = "index.json"
MIRROR_BYTES = 8 * 1024 * 1024


class SpecFiles:
    """Implements the `Specs` port."""

    def __init__(self, repository: Path) -> None:
        self._root = repository

    def texts(self, workspace: str) -> WorkspaceTexts:
        folder = self._folder(workspace)
        if not folder.is_dir():
            return WorkspaceTexts({})
        try:
            listed = sorted(folder.iterdir())[:FILES]
        except OSError as problem:
            raise PlaceUnusable(
                f"{workspace} cannot be read: {problem.strerror}", hint="make the folder readable, then call again"
            ) from None
        # A document that cannot be read whole counts as unread: the missing rest might say the opposite of the part
        # read.
        return WorkspaceTexts(
            {
                path.name: self._content(path, FILE_BYTES)
                for path in listed
                if path.suffix == ".md" and path.is_file() and not path.is_symlink()
            }
        )

    def state(self, workspace: str) -> str | None:
        return self._read(self._folder(workspace) / STATE_FILE, MIRROR_BYTES)

    def index(self) -> str | None:
        return self._read(self._specs() / INDEX_FILE, MIRROR_BYTES)

    def write(self, workspace: str, name: str, text: str | bytes) -> None:
        if "/" in name or name.startswith("."):
            raise InvalidParams(f"{name} is no plain name of a file", hint="documents lie directly in the workspace")
        self._write(self._folder(workspace), name, text)

    def write_index(self, text: str) -> None:
        self._write(self._specs(), INDEX_FILE, text)

    def _write(self, folder: Path, name: str, text: str | bytes) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, text.encode() if isinstance(text, str) else text)
        except OSError as problem:
            raise PlaceUnusable(
                f"{name} cannot be written to {SPECS}: {problem.strerror}", hint="fix the folder, then call again"
            ) from None

    def exists(self, workspace: str) -> bool:
        return self._folder(workspace).is_dir()

    def _folder(self, workspace: str) -> Path:
        """The folder a workspace means; refused if it leads out of `.specs/`."""
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

    def _read(self, path: Path, most_bytes: int) -> str | None:
        """A file's text; None if there is none that can be read whole, or it is not UTF-8."""
        data = self._content(path, most_bytes)
        try:
            return data.decode() if data is not None else None
        except UnicodeDecodeError:
            return None

    def _content(self, path: Path, most_bytes: int) -> bytes | None:
        """A file's bytes; None if they cannot be read whole."""
        try:
            return read_regular(path, most_bytes, within=self._root, links=False)
        except OSError:
            return None
