"""A team's values in the store: one set per repository, each change of it one event. Also, how a plan's tasks declare
that they affect them.

How well something agrees with a team's values: pure arithmetic over what it supports and what it puts at risk.

An impact counts as its value's weight times its severity. Values related to that value get a share of it, one step far;
a conflict turns support into risk and risk into support. The risk that remains after all support, in proportion to the
weight, is how far the value falls short of being satisfied; above the tolerance, the value is violated. A value that
nobody stated cannot be weighed and counts as violated, so that a misspelt one is never overlooked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from handrail.domain.values.records import ValueSet
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import UnitOfWork, where
from handrail.kernel.wording import did_you_mean

ValueId = Annotated[str, Meta(min_length=1, max_length=200)]
Share = Annotated[float, Meta(ge=0, le=1)]
Note = Annotated[str, Meta(max_length=400)]

RISKS, CONFLICTS = "risks", "conflicts"
_EXACT = 1e-9
"""Sums that differ by less than this are equal but for rounding."""


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something a team values."""

    id: ValueId
    label: Annotated[str, Meta(max_length=200)] = ""
    description: Note = ""
    weight: Annotated[float, Meta(ge=0, le=100)] = 1.0
    tolerance: Annotated[Share, Meta(description="Part of it that may be at risk")] = 0.35


class Relationship(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}
):
    """What is good or bad for one value is also good or bad for another, or the opposite."""

    source: ValueId
    target: ValueId
    kind: Literal["supports", "conflicts"]
    weight: Share = 0.5


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """A team's values."""

    values: list[Value] = []
    relationships: list[Relationship] = []
    default_threshold: Share = 0.6


class Impact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An effect on a value, and which part of a plan has it."""

    value: ValueId
    effect: Literal["supports", "risks"]
    severity: Share = 1.0
    task: Annotated[str, Meta(max_length=200, description="The part that does it, by id or name")] = ""
    node: Annotated[str, Meta(max_length=200)] = ""
    why: Note = ""

    @property
    def part(self) -> str:
        """The part of a plan that has the effect: a task, or a node of a graph."""
        return self.task or self.node


class Contribution(NamedTuple):
    """What one impact adds to a value's account."""

    impact: Impact
    amount: float
    is_risk: bool
    over: str = ""
    """The value it comes from, if it comes through a relationship."""


class Account(NamedTuple):
    """The support and risk of one value."""

    value: Value
    support: float
    risk: float
    contributions: Sequence[Contribution]

    @property
    def residual(self) -> float:
        """Risk that support does not offset."""
        left = self.risk - self.support
        return left if left > _EXACT else 0.0

    @property
    def severity(self) -> float:
        """The residual in proportion to the weight; a value without weight is never at risk."""
        return self.residual / self.value.weight if self.value.weight else 0.0

    @property
    def satisfaction(self) -> float:
        return 1.0 - min(1.0, self.severity)

    @property
    def is_violated(self) -> bool:
        return self.severity > self.value.tolerance + _EXACT

    @property
    def primary(self) -> Contribution | None:
        """The largest contribution to its risk; of equal ones, the first."""
        risks = [one for one in self.contributions if one.is_risk]
        return max(risks, key=lambda one: one.amount, default=None)


class Score(NamedTuple):
    """How well something agrees with all values."""

    score: float
    threshold: float
    accounts: Sequence[Account]
    unknown: Mapping[str, Sequence[Impact]]
    """Impacts on values that nobody stated."""

    @property
    def violated(self) -> list[Account]:
        """The worst first."""
        found = [account for account in self.accounts if account.is_violated]
        return sorted(found, key=lambda account: (-account.severity, -account.value.weight, account.value.id))

    @property
    def is_allowed(self) -> bool:
        return self.score >= self.threshold - _EXACT and not self.violated and not self.unknown


