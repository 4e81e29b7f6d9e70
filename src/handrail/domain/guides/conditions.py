"""What a condition means: evaluated, and in words. It knows variables, not steps, and reads only `context`.

`holds` states the rules of evaluation, which the docs cite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from handrail.domain.guides.definition import Condition, kind_of
from handrail.kernel.errors import InvalidParams
from handrail.kernel.json_values import same_json

VALUE_SHOWN_MAX = 80
"""Characters of a value in a sentence."""

_MISSING: Any = object()
_NUMBER_WORDS = {"gt": "is more than", "gte": "is at least", "lt": "is less than", "lte": "is at most"}


class Incomparable(Exception):  # noqa: N818 - it describes the context, it is not a failure of the program
    """A comparison needs a number but the variable holds something else."""

    def __init__(self, variable: str, value: Any, operator: str, operand: float) -> None:
        self.variable = variable
        self.value = value
        self.operator = operator
        self.operand = operand
        super().__init__(
            f'variable "{variable}" is {value_text(value)} ({kind_of(value)}) and cannot be compared by {operator} '
            f"with {value_text(operand)}"
        )

    def as_refusal(self, asker: str) -> InvalidParams:
        """The same as a refusal; `asker` names the owner of the condition, as in `step "plan"`."""
        return InvalidParams(
            f"The condition of {asker} cannot be read: {self}.",
            hint=f'Give "{self.variable}" a number in context, or leave it out.',
            variable=self.variable,
            value=value_text(self.value),
            operator=self.operator,
            operand=self.operand,
        )


def holds(condition: Condition | None, context: Mapping[str, Any]) -> bool:
    """Whether the condition holds in this context. Raises `Incomparable`.

    * No condition, or an empty one, holds. Everything one condition object states must hold: operators can be combined.
    * `var` is a literal top-level key of the context; `a.b` is the key "a.b", not a path.
    * `var` without an operator requires a truthy value: false, null, 0, "" and a missing variable do not count as true,
      [] and {} do.
    * A comparison with a missing variable does not hold, except `not_equals`, which does. Null is a value, not missing.
    * Equality is that of JSON: 1 equals 1.0, true is not 1, lists and objects compare deeply, nothing is converted.
    * `gt`, `gte`, `lt`, `lte` compare numbers. A value that is present but not a number (booleans are not) raises.
    * `and: []` holds, `or: []` does not.
    * Evaluation goes in the order equals, not_equals, gt, gte, lt, lte, and, or, not, entries in file order, and stops
      as soon as the answer is known, so an earlier entry of `and` can guard a later one.
    """
    if condition is None:
        return True
    return (
        (condition.var is UNSET or _variable_holds(condition, condition.var, context))
        and (condition.and_ is UNSET or all(holds(inner, context) for inner in condition.and_))
        and (condition.or_ is UNSET or any(holds(inner, context) for inner in condition.or_))
        and (condition.not_ is UNSET or not holds(condition.not_, context))
    )


def variables(condition: Condition | None) -> tuple[str, ...]:
    """The variables the condition refers to, each once, in evaluation order."""
    return tuple(dict.fromkeys(_variables(condition)))


def describe(condition: Condition | None) -> str:
    """The condition in words: `complexity equals "large" and files is more than 3`."""
    return _joined(_clauses(condition)) if condition is not None else "always"


def value_text(value: Any) -> str:
    """A value as JSON, cut to a length that fits a sentence."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[:VALUE_SHOWN_MAX]}…"


def _variable_holds(condition: Condition, variable: str, context: Mapping[str, Any]) -> bool:
    value = context.get(variable, _MISSING)
    compared = False
    if condition.equals is not UNSET:
        compared = True
        if value is _MISSING or not same_json(value, condition.equals):
            return False
    if condition.not_equals is not UNSET:
        compared = True
        if value is not _MISSING and same_json(value, condition.not_equals):
            return False
    for operator in _NUMBER_WORDS:
        operand = getattr(condition, operator)
        if operand is not UNSET:
            compared = True
            if value is _MISSING or not _ordered(variable, value, operator, operand):
                return False
    return compared or _counts_as_true(value)


def _counts_as_true(value: Any) -> bool:
    if value is _MISSING or value is None:
        return False
    return bool(value) if isinstance(value, bool | int | float | str) else True


def _ordered(variable: str, value: Any, operator: str, operand: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Incomparable(variable, value, operator, operand)
    if operator == "gt":
        return value > operand
    if operator == "gte":
        return value >= operand
    return value < operand if operator == "lt" else value <= operand


def _variables(condition: Condition | None) -> Iterator[str]:
    if condition is None:
        return
    if condition.var is not UNSET:
        yield condition.var
    for inner in (condition.and_, condition.or_):
        for entry in () if inner is UNSET else inner:
            yield from _variables(entry)
    if condition.not_ is not UNSET:
        yield from _variables(condition.not_)


def _clauses(condition: Condition) -> list[tuple[str, bool]]:
    """The clauses that must all hold, each as a phrase, and whether it needs brackets next to others."""
    found: list[tuple[str, bool]] = []
    if condition.var is not UNSET:
        found.extend((comparison, False) for comparison in _comparisons(condition, condition.var))
    if condition.and_ is not UNSET:
        found.extend(clause for inner in condition.and_ for clause in _clauses(inner))
    if condition.or_ is not UNSET:
        found.append((_alternatives(condition.or_), len(condition.or_) > 1))
    if condition.not_ is not UNSET:
        found.append((f"not ({describe(condition.not_)})", False))
    return found


def _comparisons(condition: Condition, variable: str) -> list[str]:
    found: list[str] = []
    if condition.equals is not UNSET:
        found.append(f"{variable} equals {value_text(condition.equals)}")
    if condition.not_equals is not UNSET:
        found.append(f"{variable} does not equal {value_text(condition.not_equals)}")
    for operator, words in _NUMBER_WORDS.items():
        operand = getattr(condition, operator)
        if operand is not UNSET:
            found.append(f"{variable} {words} {value_text(operand)}")
    return found or [f'{variable} is set (and not false, null, 0 or "")']


def _alternatives(conditions: tuple[Condition, ...]) -> str:
    spoken = [_clauses(inner) for inner in conditions]
    return " or ".join(f"({_joined(one)})" if len(one) > 1 else _joined(one) for one in spoken) or "never"


def _joined(clauses: list[tuple[str, bool]]) -> str:
    if len(clauses) == 1:
        return clauses[0][0]
    return " and ".join(f"({phrase})" if compound else phrase for phrase, compound in clauses) or "always"
