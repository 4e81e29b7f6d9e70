"""What git makes of a file's bytes before it compares them: line ends, `$Id$`, encodings, filters. Git then calls files
equal whose bytes differ, and files different whose bytes are the same. This module finds both.

A difference in line ends alone counts as git counts it, and so does what the user's own filters remove. Text inside
`$Id: … $` is content, unless it is what git itself puts there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from handrail.outside.tracking.discovery import LineEnds
from handrail.outside.tracking.git_process import GitCall, GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import PrivateIndex, names

LINE_ENDS, IDENT = "line ends", "ident"
REVERSIBLE = ("crlf", "eol", "ident", "text")
"""Attributes whose conversions git does in both directions."""
ATTRIBUTES = ("crlf", "eol", "filter", "ident", "text", "working-tree-encoding")
OFF = ("unspecified", "unset")
COMPARED = 500
"""How many files are read to find out whether they differ in what git converts alone."""
_IDENT = re.compile(rb"\$Id:([^$\n]*)\$")
_BY_GIT = re.compile(rb" ?(?:[0-9a-f]{40}|[0-9a-f]{64})? ?")
_WRITTEN_BY_GIT = re.compile(rb"\$Id: (?:[0-9a-f]{40}|[0-9a-f]{64}) \$")
_HEADER = re.compile(rb"([0-9a-f]+) blob (\d+)\n")


class Treated(NamedTuple):
    """How git treats some files."""

    filters: Mapping[bytes, str]
    """The content filter of each, if it has one."""
    converted: frozenset[bytes]
    """Files whose blob may differ from their bytes."""
    ident: frozenset[bytes]


def treatment(private: PrivateIndex, paths: Sequence[bytes]) -> Treated:
    """The attributes of some files, as far as they convert anything."""
    found = private.attributes(ATTRIBUTES, paths)
    everywhere = private.repository.line_ends.converts
    filters, converted, ident = {}, set(), set()
    for path in paths:
        on = {name: value for name, value in found.get(path, {}).items() if value not in OFF}
        if "filter" in on:
            filters[path] = on["filter"]
        if on.get("ident") == "set":
            ident.add(path)
        if on or (everywhere and found.get(path, {}).get("text") != "unset"):
            converted.add(path)
    return Treated(filters, frozenset(converted), frozenset(ident))


def ask_for_ident(private: PrivateIndex) -> GitCall:
    """Starts a search for tracked files with something inside `$Id: … $` that git leaves out when it compares."""
    pattern = ("-e", "$Id:", "--", ":(attr:ident)")
    return private.start("grep", "-z", "-l", "-F", "-a", *pattern, environment={"GIT_LITERAL_PATHSPECS": "0"})


def with_own_ident(top: bytes, paths: Iterable[bytes], most: int) -> set[bytes]:
    """The files among some that have a text of their own inside `$Id: … $`. Those with more bytes than `most` are not
    read: they may."""
    found = set()
    for path in paths:
        content = bytes_of(top + path, most)
        if content is not None and (
            len(content) > most or any(not _BY_GIT.fullmatch(inside) for inside in _IDENT.findall(content))
        ):
            found.add(path)
    return found


def bytes_of(full: bytes, most: int) -> bytes | None:
    """The bytes of a plain file, up to one more than `most`; None if it is anything else or cannot be read."""
    try:
        descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(most + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        except OSError:
            return None


def differing_by_git_alone(private: PrivateIndex, pairs: Mapping[bytes, tuple[str, str]]) -> dict[bytes, set[str]]:
    """The paths whose two blobs differ in line ends and in what git writes into `$Id$` alone, and in which of these."""
    chosen = dict(sorted(pairs.items())[:COMPARED])
    asked = sorted({oid for pair in chosen.values() for oid in pair})
    if not asked:
        return {}
    try:
        output = private.git("cat-file", "--batch", "--buffer", given="\n".join(asked).encode() + b"\n")
    except GitTimedOut:
        raise
    except GitFailed:
        return {}
    contents: dict[str, bytes] = {}
    position = 0
    while (header := _HEADER.match(output, position)) is not None:
        size = int(header[2])
        contents[header[1].decode()] = output[header.end() : header.end() + size]
        position = header.end() + size + 1
    found: dict[bytes, set[str]] = {}
    for path, (old, new) in chosen.items():
        if old in contents and new in contents:
            ways = _ways_to_differ(contents[old], contents[new])
            if ways is not None:
                found[path] = ways
    return found


def _ways_to_differ(one: bytes, other: bytes) -> set[str] | None:
    """In which of the two ways two contents differ; None if in any other."""
    without_ident = [_WRITTEN_BY_GIT.sub(b"$Id$", content) for content in (one, other)]
    plain = [content.replace(b"\r\n", b"\n") for content in without_ident]
    if plain[0] != plain[1]:
        return None
    ways = {LINE_ENDS} if without_ident[0] != without_ident[1] else set()
    same_ends = [content.replace(b"\r\n", b"\n") for content in (one, other)]
    return ways | {IDENT} if same_ends[0] != same_ends[1] else ways


def conversions(private: PrivateIndex, paths: Sequence[bytes], index: str, configured: str) -> dict[bytes, set[str]]:
    """Which of the two git changes in files, line ends or `$Id$`, by the attributes in an index. `configured` is for
    those without any."""
    try:
        found = private.attributes(REVERSIBLE, paths, index=index)
    except GitTimedOut:
        raise
    except GitFailed:
        return {}
    everywhere = LineEnds(*configured.split("/")).converts if configured else False
    ways: dict[bytes, set[str]] = {}
    for path in paths:
        set_here = {name for name, value in found.get(path, {}).items() if value not in OFF}
        has_ends = bool(set_here - {IDENT}) or (everywhere and found.get(path, {}).get("text") != "unset")
        ways[path] = ({LINE_ENDS} if has_ends else set()) | (set_here & {IDENT})
    return ways


def found_by(call: GitCall) -> list[bytes]:
    """The paths that a search printed; none if it failed, which is the case where there is no index yet."""
    try:
        return names(call.output(allowed=(0, 1)))
    except GitTimedOut:
        raise
    except GitFailed:
        return []
