"""This machine's key: made once per user, kept in the user's folder, readable by nobody else. What it proves is in
`kernel/provenance.py`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.provenance import KEY_BYTES, MachineKey, key_of
from handrail.outside.atomic_files import PRIVATE, write_new
from handrail.outside.private_files import NotPrivate, make_private_folder, read_private

KEY_FILE = Path(".handrail") / "machine-key"


def machine_key(home: Path) -> MachineKey:
    """The key, made on first use. Two processes that start at once agree on one."""
    known = known_key(home)
    if known is not None:
        return known
    file = home / KEY_FILE
    with _about(file), contextlib.suppress(FileExistsError):  # then another process was first, and theirs is the key
        make_private_folder(file.parent)
        write_new(file, os.urandom(KEY_BYTES).hex().encode() + b"\n", rights=PRIVATE)
    made = known_key(home)
    if made is None:
        raise PlaceUnusable(f"{file} is gone again", hint="look who removes it, then call again")
    return made


def known_key(home: Path) -> MachineKey | None:
    """The key, if there is one yet."""
    file = home / KEY_FILE
    with _about(file):
        content = read_private(file)
    if content is None:
        return None
    key = key_of(content)
    if key is None:
        raise PlaceUnusable(
            f"{file} holds no key",
            hint="remove it, and a new one is made; stores made before then wait for `handrail db trust`",
        )
    return key


@contextlib.contextmanager
def _about(file: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, NotPrivate) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise PlaceUnusable(
            f"the key by which this machine knows its own stores cannot be kept in {file}: {why}",
            hint="fix that file or its folder, or set HOME to a folder of yours that can be written",
        ) from None
