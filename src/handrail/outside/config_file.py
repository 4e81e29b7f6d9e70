"""One line of the project's config file: which store it uses. Everything else stays as a person wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.limits import CONFIG_FILE_BYTES
from handrail.kernel.toml_values import parse_toml
from handrail.outside.atomic_files import write_whole
from handrail.regular_files import read_regular, reason_of

_LINE = re.compile(r"^\s*db\s*=")
_TABLE = re.compile(r"^\s*\[")


def with_db(text: str, db: str) -> str | None:
    """The file's text with another store in it; None if changing a line cannot do that."""
    line = f"db = {json.dumps(db)}"
    lines, place = _lines_and_place(text)
    if place is None:
        lines.insert(0, line)
    else:
        lines[place] = line
    return _if_only(text, lines, {"db": db})


def without_db(text: str) -> str | None:
    """The file's text with no store in it; None if removing a line cannot do that."""
    lines, place = _lines_and_place(text)
    if place is None:
        return None
    del lines[place]
    return _if_only(text, lines, {})


def _lines_and_place(text: str) -> tuple[list[str], int | None]:
    lines = text.splitlines()
    end = next((number for number, found in enumerate(lines) if _TABLE.match(found)), len(lines))
    return lines, next((number for number, found in enumerate(lines[:end]) if _LINE.match(found)), None)


def _if_only(text: str, lines: list[str], db: dict[str, str]) -> str | None:
    """The changed text, if everything else in it still means what it did before."""
    changed = "".join(f"{line}\n" for line in lines)
    try:
        before, after = parse_toml(text), parse_toml(changed)
    except ValueError:
        return None
    before.pop("db", None)
    return changed if after == {**before, **db} else None


def say_db(config: Path, db: str) -> bool:
    """Writes the line; False if a person has to. The file is changed completely or not at all."""
    return _change(config, lambda text: with_db(text, db), f"write db = {json.dumps(db)} into it")


def drop_db(config: Path) -> bool:
    """Removes the line, in the same way."""
    return _change(config, without_db, "take db out of it")


def _change(config: Path, how: Callable[[str], str | None], by_hand: str) -> bool:
    try:
        changed = how(_text(config))
        if changed is None or config.is_symlink():
            return False
        config.parent.mkdir(parents=True, exist_ok=True)
        write_whole(config, changed.encode())
    except UnicodeDecodeError:
        raise PlaceUnusable(f"{config} cannot be changed: it is not UTF-8 text", hint=by_hand) from None
    except OSError as problem:
        raise PlaceUnusable(f"{config} cannot be changed: {reason_of(problem)}", hint=by_hand) from None
    return True


def _text(config: Path) -> str:
    try:
        return read_regular(config, CONFIG_FILE_BYTES, within=config.parent.parent).decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
