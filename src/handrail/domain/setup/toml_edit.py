"""Adds tables and keys to TOML texts; everything else stays as it is, byte for byte. The scanning here is simple, so
an edit is accepted only if parsing the result again gives exactly what is wanted."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.domain.setup.edits import Edit, NotUnderstood, done, line_end, value_at
from handrail.kernel.toml_values import parse_toml

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def plain(text: str) -> dict[str, Any]:
    """The parsed text. Raises NotUnderstood."""
    try:
        return parse_toml(text)
    except ValueError as problem:
        raise NotUnderstood(str(problem)) from None


def put_table(text: str, path: Sequence[str], values: Mapping[str, Any]) -> list[Edit]:
    """Sets a table to these values, replacing one of that name or at the end. Its subtables stay."""
    whole = plain(text)
    there = value_at(whole, path)
    if isinstance(there, dict) and all(there.get(name) == value for name, value in values.items()):
        return []
    end = line_end(text)
    body = end.join(f"{name} = {_rendered(value)}" for name, value in values.items())
    if there is None:
        gap = "" if not text else end if text.endswith("\n") else end * 2
        edits = [Edit(len(text), "", f"{gap}[{'.'.join(path)}]{end}{body}{end}")]
        return _proven(text, edits, _with(whole, path, values))
    kept = {name: value for name, value in there.items() if isinstance(value, dict)} if isinstance(there, dict) else {}
    wanted = _with(whole, path, {**kept, **values})
    return _first_proven(text, [_replacement(text, header, body) for header in _headers(text, path)], wanted)


def put_key(text: str, key: str, value: Any) -> list[Edit]:
    """Sets a top-level key."""
    whole = plain(text)
    if whole.get(key) == value:
        return []
    end, line = line_end(text), f"{key} = {_rendered(value)}"
    if key in whole:
        found = re.search(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*([^\r\n#]*?)[ \t]*(?=$|\r|\n|#)", text, re.MULTILINE)
        if found is None:
            raise NotUnderstood(f"{key} in it is written in a way that cannot be changed")
        edit = Edit(found.start(1), found.group(1), _rendered(value))
    elif _HEADER.search(text):
        edit = Edit(0, "", line + end)
    else:
        gap = "" if not text or text.endswith("\n") else end
        edit = Edit(len(text), "", gap + line + end)
    return _proven(text, [edit], {**whole, key: value})


def put_table_key(text: str, path: Sequence[str], key: str, value: Any) -> list[Edit]:
    """Adds a key to a table that is there. One that it has already was somebody's choice and stays."""
    whole = plain(text)
    there = value_at(whole, path)
    if not isinstance(there, dict):
        raise NotUnderstood(f"{'.'.join(path)} in it is no table")
    if key in there:
        return []
    wanted = _with(whole, path, {**there, key: value})
    end, candidates = line_end(text), []
    for header in _headers(text, path):
        gap = "" if header.group().endswith("\n") else end
        candidates.append(Edit(header.end(), "", f"{gap}{key} = {_rendered(value)}{end}"))
    return _first_proven(text, candidates, wanted)


def drop_table_key(text: str, path: Sequence[str], key: str, value: Any) -> list[Edit]:
    """Removes a key from a table, if it still has this value."""
    whole = plain(text)
    there = value_at(whole, path)
    if not isinstance(there, dict) or there.get(key) != value:
        return []
    wanted = _with(whole, path, {name: kept for name, kept in there.items() if name != key})
    line = re.compile(rf"^{re.escape(key)} = {re.escape(_rendered(value))}(?:\r?\n|\Z)", re.MULTILINE)
    return _first_proven(text, [Edit(found.start(), found.group(), "") for found in line.finditer(text)], wanted)


def _with(whole: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    below = whole.get(path[0], {})
    if not isinstance(below, dict):
        raise NotUnderstood(f"{path[0]} in it is no table")
    return {**whole, path[0]: value if len(path) == 1 else _with(below, path[1:], value)}


def _proven(text: str, edits: list[Edit], wanted: Mapping[str, Any]) -> list[Edit]:
    try:
        is_right = parse_toml(done(text, edits)) == wanted
    except ValueError:
        is_right = False
    if not is_right:
        raise NotUnderstood("it is written in a way that cannot be added to")
    return edits


def _rendered(value: Any) -> str:
    """Texts, numbers and lists of them, which JSON and TOML write in the same way. Raises NotUnderstood for a date."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        raise NotUnderstood("it has a value there that cannot be written again") from None


def _first_proven(text: str, candidates: Sequence[Edit], wanted: Mapping[str, Any]) -> list[Edit]:
    """The first edit that gives what is wanted. There may be several candidates, because a multi-line text can contain
    what looks like a header."""
    for edit in candidates:
        with contextlib.suppress(NotUnderstood):
            return _proven(text, [edit], wanted)
    raise NotUnderstood("it is written in a way that cannot be changed")


def _headers(text: str, path: Sequence[str]) -> list[re.Match[str]]:
    """The lines that look like the header of a table."""
    name = r"[ \t]*\.[ \t]*".join(rf"""["']?{re.escape(part)}["']?""" for part in path)
    return [*re.finditer(rf"^[ \t]*\[[ \t]*{name}[ \t]*\][^\r\n]*(?:\r?\n|\Z)", text, re.MULTILINE)]


def _replacement(text: str, header: re.Match[str], body: str) -> Edit:
    """Replaces a table's own lines between its header and the next one; comments and blank lines before that stay."""
    following = _HEADER.search(text, header.end())
    section = text[header.end() : following.start() if following else len(text)]
    lines = section.splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    there = "".join(lines)
    kept_end = re.search(r"\r?\n\Z", there)
    gap = "" if header.group().endswith("\n") else line_end(text)
    return Edit(header.end(), there, gap + body + (kept_end.group() if kept_end else "" if there else line_end(text)))


def drop_table(text: str, path: Sequence[str]) -> list[Edit]:
    """Removes a table, with the blank line before it."""
    whole = plain(text)
    if value_at(whole, path) is None:
        return []
    candidates: list[Edit] = []
    for header in _headers(text, path):
        body = _replacement(text, header, "")
        blank = re.search(r"(?<=\n)\r?\n\Z", text[: header.start()])
        start = blank.start() if blank else header.start()
        candidates.append(Edit(start, text[start : body.at + len(body.removed)], ""))
    return _first_proven(text, candidates, _without(whole, path))


def drop_key(text: str, key: str, value: Any) -> list[Edit]:
    """Removes the line of a key, if it still has this value."""
    whole = plain(text)
    if whole.get(key) != value:
        return []
    found = re.search(rf"^{re.escape(key)} = {re.escape(_rendered(value))}(?:\r?\n|\Z)", text, re.MULTILINE)
    if found is None:
        raise NotUnderstood(f"{key} in it is written in another way than before")
    return _proven(text, [Edit(found.start(), found.group(), "")], {k: v for k, v in whole.items() if k != key})


def _without(whole: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    rest = {name: value for name, value in whole.items() if name != path[0]}
    if len(path) == 1:
        return rest
    below = _without(whole[path[0]], path[1:])
    return {**rest, path[0]: below} if below else rest
