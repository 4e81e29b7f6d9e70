"""Reads JSON written by other tools, with suspicion: whatever is wrong is refused, naming its place.

Pure: text in, plain data out. Knows no tool's fields. Nothing is lost silently: a key with two different values is
refused, numbers that no store can hold become text, and characters that no store can hold are replaced and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from handrail.kernel.errors import InvalidParams

MOST_LEVELS = 64
"""Nesting depth of objects and lists. No tool's own file comes close."""
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, which databases refuse, and unpaired surrogates, which are not characters."""
_PUT_INSTEAD = "\ufffd"
_BLANK = re.compile(r"[ \t\r\n]*")
_MARK = "\ufeff"


class _Twice(Exception):  # noqa: N818 - it describes the file
    """A key with two different values in one object."""


class ForeignJson:
    """A text being turned into plain data, and what was changed in it."""

    def __init__(self, text: str, most_levels: int = MOST_LEVELS) -> None:
        self._text = text.removeprefix(_MARK)
        self._most_levels = most_levels
        self._replaced = 0
        self._spelled = 0
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_one_value_a_key,
            parse_int=self._parse_integer,
            parse_float=self._parse_fraction,
            parse_constant=_refuse_constant,
        )

    def starts_with(self, character: str) -> bool:
        """Whether the first value starts with this character."""
        return self._text.startswith(character, _blanks(self._text, 0))

    def values(self) -> list[Any]:
        """All values in the text. There may be several in a row: `gh api --paginate` writes one array per page."""
        text, at, found = self._text, 0, []
        while (at := _blanks(text, at)) < len(text):
            value, at = self._decoded(text, at, line=None)
            found.append(self._storable(value, 0))
        return self._check_not_empty(found)

    def one(self) -> Any:
        """The only value in the text."""
        found = self.values()
        if len(found) > 1:
            raise unreadable("there is more after the first value", hint="a file of this kind holds one JSON value")
        return found[0]

    def lines(self) -> Iterator[tuple[int, Any]]:
        """The value on each line that has one, with its line number. The text as a whole need not be JSON."""
        any_line = False
        for number, line in enumerate(self._text.split("\n"), start=1):
            start = _blanks(line, 0)
            if start == len(line):
                continue
            any_line = True
            value, end = self._decoded(line, start, line=number)
            if _blanks(line, end) < len(line):
                raise unreadable(f"line {number}: there is more after the value", hint="a line holds one JSON value")
            yield number, self._storable(value, 0)
        if not any_line:
            self._check_not_empty([])

    def remarks(self) -> list[str]:
        """What was changed to make it storable."""
        found = []
        if self._replaced:
            found.append(f"characters that no store keeps (NUL, half ones) became {_PUT_INSTEAD}: {self._replaced}")
        if self._spelled:
            found.append(f"numbers too large to be kept as numbers became text: {self._spelled}")
        return found

    def _decoded(self, text: str, at: int, *, line: int | None) -> tuple[Any, int]:
        where = f"line {line}: " if line is not None else ""
        try:
            return self._decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            place = f"line {line or error.lineno}, column {error.colno}"
            raise unreadable(f"{place}: this is not JSON: {error.msg}", hint=_conflict_hint(text, error.pos)) from None
        except _Twice as error:
            said = f'{where}one object has the key "{error}" twice, with different values'
            raise unreadable(said, hint="keep the one that is meant") from None
        except RecursionError:
            raise self._too_deep(where) from None
        except ValueError as error:
            raise unreadable(f"{where}this is not JSON: {error}", hint="export it again") from None

    def _parse_integer(self, said: str) -> int | str:
        if len(said) <= 20 and -(2**63) <= int(said) < 2**63:
            return int(said)
        self._spelled += 1
        return said

    def _parse_fraction(self, said: str) -> float | str:
        number = float(said)
        if number in (float("inf"), float("-inf")):
            self._spelled += 1
            return said
        return number

    def _storable(self, value: Any, level: int) -> Any:
        """The value without anything a store refuses."""
        if isinstance(value, str):
            kept, times = _UNKEEPABLE.subn(_PUT_INSTEAD, value)
            self._replaced += times
            return kept
        if isinstance(value, list | dict) and level >= self._most_levels:
            raise self._too_deep()
        if isinstance(value, list):
            return [self._storable(entry, level + 1) for entry in value]
        if isinstance(value, dict):
            return {self._storable(key, level): self._storable(entry, level + 1) for key, entry in value.items()}
        return value

    def _too_deep(self, where: str = "") -> InvalidParams:
        said = f"{where}it is nested more than {self._most_levels} levels deep"
        return unreadable(said, hint="no tool writes such a file; look at where it comes from")

    def _check_not_empty(self, found: list[Any]) -> list[Any]:
        if not found:
            raise unreadable("the file is empty", hint="export it again, and look whether the tool said why")
        return found


def unreadable(what: str, *, hint: str, **details: Any) -> InvalidParams:
    """The refusal for a file that is not what it was taken for."""
    return InvalidParams(f"The file cannot be read: {what}.", hint=hint, **details)


def kind_in_words(value: object) -> str:
    """The kind of JSON value found where another was expected."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a number"


def _blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _one_value_a_key(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _Twice(key[:80])
        found[key] = value
    return found


def _refuse_constant(said: str) -> Any:
    raise ValueError(f"{said} is not a JSON number")


def _conflict_hint(text: str, at: int) -> str:
    if text.startswith(("<<<<<<<", "=======", ">>>>>>>"), text.rfind("\n", 0, at) + 1):
        return "this is the mark of a merge conflict: resolve it first"
    return "export it again, or fix it there"
