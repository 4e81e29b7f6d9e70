"""A team's values in the store: one set per repository, each change of it one event. Also, how a plan's tasks declare
that they affect them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.values.records import ValueSet
from handrail.domain.values.scores import Impact, Values
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams
from handrail.kernel.nearest import did_you_mean
from handrail.kernel.query import where
from handrail.kernel.records import UnitOfWork

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
