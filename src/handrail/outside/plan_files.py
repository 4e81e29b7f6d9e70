"""Files that plans are read from and written to: text of a bounded size, in whatever Unicode encoding a shell wrote it;
written whole or not at all."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import BinaryIO

from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.outside.atomic_files import write_new, write_whole
from handrail.outside.user_files import tree_around
from handrail.regular_files import open_regular, reason_of

LARGEST = 64 * 1024 * 1024
"""The most bytes read from a file. A plan of 10,000 tasks, each with a page of text, is a third of it."""
OWN_BEGIN = b'{"handrail":'
"""How a file begins that Handrail exported."""
OWN_TIMES = 4
"""How many times larger such a file may be: it says more than the file that was imported, and must be readable too."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""Byte order marks and the encodings they stand for: PowerShell's `>` writes UTF-16."""
_HANDED_OVER = ("/dev/stdin", "/dev/fd/")
"""How a shell names what it hands over open, such as `<(command)`: it may be a pipe, and is waited for."""


def read_text(file: Path, project: Path | None = None, largest: int = LARGEST) -> str:
    """The text of a file, or a refusal that says what is wrong with it. One in the project must not lead out of it."""
    try:
        if str(file).startswith(_HANDED_OVER):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        else:
            whole = Path(os.path.abspath(file))  # noqa: PTH100 - without `..`, and without following links
            descriptor = open_regular(whole, within=tree_around(whole, (project,)))
        with os.fdopen(descriptor, "rb") as stream:
            return text_of(stream, str(file), largest)
    except FileNotFoundError:
        raise InvalidParams(f"{file} is not there", hint="name a file, or - for standard input") from None
    except OSError as problem:
        raise PlaceUnusable(f"{file} cannot be read: {reason_of(problem)}", hint="name another file") from None


def text_of(stream: BinaryIO, name: str, largest: int = LARGEST) -> str:
    """The text of a stream."""
    raw = stream.read(largest + 1)
    if len(raw) > largest and raw.startswith(OWN_BEGIN):
        largest *= OWN_TIMES
        raw += stream.read(largest + 1 - len(raw))
    if len(raw) > largest:
        raise InvalidParams(
            f"{name} is larger than {largest // (1024 * 1024)} MB, the most that is read",
            hint="export less at a time, such as what is open, and import the rest with --into",
        )
    for mark, encoding in (*_MARKS, (b"", "utf-8")):
        if raw.startswith(mark):
            try:
                return raw[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                break
    raise InvalidParams(f"{name} is not UTF-8 text", hint="save it as UTF-8")


def write_text(file: Path, text: str, *, replace: bool) -> None:
    """Writes a file. An existing one is left alone unless `replace` is set."""
    try:
        if not replace:
            write_new(file, text.encode())
        elif file.exists() and not file.is_file():  # a pipe or a device is written to, never replaced
            file.write_text(text, encoding="utf-8", newline="\n")
        else:
            write_whole(file, text.encode())
    except FileExistsError:
        raise InvalidParams(f"{file} is there already", hint="add --force to replace it") from None
    except OSError as problem:
        raise PlaceUnusable(
            f"{file} cannot be written: {problem.strerror}", hint="name another file with --output"
        ) from None
