"""Where in a text a value is. A tree of offsets beside the data, built by the readers in `documents.py`.

Not a parser: it is told what comes next. It also enforces a rule common to the JSON and YAML readers: no key twice.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from handrail.domain.guides.definition import Path
from handrail.domain.guides.shelf import Position

__all__ = ["Position", "Spot", "TreeBuilder", "Unreadable", "locate", "position_at"]


class Spot(Struct):
    """Where one value is, and where those inside it are. A value under a key is where its key is."""

    offset: int
    inner: dict[str | int, Spot]


class Unreadable(Exception):  # noqa: N818 - it describes the text, it is not a failure of the program
    """Why a text yields no data: the reason, and where the problem is, if known."""

    def __init__(self, reason: str, offset: int | None = None, path: Path = ()) -> None:
        self.reason = reason
        self.offset = offset
        self.path = path
        super().__init__(reason)


def position_at(text: str, offset: int) -> Position:
    """Line and column, both from 1; a tab is one column, and so is every character."""
    return Position(line=text.count("\n", 0, offset) + 1, column=offset - text.rfind("\n", 0, offset))


def locate(text: str, root: Spot, path: Path) -> Position:
    """Where the value at `path` is, or its nearest parent that exists."""
    spot = root
    for part in path:
        found = spot.inner.get(part)
        if found is None:
            break
        spot = found
    return position_at(text, spot.offset)


class _Frame(Struct):
    container: dict[str, Any] | list[Any]
    spot: Spot
    key: str | None = None
    key_offset: int = 0


class TreeBuilder:
    """Builds data and spots from what a reader finds, in the order it finds it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data: Any = None
        self.root = Spot(0, {})
        self._frames: list[_Frame] = []

    @property
    def depth(self) -> int:
        return len(self._frames)

    @property
    def wants_key(self) -> bool:
        """Whether the next token is the key of an object."""
        return bool(self._frames) and self._frames[-1].key is None and isinstance(self._frames[-1].container, dict)

    def key(self, key: str, offset: int) -> None:
        frame = self._frames[-1]
        if key in frame.spot.inner:
            first = position_at(self.text, frame.spot.inner[key].offset)
            reason = f'the key "{key}" is already given in line {first.line}; keep one'
            raise Unreadable(reason, offset, (*self.path(), key))
        frame.key, frame.key_offset = key, offset

    def value(self, value: Any, offset: int) -> None:
        self._put(value, offset)

    def open(self, container: dict[str, Any] | list[Any], offset: int) -> None:
        self._frames.append(_Frame(container, self._put(container, offset)))

    def close(self) -> None:
        self._frames.pop()

    def path(self) -> Path:
        """The path of the innermost open container."""
        parts: list[str | int] = []
        for outer, frame in zip(self._frames, self._frames[1:], strict=False):
            parts.append(next(part for part, spot in outer.spot.inner.items() if spot is frame.spot))
        return tuple(parts)

    def _put(self, value: Any, offset: int) -> Spot:
        if not self._frames:
            self.data, self.root = value, Spot(offset, {})
            return self.root
        frame = self._frames[-1]
        part: str | int
        if isinstance(frame.container, list):
            part = len(frame.container)
            frame.container.append(value)
        else:
            assert frame.key is not None
            part, offset = frame.key, frame.key_offset
            frame.container[part] = value
            frame.key = None
        spot = Spot(offset, {})
        frame.spot.inner[part] = spot
        return spot
