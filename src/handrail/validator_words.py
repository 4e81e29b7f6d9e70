"""Turns a validator's messages into helpful ones: which member is wrong, how, and what would be right.

Knows msgspec's messages, and nothing about what is validated. A message it does not recognise is passed through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from handrail.kernel.wording import did_you_mean

# Not compiled here: only a wrong call needs them, and every start would pay for it.
_MISSING = r"Object missing required field `(?P<field>[^`]*)`"
_UNKNOWN = r"Object contains unknown field `(?P<field>[^`]*)`"
_TYPE = r"Expected `(?P<want>[^`]*)`, got `(?P<got>[^`]*)`"
_BOUND = r"Expected `(?P<kind>[^`]*)` of length (?P<sign>[<>]=) (?P<bound>\d+)"
_VALUE = r"Expected `(?P<kind>[^`]*)` (?P<sign>[<>]=?) (?P<bound>[-\d.]+)"
_PATTERN = r"Expected `str` matching regex '(?P<pattern>.*?)'(?: - at |$)"
_PYTHON_END = r"\\+Z$"  # as it appears in the validator's message: escaped once more
_PATH = r" - at `(?:key in )?\$(?P<path>[^`]*)`$"

_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_SIGNS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def explained(problem: str, *, kind: str, names: Iterable[str], whole: str, shown: str | None = None) -> str:
    """The problem in plain words. `kind` is what a member is called ("argument"), `names` are the members there are,
    `whole` is what to call everything together, `shown` is the wrong value if its type would say nothing."""
    path = path_of(problem)
    if match := re.match(_MISSING, problem):
        return f"{_join(path, match['field'])} is required"
    if match := re.match(_UNKNOWN, problem):
        unknown = match["field"]
        return f"unknown {kind} {_join(path, unknown)}{did_you_mean(unknown, names)}"
    return _explained_value(problem, path or whole, whole, shown)


def path_of(problem: str) -> str:
    """Where the problem is, such as `plan.tasks[3].name`; empty if it concerns the whole."""
    located = re.search(_PATH, problem)
    return located["path"].lstrip(".") if located else ""


def _explained_value(problem: str, subject: str, whole: str, shown: str | None) -> str:
    if match := re.match(_BOUND, problem):
        one, many = ("character", "characters") if match["kind"] == "str" else ("entry", "entries")
        return f"{subject} must have {_SIGNS[match['sign']]} {match['bound']} {one if match['bound'] == '1' else many}"
    if match := re.match(_PATTERN, problem):
        return f"{subject} must match {re.sub(_PYTHON_END, '$', match['pattern'])}"
    if match := re.match(_VALUE, problem):
        return f"{subject} must be {_SIGNS[match['sign']]} {match['bound']}"
    if match := re.match(_TYPE, problem):
        wanted = " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in match["want"].split("|"))
        return f"{subject} must be {wanted}, not {shown or _KINDS.get(match['got'], match['got'])}"
    text = re.sub(_PATH, "", problem)
    return text[:1].lower() + text[1:] if subject == whole else f"{subject}: {text[:1].lower()}{text[1:]}"


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
