"""JSON as people write it: with comments and trailing commas. A parser that knows where everything is in the text, so
that a member can be added or removed without rewriting the rest. It changes nothing itself."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from handrail.domain.setup.edits import NotUnderstood

DEEPEST = 100
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')
_WORD = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
BOM = "\ufeff"


class JsoncValue(NamedTuple):
    """A value, and where it starts and ends in the text."""

    kind: str
    """object, array or scalar."""
    start: int
    end: int
    scalar: Any
    elements: tuple[Element, ...]

    @property
    def plain(self) -> Any:
        """The value itself; of members with the same name the last counts, as usual in JSON."""
        if self.kind == "object":
            return {element.key: element.node.plain for element in self.elements}
        if self.kind == "array":
            return [element.node.plain for element in self.elements]
        return self.scalar

    def member(self, key: str) -> Element | None:
        return next((element for element in reversed(self.elements) if element.key == key), None)


class Element(NamedTuple):
    """A member of an object, or an item of an array."""

    key: str | None
    start: int
    node: JsoncValue
    comma: int | None
    """The position after the comma that follows; None if there is none."""


def read(text: str) -> JsoncValue | None:
    """The text's single value; None if the text is blank. Raises NotUnderstood."""
    reader = _Reader(text)
    start = reader.gap(1 if text.startswith(BOM) else 0)
    if start == len(text):
        return None
    node = reader.value(start, 0)
    if reader.gap(node.end) != len(text):
        raise reader.lost(node.end)
    return node


def plain(text: str) -> Any:
    """The value of the text; an empty object if the text is blank."""
    node = read(text)
    return {} if node is None else node.plain


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def lost(self, at: int) -> NotUnderstood:
        line = self.text.count("\n", 0, at) + 1
        return NotUnderstood(f"it is not valid JSON at line {line}")

    def gap(self, at: int) -> int:
        """The next position that is neither whitespace nor comment."""
        found = _GAP.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> JsoncValue:
        if depth > DEEPEST:
            raise NotUnderstood("it is nested too deeply")
        first = self.text[at : at + 1]
        if first in ("{", "["):
            return self._container(at, depth)
        if first == '"':
            end = self._string_end(at)
            return JsoncValue("scalar", at, end, self._decoded(at, end), ())
        word = _WORD.match(self.text, at)
        if word is None:
            raise self.lost(at)
        return JsoncValue("scalar", at, word.end(), self._decoded(at, word.end()), ())

    def _container(self, at: int, depth: int) -> JsoncValue:
        is_object = self.text[at] == "{"
        close = "}" if is_object else "]"
        elements: list[Element] = []
        place = self.gap(at + 1)
        while self.text[place : place + 1] != close:
            if elements and elements[-1].comma is None:
                raise self.lost(place)
            start, key = place, None
            if is_object:
                key, place = self._key(place)
            node = self.value(place, depth + 1)
            place = self.gap(node.end)
            comma = place + 1 if self.text[place : place + 1] == "," else None
            elements.append(Element(key, start, node, comma))
            place = place if comma is None else self.gap(comma)
        return JsoncValue("object" if is_object else "array", at, place + 1, None, tuple(elements))

    def _key(self, at: int) -> tuple[str, int]:
        end = self._string_end(at)
        colon = self.gap(end)
        if self.text[colon : colon + 1] != ":":
            raise self.lost(colon)
        return str(self._decoded(at, end)), self.gap(colon + 1)

    def _string_end(self, at: int) -> int:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.lost(at)
        return found.end()

    def _decoded(self, start: int, end: int) -> Any:
        try:
            return json.loads(self.text[start:end])
        except ValueError:
            raise self.lost(start) from None
