"""The one way to open a file that somebody else may have put there: it does not wait, takes only a regular file, does
not leave the tree the file belongs to, and never reads more than a bound.

A repository's file may be a link to a device, a pipe that nobody writes to, or larger than memory. So nothing is
believed about a path: from the tree's root down, each part is opened in the folder that was opened before it, links are
resolved here instead of by the system, and what was opened is examined once more before it is read. A size is never
believed either: files of the kernel say 0.

What a file means, and how a refusal is told, is up to the caller. Hooks load this, so it has `os` alone.
"""

from __future__ import annotations

import errno
import os
import stat

LINKS = 40
"""The most links on the way to one file, as in Linux."""
CHUNK = 256 * 1024

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _COMMON
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _COMMON
"""For a folder on the way: it need not be readable."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_CAN_WALK = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and os.readlink in os.supports_dir_fd
"""Whether a file can be opened in an open folder, as everywhere but on Windows."""

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFLNK: "a link", stat.S_IFSOCK: "a socket"}
_ITSELF = "put the file itself there"

PathLike = str | os.PathLike[str]


class FileRefused(OSError):  # noqa: N818 - it describes the file, it is not a failure of the program
    """Why a file is not read, in words (as `strerror` too), and what to do."""

    def __init__(self, path: str, why: str, hint: str) -> None:
        super().__init__(errno.EINVAL, why, path)
        self.why = why
        self.hint = hint


def reason_of(problem: OSError) -> str:
    """Why a file could not be read, and what to do if that is known."""
    return f"{problem.why}; {problem.hint}" if isinstance(problem, FileRefused) else str(problem.strerror)


def read_regular(path: PathLike, most_bytes: int, *, within: PathLike | None = None, links: bool = True) -> bytes:
    """A file's content. Raises FileRefused, or another OSError.

    `within` is the tree that a file came with: no link may lead out of it. None is for files of the user and of
    Handrail, whose links are followed wherever they lead. `links=False` follows none."""
    content = read_beginning(path, most_bytes + 1, within=within, links=links)
    if len(content) > most_bytes:
        raise FileRefused(os.fspath(path), f"it is larger than {most_bytes} bytes", "make it smaller")
    return content


def read_beginning(path: PathLike, most_bytes: int, *, within: PathLike | None = None, links: bool = True) -> bytes:
    """The same for the first bytes of a file that may be longer."""
    return read_with_facts(path, most_bytes, within=within, links=links)[0]


def read_with_facts(
    path: PathLike, most_bytes: int, *, within: PathLike | None = None, links: bool = True
) -> tuple[bytes, os.stat_result]:
    """The first bytes, and what the system knew of that very file before they were read."""
    descriptor = open_regular(path, within=within, links=links)
    try:
        facts = os.fstat(descriptor)
        return take(descriptor, most_bytes), facts
    finally:
        os.close(descriptor)


def copy_regular(path: PathLike, copied: PathLike, most_bytes: int) -> None:
    """Copies a file, however long, to a name of our own. Raises FileRefused if it is longer than the bound."""
    descriptor = open_regular(path)
    try:
        with open(copied, "wb") as target:  # noqa: PTH123 - pathlib is heavy
            while part := os.read(descriptor, CHUNK):
                most_bytes -= target.write(part)
                if most_bytes < 0:
                    raise FileRefused(os.fspath(path), "it is too large to copy", "make it smaller")
    finally:
        os.close(descriptor)


def take(descriptor: int, most_bytes: int) -> bytes:
    """What an open file has from where it stands, up to a bound."""
    parts: list[bytes] = []
    while most_bytes > 0 and (part := os.read(descriptor, min(most_bytes, CHUNK))):
        parts.append(part)
        most_bytes -= len(part)
    return b"".join(parts)


def open_regular(path: PathLike, *, within: PathLike | None = None, links: bool = True) -> int:
    """A descriptor of a file, for reading."""
    path = os.fspath(path)
    if within is not None:
        descriptor = _open_within(path, os.fspath(within), links=links, folder=False)
    else:
        # Examined before and after: opening a device may already do something, and names can change hands.
        _check(os.stat(path) if links else os.lstat(path), path)  # noqa: PTH116 - pathlib is heavy
        descriptor = os.open(path, _FILE | (0 if links else _NO_LINK))
    try:
        _check(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def list_folder(path: PathLike, *, within: PathLike | None = None, links: bool = True) -> list[str]:
    """The names in a folder, in no order. Raises FileRefused, or another OSError."""
    path = os.fspath(path)
    if within is None:
        return os.listdir(path)  # noqa: PTH208 - as above
    descriptor = _open_within(path, os.fspath(within), links=links, folder=True)
    try:
        return os.listdir(descriptor)  # noqa: PTH208 - as above
    finally:
        os.close(descriptor)


def _check(facts: os.stat_result, path: str) -> None:
    if stat.S_ISREG(facts.st_mode):
        return
    kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "a device")
    raise FileRefused(path, f"it is {kind}, not a regular file", _ITSELF)


def _leads_out(path: str) -> FileRefused:
    return FileRefused(path, "it leads out of the project", _ITSELF)


def _open_within(path: str, root: str, *, links: bool, folder: bool) -> int:
    below = root.rstrip(os.sep) + os.sep
    if not path.startswith(below) and path + os.sep != below:
        raise FileRefused(path, "it is not in the project", "name a file in the project")
    inner = path[len(below) :]
    if not _CAN_WALK:
        return _open_resolved(path, root, inner, links=links, folder=folder)
    return _Walk(path, root, links=links).opened(_names(inner), folder=folder)


class _Walk:
    """The way from a tree's root to one file, through folders that stay open until it is reached."""

    __slots__ = ("_followed", "_links", "_path", "_root", "_way")

    def __init__(self, path: str, root: str, *, links: bool) -> None:
        self._path = path
        self._root = root
        self._links = links
        self._followed = 0
        self._way: list[int] = []

    def opened(self, names: list[str], *, folder: bool) -> int:
        self._way.append(os.open(self._root, _PASSED))
        try:
            while names:
                name = names.pop(0)
                if name == "..":
                    self._leave()
                    continue
                here = self._way[-1]
                facts = os.stat(name, dir_fd=here, follow_symlinks=False)
                if stat.S_ISLNK(facts.st_mode):
                    names = self._target(name) + names
                elif names:
                    self._way.append(os.open(name, _PASSED | _NO_LINK, dir_fd=here))
                elif folder:
                    return os.open(name, _FOLDER | _NO_LINK, dir_fd=here)
                else:
                    _check(facts, self._path)
                    return os.open(name, _FILE | _NO_LINK, dir_fd=here)
            if not folder:
                raise FileRefused(self._path, "it is a folder, not a regular file", _ITSELF)
            return os.open(".", _FOLDER, dir_fd=self._way[-1])
        finally:
            for descriptor in self._way:
                os.close(descriptor)

    def _leave(self) -> None:
        if len(self._way) == 1:
            raise _leads_out(self._path)
        os.close(self._way.pop())

    def _target(self, name: str) -> list[str]:
        """Where a link leads from here: the names that take its place."""
        self._followed += 1
        if not self._links:
            raise FileRefused(self._path, "it is a link, which is not followed", _ITSELF)
        if self._followed > LINKS:
            raise FileRefused(self._path, "it leads in a circle", _ITSELF)
        target = os.readlink(name, dir_fd=self._way[-1])
        if not target.startswith("/"):
            return _names(target)
        # Resolved by name and then walked from the root like any other: a change in between leads nowhere else.
        inner = _inner(os.path.realpath(target), self._root)
        if inner is None:
            raise _leads_out(self._path)
        while len(self._way) > 1:
            os.close(self._way.pop())
        return _names(inner)


def _open_resolved(path: str, root: str, inner: str, *, links: bool, folder: bool) -> int:
    """Where files cannot be opened in folders: names are resolved first, and a change in between is not noticed."""
    real = os.path.realpath(path)
    if _inner(real, root) is None:
        raise _leads_out(path)
    if not links and real != os.path.normpath(os.path.join(os.path.realpath(root), inner)):  # noqa: PTH118 - as above
        raise FileRefused(path, "it is a link, which is not followed", _ITSELF)
    if folder:
        return os.open(real, _FOLDER | _NO_LINK)
    _check(os.lstat(real), path)
    return os.open(real, _FILE | _NO_LINK)


def _inner(real: str, root: str) -> str | None:
    """A resolved path as seen from a root; None if it is not below it."""
    top = os.path.realpath(root)
    below = top.rstrip(os.sep) + os.sep
    if real == top:
        return ""
    return real[len(below) :] if real.startswith(below) else None


def _names(path: str) -> list[str]:
    return [name for name in path.split(os.sep) if name not in ("", ".")]  # noqa: PTH206 - as above
