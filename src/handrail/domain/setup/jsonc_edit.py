"""Adds members and items to JSON texts, and removes them; comments, order and indentation of everything else stay as
they are. The result of every edit is parsed again before it is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from handrail.domain.setup.edits import Edit, NotUnderstood, done, line_end, value_at
from handrail.domain.setup.jsonc import Element, JsoncValue, plain, read

UNIT = "  "
_SAME_LINE = re.compile(r"(?:[ \t]+|//[^\r\n]*|/\*[^\r\n]*?\*/)*(?=\r?\n)")


class _Style(NamedTuple):
    """How a text is laid out."""

    unit: str
    end: str


def put(text: str, path: Sequence[str], value: Any) -> list[Edit]:
    """Sets the member at a path of names, creating the objects on the way; no edit if it already has this value."""
    root = _root(text)
    if root is None:
        edits = _append_value(text, _nested(path, value))
    else:
        node, rest = _walk(root, path)
        if not rest and says(node.plain, value):
            return []
        edits = (
            _replacement(text, node, value) if not rest else _insertion(text, node, rest[0], _nested(rest[1:], value))
        )
    return _proven(text, edits, _with_member(plain(text), path, value))


def append(text: str, path: Sequence[str], value: Any) -> list[Edit]:
    """Adds an item to the array at a path of names; no edit if it already has an equal one."""
    root = _root(text)
    if root is None:
        edits = _append_value(text, _nested(path, [value]))
    else:
        node, rest = _walk(root, path)
        if rest:
            edits = _insertion(text, node, rest[0], _nested(rest[1:], [value]))
        elif node.kind != "array":
            raise NotUnderstood(f"{'.'.join(path)} in it is no list")
        elif value in node.plain:
            return []
        else:
            edits = _insertion(text, node, None, value)
    return _proven(text, edits, _with_item(plain(text), path, value))


def drop(text: str, path: Sequence[str], item: Any = None) -> list[Edit]:
    """Removes the member at a path or, from the array there, the items equal to `item`; then whatever became empty."""
    edits: list[Edit] = []
    path = list(path)
    found = _element(text, path, item)
    while found is not None:
        edit = _cut(text, *found)
        edits.append(edit)
        text = done(text, [edit])
        parent, rest = _walk(_root(text) or found[0], path if item is not None else path[:-1])
        if item is not None:
            found = _element(text, path, item)
            if found is None and not parent.elements:
                found, item = _element(text, path, None), None
        else:
            path = path[:-1]
            found = _element(text, path, None) if path and not rest and not parent.elements else None
    return edits


def found_at(text: str, path: Sequence[str]) -> Any:
    """The value at a path of names; None if there is none."""
    return value_at(plain(text), path)


def _root(text: str) -> JsoncValue | None:
    root = read(text)
    if root is not None and root.kind != "object":
        raise NotUnderstood("it is not a JSON object")
    return root


def _walk(node: JsoncValue, path: Sequence[str]) -> tuple[JsoncValue, Sequence[str]]:
    """The deepest existing value along the path, and the rest of the path."""
    for depth, name in enumerate(path):
        if node.kind != "object":
            raise NotUnderstood(f"{'.'.join(path[:depth])} in it is no object")
        member = node.member(name)
        if member is None:
            return node, path[depth:]
        node = member.node
    return node, ()


def _element(text: str, path: Sequence[str], item: Any) -> tuple[JsoncValue, int] | None:
    """The container of what is to be removed, and the index of that element."""
    root = _root(text)
    if root is None:
        return None
    parent, rest = _walk(root, path if item is not None else path[:-1])
    if rest:
        return None
    for number, element in enumerate(parent.elements):
        if (item is not None and element.node.plain == item) or (item is None and element.key == path[-1]):
            return parent, number
    return None


def says(there: Any, value: Any) -> bool:
    """Whether what is there contains all of `value`; additional members are the user's own."""
    if isinstance(value, dict) and isinstance(there, dict):
        return all(name in there and there[name] == wanted for name, wanted in value.items())
    return bool(there == value)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _with_member(whole: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    return {**whole, path[0]: _with_member(whole.get(path[0], {}), path[1:], value)}


def _with_item(whole: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return [*(whole or []), value]
    return {**whole, path[0]: _with_item(whole.get(path[0], {}), path[1:], value)}


def _proven(text: str, edits: list[Edit], wanted: Any) -> list[Edit]:
    """The edits, if they turn the text into exactly what is wanted; else raises NotUnderstood."""
    if plain(done(text, edits)) != wanted:
        raise NotUnderstood("it is written in a way that cannot be added to")
    return edits


def _style(text: str) -> _Style:
    root = read(text)
    first = root.elements[0].start if root is not None and root.elements else None
    indent = _indent_before(text, first) if first is not None else None
    return _Style(indent or UNIT, line_end(text))


def _indent_before(text: str, at: int) -> str | None:
    """The indentation before a position that is the first on its line; None if it is not."""
    begun = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    before = text[begun:at]
    return before if begun and not before.strip(" \t") else None


def _line_indent(text: str, at: int) -> str:
    """The indentation of the line that a position is on."""
    begun = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    found = re.match(r"[ \t]*", text[begun:at])
    return found.group() if found else ""


def _rendered(value: Any, indent: str, style: _Style) -> str:
    lines = json.dumps(value, indent=style.unit, ensure_ascii=False).split("\n")
    return (style.end + indent).join(lines)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _append_value(text: str, value: Any) -> list[Edit]:
    style = _style(text)
    gap = "" if not text.strip("\ufeff") or text.endswith("\n") else style.end
    return [Edit(len(text), "", gap + _rendered(value, "", style) + style.end)]


def _replacement(text: str, node: JsoncValue, value: Any) -> list[Edit]:
    there = text[node.start : node.end]
    root = read(text)
    is_one_line = root is not None and "\n" not in text[root.start : root.end]
    new = _compact(value) if is_one_line else _rendered(value, _line_indent(text, node.start), _style(text))
    return [Edit(node.start, there, new)]


def _insertion(text: str, node: JsoncValue, key: str | None, value: Any) -> list[Edit]:
    """Appends an element to a container."""
    style = _style(text)
    name = "" if key is None else f"{_compact(key)}: "
    if not node.elements:
        base = _line_indent(text, node.start)
        indent = base + style.unit
        inner = text[node.start + 1 : node.end - 1]
        close = "" if "\n" in inner else style.end + base
        return [Edit(node.start + 1, "", f"{style.end}{indent}{name}{_rendered(value, indent, style)}{close}")]
    last = node.elements[-1]
    own_line = _indent_before(text, node.elements[0].start)
    behind = last.node.end if last.comma is None else last.comma
    comma = "," if last.comma is None else ""
    if own_line is None:
        return [Edit(behind, "", f"{comma} {name}{_compact(value)}")]
    rendered = f"{style.end}{own_line}{name}{_rendered(value, own_line, style)}"
    comment = _SAME_LINE.match(text, behind)
    if comment is None or comment.end() == behind:
        return [Edit(behind, "", comma + rendered)]
    # A comment on the last line stays with the element it is about.
    first = [Edit(behind, "", comma)] if comma else []
    return [*first, Edit(comment.end() + len(comma), "", rendered)]


def _cut(text: str, parent: JsoncValue, number: int) -> Edit:
    """Removes one element with its comma and, if it is on lines of its own and no comment ends there, with those
    lines."""
    element: Element = parent.elements[number]
    end = element.comma or element.node.end
    bare = Edit(element.start, text[element.start : end], "")
    neat = _neatly_cut(text, parent, number)
    try:
        is_same = plain(done(text, [neat])) == plain(done(text, [bare]))
    except NotUnderstood:
        is_same = False
    return neat if is_same else bare


def _neatly_cut(text: str, parent: JsoncValue, number: int) -> Edit:
    element = parent.elements[number]
    start, end = element.start, element.comma or element.node.end
    before = parent.elements[number - 1] if number else None
    if element.comma is None and before is not None and before.comma is not None:
        between = text[before.comma : start]
        if not between.strip():
            start = before.comma - 1
            return Edit(start, text[start:end], "")
    indent = _indent_before(text, start)
    if indent is not None:
        start -= len(indent) + 1
        if text[start - 1 : start + 1] == "\r\n":
            start -= 1
    return Edit(start, text[start:end], "")
