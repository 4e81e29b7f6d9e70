"""Names for tasks that come from elsewhere: one line, at most 200 characters, unique. Nothing else."""

from __future__ import annotations

import re

NAME_MAX = 200
"""Characters of a task's name (`PlanTask`)."""
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
"""Control characters, and those that reorder or hide text on a screen."""
_JOINERS = "\u200c\u200d"
"""Zero-width characters that Persian words and families of emoji consist of. They are kept inside a word; anywhere else
they say nothing, and would make two names that look the same."""


class Names:
    """The names given so far."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._tried: dict[tuple[str, str], int] = {}

    def name(self, title: str, source_id: str) -> str:
        """A name for this title. If it is taken, the source's id is appended, and a number if needed."""
        shown_id = plain_title(source_id)[:80]
        plain = plain_title(title) or shown_id or "task"
        found = _cut(plain, "")
        number = self._tried.get((plain, shown_id), 1)
        while found in self._given:
            found = _cut(plain, f" ({shown_id})" if number == 1 else f" ({shown_id}, {number})")
            number += 1
        self._tried[plain, shown_id] = number
        self._given.add(found)
        return found


def plain_title(title: str) -> str:
    """A title on one line: no control characters, single spaces, none at the ends, nothing invisible around words."""
    words = (word.strip(_JOINERS) for word in _UNPRINTED.sub(" ", title).split())
    return " ".join(word for word in words if word)


def _cut(plain: str, behind: str) -> str:
    room = NAME_MAX - len(behind)
    return (plain if len(plain) <= room else plain[: room - 1].rstrip() + "…") + behind
