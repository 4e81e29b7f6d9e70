"""File names as JSON-safe text, and back, without loss. Not for display: nothing is shortened or prettified.

A name is bytes. Almost all are UTF-8 and are used as they are, spaces, newlines and all: JSON can carry them. A name
that is not UTF-8, or that begins with a double quote, is put in double quotes with backslash escapes, the way git
prints such names: `"caf\\351.txt"`.

The glob language of .gitignore as regular expressions without runaway backtracking. Not the rules around it: which line
is a comment, what `!` takes back and where a pattern is anchored are up to its two users, the scope of a task and the
walk over a plain directory.

Between two stars the leftmost match is always as good as any later one, so each such part is an atomic group: nothing
is tried twice, and a hostile pattern costs its length times the path's, not a power of it.
"""

from __future__ import annotations

import re

_ESCAPED = re.compile(rb"\\([0-7]{3}|[\\\"])")


def path_text(name: bytes) -> str:
    """The text that represents a name."""
    text = name.decode("utf-8", "surrogateescape")
    if not text.startswith('"') and text.isascii():
        return text
    is_utf8 = not any("\udc80" <= letter <= "\udcff" for letter in text)
    if is_utf8 and not text.startswith('"'):
        return text
    return '"' + "".join(_quoted(letter) for letter in text) + '"'


def path_bytes(text: str) -> bytes:
    """The name that a text represents."""
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        return text.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(_unquoted, text[1:-1].encode("utf-8", "surrogateescape"))


def _quoted(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if "\udc80" <= letter <= "\udcff":
        return f"\\{ord(letter) - 0xDC00:03o}"
    return letter


def _unquoted(match: re.Match[bytes]) -> bytes:
    escaped = match.group(1)
    return bytes([int(escaped, 8)]) if len(escaped) == 3 else escaped


WILDCARDS = frozenset("*?[")

_NEVER = r"(?!)"
_NAMED_CLASSES = {
    "alnum": r"^\W_",
    "alpha": r"^\W\d_",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": r"0-9",
    "graph": r"\x21-\x7e",
    "lower": r"a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-.:-@\[-`{-~",
    "space": r"\s",
    "upper": r"A-Z",
    "xdigit": r"0-9A-Fa-f",
}


def compile_glob(pattern: str, *, itself: bool = True, below: bool = False) -> re.Pattern[str]:
    """An expression for `fullmatch` over a path of `/`-separated segments, without a slash at either end.

    `*` and `?` stay within a segment; `**` as a whole segment stands for any number of segments, at the end for at
    least one. With `below` it also matches what is below a match; without `itself`, only that. A pattern that git
    would never match (an unclosed bracket, a lone backslash at the end) matches nothing here.
    """
    tail = "" if not below else "(?:/.+)?" if itself else "/.+"
    return re.compile("".join(_path(pattern.split("/"))) + tail, re.DOTALL)


def _path(segments: list[str]) -> list[str]:
    """Splits the path into runs of segments between `**`: the first run is anchored at the start, the last at the end,
    and each of the others matches at the first place where it fits."""
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(_segment(segment))
    if len(runs) == 1:
        return ["/".join(runs[0])]
    first, *middle, last = runs
    made = ["".join(f"{segment}/" for segment in first)]
    made += [f"(?>(?:[^/]+/)*?{''.join(f'{segment}/' for segment in run)})" for run in middle if run]
    made.append(f"(?:[^/]+/)*?{'/'.join(last)}" if last else ".+")
    return made


def _segment(glob: str) -> str:
    """One segment, split at its stars and matched like the whole path: start, first fit, end."""
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(glob):
        letter = glob[at]
        at += 1
        if letter == "*":
            parts.append([])
        elif letter == "?":
            parts[-1].append("[^/]")
        elif letter == "[":
            taken, made = _bracket(glob, at)
            if not taken:
                return _NEVER
            at = taken
            parts[-1].append(made)
        elif letter == "\\":
            if at == len(glob):
                return _NEVER
            parts[-1].append(re.escape(glob[at]))
            at += 1
        else:
            parts[-1].append(re.escape(letter))
    first, *rest = ("".join(part) for part in parts)
    if not rest:
        return first
    *middle, last = rest
    return f"(?>{first}" + "".join(f"(?>[^/]*?{part})" for part in middle if part) + f"[^/]*{last}(?=/|\\Z))"


def _bracket(glob: str, at: int) -> tuple[int, str]:
    """The character class whose bracket is just before `at`: where it ends (0 if it never does) and its expression."""
    inverted = at < len(glob) and glob[at] in "!^"
    at += inverted
    members: list[str] = []
    start: str | None = None
    opened = at
    while at < len(glob) and (glob[at] != "]" or at == opened):
        name_end = glob.find(":]", at + 2) if glob.startswith("[:", at) else -1
        if name_end >= 0:
            if (named := _NAMED_CLASSES.get(glob[at + 2 : name_end])) is None:
                return 0, ""
            members.append(f"[{named}]")
            start, at = None, name_end + 2
            continue
        if glob[at] == "-" and start is not None and at + 1 < len(glob) and glob[at + 1] != "]":
            end, at = _member(glob, at + 1)
            if end is None:
                return 0, ""
            if start <= end:  # a reversed range is empty, as in git
                members.append(f"[{re.escape(start)}-{re.escape(end)}]")
            start = None
            continue
        start, at = _member(glob, at)
        if start is None:
            return 0, ""
        members.append(re.escape(start))
    if at >= len(glob):
        return 0, ""
    any_member = "|".join(members) or _NEVER
    return at + 1, f"(?!{any_member})[^/]" if inverted else f"(?:(?!/)(?:{any_member}))"


def _member(glob: str, at: int) -> tuple[str | None, int]:
    """One character of a class, possibly escaped by a backslash, and where the next begins."""
    if glob[at] == "\\":
        at += 1
    return (glob[at], at + 1) if at < len(glob) else (None, at)
