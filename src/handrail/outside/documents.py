"""Text to plain data, with the position of every value: JSON, and the part of YAML that says what JSON can say.

In YAML everything is text except true, false, null and JSON's numbers: yes, no, on, dates, 1_000, 0o7 and 1:30 stay
text. No key may be given twice; anchors, aliases and tags are refused, because they can make a small file enormous. It
knows nothing about guides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.kernel.late import late_module
from handrail.kernel.limits import MESSAGE_DEPTH
from handrail.outside.positions import Spot, TreeBuilder, Unreadable

if TYPE_CHECKING:
    import yaml
else:
    yaml = late_module("yaml")


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