def score(values: Values, impacts: Sequence[Impact], threshold: float | None = None) -> Score:
    """Weighs the impacts. Without any the score is 1, as nothing is at risk."""
    by_id = {value.id: value for value in values.values}
    added: dict[str, list[Contribution]] = {value.id: [] for value in values.values}
    leading: dict[str, list[Relationship]] = {}
    for relationship in values.relationships:
        leading.setdefault(relationship.source, []).append(relationship)
    unknown: dict[str, list[Impact]] = {}
    for impact in impacts:
        value = by_id.get(impact.value)
        if value is None:
            unknown.setdefault(impact.value, []).append(impact)
            continue
        amount, is_risk = value.weight * impact.severity, impact.effect == RISKS
        added[value.id].append(Contribution(impact, amount, is_risk))
        for relationship in leading.get(value.id, ()):
            if relationship.target in added:
                turned = is_risk is not (relationship.kind == CONFLICTS)
                added[relationship.target].append(
                    Contribution(impact, amount * relationship.weight, turned, over=value.id)
                )
    accounts = [_account(value, added[value.id]) for value in values.values]
    whole = sum(account.value.weight for account in accounts)
    mean = sum(account.value.weight * account.satisfaction for account in accounts) / whole if whole else 1.0
    return Score(mean, values.default_threshold if threshold is None else threshold, accounts, unknown)


def _account(value: Value, contributions: Sequence[Contribution]) -> Account:
    support = sum(one.amount for one in contributions if not one.is_risk)
    risk = sum(one.amount for one in contributions if one.is_risk)
    return Account(value, support, risk, contributions)


for _kind in (Values, list[Impact]):  # here, because only one thread runs while this module loads
    msgspec.json.Decoder(_kind)

DECLARED = "values"
"""The member of a task's context that lists the task's impacts on values."""
SHOWN = 20


class ValueSetVersion(NamedTuple):
    """The current set, and how often it was changed; 0 if none was ever set."""

    values: Values
    version: int
    set_by: str | None = None
    updated_at: int | None = None


class DeclaredEffects(NamedTuple):
    """What the tasks of a plan declare about themselves."""

    impacts: list[Impact]
    """Each with the id of its task."""
    names: dict[str, str]
    """The tasks' names by id."""
    unreadable: list[str]
    """Names of tasks with declarations that could not be read."""


def values_at(unit: UnitOfWork, repository: str) -> ValueSetVersion:
    """The values of a repository; empty if none were ever stated."""
    kept = unit.get(ValueSet, repository)
    if kept is None:
        return ValueSetVersion(Values(), 0)
    return ValueSetVersion(msgspec.convert(kept.document, Values), kept.version, kept.set_by, kept.updated_at)


def keep_values(unit: UnitOfWork, repository: str, values: Values) -> tuple[ValueSetVersion, bool]:
    """Replaces the values of a repository. Setting the same ones again changes nothing."""
    check_values(values)
    before = values_at(unit, repository)
    if before.version and before.values == values:
        return before, False
    kept = ValueSet(
        id=repository,
        document=msgspec.to_builtins(values),
        version=before.version + 1,
        set_by=unit.actor.name,
        updated_at=unit.now_ms(),
    )
    unit.record("values.set", kept, data={"version": kept.version, "values": [one.id for one in values.values][:SHOWN]})
    return ValueSetVersion(values, kept.version, kept.set_by, kept.updated_at), True


def check_values(values: Values) -> None:
    """Raises InvalidParams for a duplicate id, and for a relationship that is dangling, to itself, or duplicate."""
    ids = [value.id for value in values.values]
    for key in ids:
        if ids.count(key) > 1:
            raise InvalidParams(f'two values are "{key}"', hint="give each an id of its own")
    seen: set[tuple[str, str]] = set()
    for relationship in values.relationships:
        ends = (relationship.source, relationship.target)
        for end in ends:
            if end not in ids:
                raise InvalidParams(
                    f'a relationship names "{end}", which is no value here{did_you_mean(end, ids)}',
                    hint=f"values: {', '.join(ids[:SHOWN])}",
                )
        if ends[0] == ends[1] or ends in seen:
            again = "is related to itself" if ends[0] == ends[1] else f'is related to "{ends[1]}" twice'
            raise InvalidParams(f'"{ends[0]}" {again}', hint="state each relationship between two values once")
        seen.add(ends)


def declared_by(unit: UnitOfWork, workflow: Workflow) -> DeclaredEffects:
    """The impacts on values that the tasks of a workflow declare in their contexts."""
    return declared_in(unit.select(Task, where(workflow_id=workflow.id)))


def declared_in(tasks: Sequence[Task]) -> DeclaredEffects:
    found = DeclaredEffects([], {task.id: task.name for task in tasks}, [])
    for task in tasks:
        told = task.context.get(DECLARED)
        if told is None:
            continue
        try:
            impacts = msgspec.convert(told, list[Impact])
        except msgspec.ValidationError:
            found.unreadable.append(task.name)
            continue
        found.impacts.extend(msgspec.structs.replace(impact, task=task.id) for impact in impacts)
    return found
