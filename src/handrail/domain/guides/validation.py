"""Whether a step's output passes its criteria, and what to do if it does not.

Not the engines (they come in as a `Matcher`) and not the next step (`progress.py`). `check_output` states the rules,
which the docs cite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from handrail.domain.guides.conditions import Incomparable, holds, value_text
from handrail.domain.guides.definition import Branch, Composition, Matcher, Rule, Step


class Verdict(Struct, frozen=True):
    """The result: the message of every failing rule, and one next move for each."""

    valid: bool
    issues: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()


class _Outcome(Struct, frozen=True):
    """The result of one branch. `passed` is None if it was skipped."""

    branch: Rule | Composition
    passed: bool | None
    faults: tuple[str, ...] = ()
    """For a failed rule: what would fix the output."""
    inner: tuple[_Outcome, ...] = ()


def check_output(step: Step, output: str, context: Mapping[str, Any], matcher: Matcher) -> Verdict:
    """The verdict on `output`.

    * A list of rules passes if every rule does; so does `and`. `or` needs one to pass, `not` the opposite.
    * A rule whose condition does not hold in `context` is skipped, and a skipped branch decides nothing: `and` and `or`
      judge by the others and are skipped if none is left, `not` of a skipped branch is skipped. So a skipped
      alternative makes an `or` neither pass nor fail.
    * Without criteria, or with all of them skipped, every output passes that is not blank.
    """
    criteria = step.validation_criteria
    if isinstance(criteria, tuple):
        criteria = Composition(and_=criteria) if criteria else None
    try:
        outcome = _judged(criteria, output, context, matcher) if criteria is not None else None
    except Incomparable as problem:
        raise problem.as_refusal(f'a rule of step "{step.id}"') from None
    if outcome is None or outcome.passed is None:
        if output.strip():
            return Verdict(valid=True)
        return Verdict(valid=False, issues=("the output is blank",), suggestions=("write what this step produced",))
    if outcome.passed:
        return Verdict(valid=True)
    return Verdict(
        valid=False,
        issues=tuple(dict.fromkeys(_issues(outcome))),
        suggestions=tuple(dict.fromkeys(_moves(outcome, output, wanted=True))),
    )


def _judged(branch: Branch, output: str, context: Mapping[str, Any], matcher: Matcher) -> _Outcome:
    if isinstance(branch, Rule):
        if not holds(branch.condition, context):
            return _Outcome(branch, None)
        faults = tuple(_faults(branch, output, matcher))
        return _Outcome(branch, not faults, faults)
    inner = tuple(_judged(entry, output, context, matcher) for entry in _entries(branch))
    results = [one.passed for one in inner if one.passed is not None]
    if not results:
        return _Outcome(branch, None, inner=inner)
    if branch.not_ is not None:
        return _Outcome(branch, not results[0], inner=inner)
    return _Outcome(branch, all(results) if branch.and_ is not None else any(results), inner=inner)


def _entries(composition: Composition) -> tuple[Branch, ...]:
    if composition.not_ is not None:
        return (composition.not_,)
    return composition.and_ or composition.or_ or ()


def _faults(rule: Rule, output: str, matcher: Matcher) -> Iterator[str]:
    """What would fix the output according to this rule. Empty if it passes."""
    if rule.type == "contains" and (rule.value or "") not in output:
        yield f"include the text {value_text(rule.value)}"
    elif rule.type == "regex" and not matcher.matches(rule.pattern or "", rule.flags or "", output):
        yield f"make it match the pattern {_pattern_text(rule)}"
    elif rule.type == "length":
        if rule.min is not None and len(output) < rule.min:
            yield f"write at least {rule.min} characters (now {len(output)})"
        if rule.max is not None and len(output) > rule.max:
            yield f"write at most {rule.max} characters (now {len(output)})"
    elif rule.type == "schema":
        try:
            value = msgspec.json.decode(output)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            yield f"make it valid JSON: {_json_reason(error, output)}"
        else:
            errors = matcher.schema_errors(rule.schema or {}, value)
            if errors:
                yield f"make it fit the schema: {'; '.join(errors)}"


def _json_reason(error: Exception, output: str) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if output.lstrip().startswith("```"):
        return "send the JSON alone, without the ``` fence around it"
    if isinstance(error, UnicodeEncodeError):
        return "it has half a surrogate pair in it, which is no character"
    if "truncated" in str(error):
        return "it ends too early"
    return str(error).removeprefix("JSON is malformed: ")


def _issues(outcome: _Outcome) -> Iterator[str]:
    """Why an outcome failed: the message of every failing branch."""
    branch = outcome.branch
    if isinstance(branch, Rule):
        yield branch.message
    elif branch.not_ is not None:
        yield f"must not hold: {_branch_text(outcome.inner[0])}"
    elif branch.and_ is not None:
        for one in outcome.inner:
            if one.passed is False:
                yield from _issues(one)
    else:
        failed = [" and ".join(dict.fromkeys(_issues(one))) for one in outcome.inner if one.passed is False]
        yield failed[0] if len(failed) == 1 else f"at least one of these must hold: {_listed(failed)}"


def _branch_text(outcome: _Outcome) -> str:
    """A branch described by the messages of its rules, whatever their results."""
    branch = outcome.branch
    if isinstance(branch, Rule):
        return f'"{branch.message}"'
    parts = [_branch_text(one) for one in outcome.inner if one.passed is not None]
    if branch.not_ is not None:
        return f"not {parts[0]}"
    return parts[0] if len(parts) == 1 else f"({(' and ' if branch.and_ is not None else ' or ').join(parts)})"


def _listed(alternatives: list[str]) -> str:
    return "; ".join(f"({number}) {text}" for number, text in enumerate(alternatives, 1))


def _moves(outcome: _Outcome, output: str, *, wanted: bool) -> Iterator[str]:
    """One move for each rule without the wanted result; `not` inverts what is wanted."""
    if outcome.passed is None or outcome.passed is wanted:
        return
    branch = outcome.branch
    if isinstance(branch, Rule):
        yield "; ".join(outcome.faults) if wanted else _avoidance(branch, output)
        return
    for one in outcome.inner:
        yield from _moves(one, output, wanted=wanted is (branch.not_ is None))


def _avoidance(rule: Rule, output: str) -> str:
    if rule.type == "contains":
        return f"leave out the text {value_text(rule.value)}"
    if rule.type == "regex":
        return f"make sure that it does not match the pattern {_pattern_text(rule)}"
    if rule.type == "schema":
        return f'make sure that it does not fit the schema of "{rule.message}"'
    ways = []
    if rule.min:
        ways.append(f"fewer than {rule.min}")
    if rule.max is not None:
        ways.append(f"more than {rule.max}")
    return f"write {' or '.join(ways) or 'no'} characters (now {len(output)})"


def _pattern_text(rule: Rule) -> str:
    return f"/{rule.pattern}/{rule.flags or ''}"
