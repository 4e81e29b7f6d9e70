"""Text to plain data, with the position of every value: JSON, and the part of YAML that says what JSON can say.

In YAML everything is text except true, false, null and JSON's numbers: yes, no, on, dates, 1_000, 0o7 and 1:30 stay
text. No key may be given twice; anchors, aliases and tags are refused, because they can make a small file enormous. It
knows nothing about guides.

Where in a text a value is. A tree of offsets beside the data, built by the readers.

Not a parser: it is told what comes next. It also enforces a rule common to the JSON and YAML readers: no key twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from handrail.domain.guides.definition import Path
from handrail.domain.guides.shelf import Position
from handrail.kernel.late import late_module
from handrail.kernel.limits import MESSAGE_DEPTH

if TYPE_CHECKING:
    import yaml
else:
    yaml = late_module("yaml")

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


class Document(msgspec.Struct, frozen=True):
    """What a text says, and where it says it."""

    data: Any
    spots: Spot


_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s"{}\[\],:]+', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None, "": None}
_TOO_DEEP = f"it is nested more than {MESSAGE_DEPTH} levels deep"


def read_document(text: str, suffix: str) -> Document:
    """What a file with this suffix says, or `Unreadable`."""
    return read_json(text) if suffix.lower() == ".json" else read_yaml(text)


def read_json(text: str) -> Document:
    """The document, or `Unreadable`."""
    raw = text.encode()
    try:
        data = msgspec.json.decode(raw)
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error), raw, text) from None
    return Document(data, _json_spots(text))


def read_yaml(text: str) -> Document:
    """The document, or `Unreadable`."""
    builder = TreeBuilder(text)
    documents = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            offset = event.start_mark.index
            if isinstance(event, yaml.NodeEvent):
                _refuse_expansion(event.anchor, getattr(event, "tag", None), offset)
            if isinstance(event, yaml.ScalarEvent):
                _scalar(builder, event.value, offset, plain=event.implicit[0])
            elif isinstance(event, yaml.CollectionStartEvent):
                _open_container(builder, {} if isinstance(event, yaml.MappingStartEvent) else [], offset)
            elif isinstance(event, yaml.CollectionEndEvent):
                builder.close()
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Unreadable("a second document starts here; a file holds one", offset)
    except yaml.reader.ReaderError as error:
        reason = f"the character U+{error.character:04X} is not allowed in YAML"
        raise Unreadable(reason, max(text.find(chr(error.character)), 0)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.problem, error.context) if part)
        raise Unreadable(f"this is not valid YAML: {said}", None if mark is None else mark.index) from None
    return Document(builder.data, builder.root)


def _malformed(message: str, raw: bytes, text: str) -> Unreadable:
    said, _, place = message.removeprefix("JSON is malformed: ").partition(" (byte ")
    if place:
        # For trailing characters msgspec names the second byte.
        offset = int(place.removesuffix(")")) - (said == "trailing characters")
        before = raw[:offset].decode("utf-8", "ignore")
        return Unreadable(f"this is not valid JSON: {said}", len(before))
    if "truncated" in said:
        return Unreadable("this is not valid JSON: it ends too early", len(text))
    return Unreadable(f"this is not usable JSON: {said.partition(' - at ')[0]}")


def _json_spots(text: str) -> Spot:
    """The spots of a text that is known to be JSON."""
    builder = TreeBuilder(text)
    for token in _TOKEN.finditer(text):
        said, offset = token.group(), token.start()
        if said in "{[":
            if builder.depth >= MESSAGE_DEPTH:
                raise Unreadable(_TOO_DEEP, offset)
            builder.open({} if said == "{" else [], offset)
        elif said in "}]":
            builder.close()
        elif builder.wants_key:
            builder.key(msgspec.json.decode(said) if "\\" in said else said[1:-1], offset)
        else:
            builder.value(None, offset)
    return builder.root


def _refuse_expansion(anchor: str | None, tag: str | None, offset: int) -> None:
    if anchor is not None:
        raise Unreadable(f'anchors and aliases ("{anchor}") are not read: write the text out', offset)
    if tag is not None:
        raise Unreadable(f'tags ("{tag}") are not read: leave it out', offset)


def _open_container(builder: TreeBuilder, container: dict[str, Any] | list[Any], offset: int) -> None:
    if builder.wants_key:
        raise Unreadable("a key must be text, not a list or an object", offset, builder.path())
    if builder.depth >= MESSAGE_DEPTH:
        raise Unreadable(_TOO_DEEP, offset)
    builder.open(container, offset)


def _scalar(builder: TreeBuilder, said: str, offset: int, *, plain: bool) -> None:
    try:
        said.encode()
    except UnicodeEncodeError:
        raise Unreadable("half a surrogate pair is no character", offset) from None
    if builder.wants_key:
        builder.key(said, offset)
        return
    value: Any = said
    if plain and said in _WORDS:
        value = _WORDS[said]
    elif plain and _NUMBER.fullmatch(said):
        try:
            value = msgspec.json.decode(said)
        except msgspec.DecodeError:
            raise Unreadable(f"the number {said[:20]}… is out of range", offset) from None
    builder.value(value, offset)
