"""Files that people write in their own folders (guides, flows, templates): which folders, which names, and what a file
says, or why it cannot be used and where the problem is. What a document means is up to each shelf."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import handrail
from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.late import late_module
from handrail.regular_files import list_folder, read_with_facts, reason_of
from handrail.validator_words import explained, path_of

if TYPE_CHECKING:
    from handrail.outside import documents
    from handrail.outside.documents import Document
else:
    documents = late_module("handrail.outside.documents")

SUFFIXES = (".json", ".yaml", ".yml")
BUNDLED = "bundled"
"""The label of the folder that comes with Handrail."""

# Plain text, not compiled here: only a broken file needs it.
_STEP = r"(\w+)|\[(\d+)\]"

WrittenPath = tuple[str | int, ...]
"""Where something is in a document: keys and places in lists, outermost first."""


class UserFolder(msgspec.Struct, frozen=True):
    """A folder of files and the name people know it by."""

    label: str
    folder: Path
    tree: Path | None = None
    """The project that the folder came with: no link there may lead out of it. None for a folder of the user or of
    Handrail, where links are followed wherever they lead."""


class Flaw(Exception):  # noqa: N818 - it describes the file, it is not a failure of the program
    """Why a file cannot be used, and where: `:line:column`, or nothing."""

    def __init__(self, reason: str, place: str = "", phase: str | None = None) -> None:
        self.reason = reason
        self.place = place
        self.phase = phase
        super().__init__(reason)


def standard_folders(kind: str, *, home: Path, project: Path) -> tuple[UserFolder, ...]:
    """Where files of this kind come from, nearest first."""
    return (
        UserFolder("project", project / ".handrail" / kind, foreign_tree(project, home)),
        UserFolder("user", home / ".handrail" / kind),
        UserFolder(BUNDLED, bundled_folder(kind)),
    )


def foreign_tree(project: Path, home: Path) -> Path | None:
    """The tree that links of a project's files may not lead out of. In a user's home the files are the user's own."""
    return None if os.path.realpath(project) == os.path.realpath(home) else project


def bundled_folder(kind: str) -> Path:
    """The folder of the files of this kind that come with Handrail."""
    return Path(handrail.__file__).parent / kind


def tree_around(file: Path, trees: Iterable[Path | None]) -> Path | None:
    """The tree that contains a file, by its name: a person may have named it without knowing that it is a link."""
    whole = os.path.abspath(file)  # noqa: PTH100 - without `..`, and without following links
    return next((tree for tree in trees if tree is not None and Path(whole).is_relative_to(tree)), None)


def nearest_first(sources: Sequence[UserFolder]) -> tuple[UserFolder, ...]:
    """The same without folders that are given twice: the first place counts."""
    unique: dict[str, UserFolder] = {}
    for source in sources:
        unique.setdefault(os.path.realpath(source.folder), source)
    return tuple(unique.values())


def make_folder(folder: Path, tree: Path | None) -> None:
    """Makes a folder that is about to be written to, unless a link on the way to it leads out of the tree. Raises
    PlaceUnusable."""
    try:
        there = folder
        while not os.path.lexists(there):
            there = there.parent
        if tree is not None and there != tree:
            list_folder(there, within=tree)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise PlaceUnusable(
            f"{folder} cannot be written to: {reason_of(problem)}",
            hint="make it a folder that can be written to, or choose another --root",
        ) from None


def is_written_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def listed_in(source: UserFolder) -> list[str]:
    """The names in a folder that such files may have, in alphabetical order, including folders. Raises Flaw for a
    folder that cannot be read."""
    try:
        return sorted(filter(is_written_name, list_folder(source.folder, within=source.tree)))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Flaw(f"the folder cannot be read: {reason_of(error)}") from None


def names_in(source: UserFolder) -> list[str]:
    """The files of a folder that may be meant, by name, including unreadable ones. Raises Flaw for a folder that cannot
    be read."""
    return [name for name in listed_in(source) if _is_there(source.folder / name)]


def _is_there(file: Path) -> bool:
    """Whether this is a file, readable or not. False for a folder, and for a file that is gone since it was listed."""
    try:
        return not stat.S_ISDIR(file.stat().st_mode)
    except FileNotFoundError:
        return file.is_symlink()
    except OSError:
        return True


def shown(path: Path | str) -> str:
    """A path as text, even if it contains bytes that are not text."""
    return str(path).encode("utf-8", "backslashreplace").decode()


class UserFile:
    """One file: its text, the document in it, and when it was last changed."""

    def __init__(self, file: Path, most_bytes: int, tree: Path | None = None) -> None:
        """Raises Flaw for a file that cannot be read, or holds no document. `tree` is its source's."""
        if shown(file) != str(file):
            raise Flaw("the file's name is not UTF-8; rename it")
        self.text, self.changed_ms = _text(file, most_bytes, tree)
        self._document = _document(file, self.text)

    @property
    def data(self) -> Any:
        return self._document.data

    def at(self, path: WrittenPath) -> str:
        """Where this is in the file: `:line:column`."""
        position = documents.locate(self.text, self._document.spots, path)
        return f":{position.line}:{position.column}"


def _text(file: Path, most_bytes: int, tree: Path | None) -> tuple[str, int]:
    try:
        raw, info = read_with_facts(file, most_bytes + 1, within=tree)
    except FileNotFoundError:
        raise Flaw("the file is a symbolic link to nothing" if file.is_symlink() else "it is not there") from None
    except OSError as error:
        raise Flaw(f"the file cannot be read: {reason_of(error)}") from None
    if len(raw) > most_bytes:
        raise Flaw(f"the file is larger than {most_bytes} bytes")
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode(), info.st_mtime_ns // 1_000_000
    except UnicodeDecodeError:
        raise Flaw("the file is not UTF-8; save it as UTF-8") from None


def _document(file: Path, text: str) -> Document:
    try:
        return documents.read_document(text, file.suffix)
    except documents.Unreadable as problem:
        if problem.offset is None:
            raise Flaw(problem.reason) from None
        position = documents.position_at(text, problem.offset)
        braces = "{{" in text[max(0, problem.offset - 1) : problem.offset + 2]
        quotes = "; a text that begins with {{ needs quotes around it" if braces else ""
        raise Flaw(problem.reason + quotes, f":{position.line}:{position.column}") from None


def path_in(problem: str) -> WrittenPath:
    """The path that a validator's message is about."""
    steps = re.findall(_STEP, path_of(problem))
    return tuple(int(number) if number else key for key, number in steps)


def in_words(problem: str, known: type[Any], whole: str) -> str:
    """A validator's message in plain words; `known` is the type whose keys are allowed."""
    return explained(problem, kind="key", names=known.__struct_fields__, whole=whole)
