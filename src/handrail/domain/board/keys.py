"""Keys of a board's entries: which board a key means, and what keys, board names and tags may look like. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from handrail.domain.board.entry import DEFAULT
from handrail.kernel.errors import InvalidParams

KEY = 300
"""The most characters in a key, including its board's name."""
NAME = 100
"""The most characters in a board's name, which is part of an address."""
TAG = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Key(NamedTuple):
    """A full key: `id` starts with the board's name and a colon, however the key was written."""

    board: str
    id: str


def key_of(text: str, board: str | None = None) -> Key:
    """The full key. If the text names no board, it is on `board`, or on the default one."""
    key = beginning_of(text, board)
    if text != text.rstrip():
        raise InvalidParams(f"the key {text!a} ends with a space", hint="leave it out")
    if key.id == f"{key.board}:":
        raise InvalidParams(
            f"the key {text} ends with its board's name" if text else "the key is empty",
            hint=f"name the entry: {key.board}:something",
        )
    return key


def beginning_of(text: str, board: str | None = None) -> Key:
    """A prefix of keys, read like a key: `plan:` is all of the board `plan`."""
    name, colon, rest = text.partition(":")
    if not colon:
        name, rest = board if board is not None else DEFAULT, text
    check_board(name)
    if board is not None and name != board:
        raise InvalidParams(
            f"{text} is on the board {name}, and namespace says {board}",
            hint=f"leave namespace out, or write {board}:{text} where the colon is the entry's own",
        )
    found = f"{name}:{rest}"
    if len(found) > KEY:
        raise InvalidParams(f"the key has {len(found)} characters, and {KEY} is the most", hint="put it into the value")
    if rest != rest.lstrip() or not rest.isprintable():
        raise InvalidParams(
            f"the key {text!a} begins with a space, or holds what nobody can see",
            hint="use letters, digits, signs, and spaces between them",
        )
    return Key(name, found)


def check_board(name: str) -> None:
    """Raises InvalidParams if a board cannot have this name."""
    if len(name) > NAME or not _NAME.fullmatch(name):
        raise InvalidParams(
            f"{name!a} is not a name for a board" if name else "a board's name is missing before the colon",
            hint=f"up to {NAME} letters, digits, dots, dashes and underscores, as in plan:next",
        )


def tags_of(given: Iterable[str]) -> list[str]:
    """The tags, each once, in the order given."""
    tags = list(dict.fromkeys(given))
    for tag in tags:
        if not tag or len(tag) > TAG or tag != tag.strip() or not tag.isprintable():
            raise InvalidParams(f"{tag!a} is no tag", hint=f"a tag has 1 to {TAG} characters that can be seen")
    return tags
