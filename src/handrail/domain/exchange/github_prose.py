"""What the body of a GitHub issue says about other issues: those that block it, and those in its task lists.

Based on wording, so a guess: what GitHub itself records (parents, dependencies) takes precedence and is not handled
here. Code, quotes and template comments are ignored.
"""

from __future__ import annotations

import re

_REFERENCE = (
    r"(?:https://github\.com/([\w.-]{1,100}/[\w.-]{1,100})/issues/([0-9]{1,9})\b"
    r"|([\w.-]{1,100}/[\w.-]{1,100})?#([0-9]{1,9})\b)"
)
_ONE = re.compile(_REFERENCE)
_BLOCKED = re.compile(
    r"\b(?:blocked (?:by|on)|depend(?:s|ent|ing)? (?:on|upon)|wait(?:s|ing) (?:for|on))\b", re.IGNORECASE
)
_DENIED = re.compile(r"(?:\bno longer|\bnot|n't|\bwas|\bwere|\bformerly|\bpreviously)\s+$", re.IGNORECASE)
_BETWEEN = re.compile(r"[ \t:*_]*")
_AND = re.compile(r"(?:[ \t]{0,5}(?:,|;|&|\band\b))+[ \t]{0,5}", re.IGNORECASE)
_LIST_FOLLOWS = re.compile(r"[ \t:*_]*\n(?:[ \t]*\n)?(?=[ \t]{0,9}[-*+] )")
_BULLET = re.compile(rf"[ \t]{{0,9}}[-*+] (?:\[[ xX]\] )?{_REFERENCE}.*(?:\n|$)")
_ITEM = re.compile(rf"[ \t]{{0,20}}(?:[-*+]|[0-9]{{1,3}}[.)])[ \t]+\[[ xX]\][ \t]+{_REFERENCE}")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)")

Reference = tuple[str | None, int]
"""A repository, None for the issue's own, and a number."""


def blockers(body: str) -> list[Reference]:
    """The issues this one waits for, according to the text."""
    text = _prose(body)
    found: list[Reference] = []
    for words in _BLOCKED.finditer(text):
        if not _DENIED.search(text[max(0, words.start() - 20) : words.start()]):
            found += _list_of_references(text, words.end()) or _row_of_references(text, words.end())
    return list(dict.fromkeys(found))


def parts(body: str) -> list[Reference]:
    """The issues that are items of its task lists."""
    items = (_ITEM.match(line) for line in _prose(body).split("\n"))
    return list(dict.fromkeys(_reference(item) for item in items if item is not None))


def _row_of_references(text: str, at: int) -> list[Reference]:
    """References in a row from here, such as `#7, #8 and #9`."""
    found: list[Reference] = []
    between = _BETWEEN.match(text, at)
    while between is not None and (one := _ONE.match(text, between.end())) is not None:
        found.append(_reference(one))
        between = _AND.match(text, one.end())
    return found


def _list_of_references(text: str, at: int) -> list[Reference]:
    """A list of references below these words, up to the first item without one."""
    found: list[Reference] = []
    start = _LIST_FOLLOWS.match(text, at)
    bullet = None if start is None else _BULLET.match(text, start.end())
    while bullet is not None:
        found.append(_reference(bullet))
        bullet = _BULLET.match(text, bullet.end())
    return found


def _reference(match: re.Match[str]) -> Reference:
    far, far_number, near, near_number = match.groups()
    return far or near, int(far_number or near_number)


def _prose(body: str) -> str:
    """The body without comments, code and quotes; other lines keep their form."""
    kept: list[str] = []
    fence = ""
    for line in _without_comments(body.replace("\r\n", "\n")).split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
        elif not fence and not line.lstrip().startswith(">"):
            kept.append(re.sub(r"`[^`]*`", "", line))
    return "\n".join(kept)


def _without_comments(body: str) -> str:
    found: list[str] = []
    at = 0
    while (start := body.find("<!--", at)) >= 0:
        end = body.find("-->", start)
        if end < 0:
            break
        found.append(body[at:start])
        at = end + 3
    return "".join([*found, body[at:]])
