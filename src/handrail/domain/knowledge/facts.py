"""Facts: each is stored once, however often it is stated, and found by any of its parts. One unit of work each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from handrail.domain.knowledge.records import Fact
from handrail.kernel.errors import InvalidParams
from handrail.kernel.late import late_module
from handrail.kernel.records import Query, UnitOfWork

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")

THOUSAND = 1000
PROVENANCE = 2_000
"""The most bytes of a fact's provenance."""
ORDERS: dict[str, tuple[str, ...]] = {
    "subject": ("subject", "predicate", "object"),
    "confidence": ("-confidence", "subject", "predicate", "object"),
    "newest": ("-updated_at", "subject", "predicate", "object"),
}
Order = Literal["subject", "confidence", "newest"]


class StatedFact(NamedTuple):
    """A fact as it was stated."""

    subject: str
    predicate: str
    object: str
    source: str | None = None
    confidence: float = 1.0
    provenance: Mapping[str, Any] = MappingProxyType({})


class Inserted(NamedTuple):
    """The result of inserting facts."""

    inserted: int
    updated: int
    unchanged: int


class FactPattern(NamedTuple):
    """Which facts are wanted; None matches anything."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    min_confidence: float = 0.0


def fact_id(repository: str | None, subject: str, predicate: str, said: str) -> str:
    """The id of a statement: the same for the same words in the same repository."""
    words = msgspec.json.encode([repository, subject, predicate, said])
    return f"fact_{hashlib.sha256(words).hexdigest()[:24]}"


def insert(unit: UnitOfWork, repository: str | None, facts: Sequence[StatedFact]) -> Inserted:
    """Stores facts. One that is already known is updated to its latest source, confidence and provenance."""
    wanted = {fact_id(repository, one.subject, one.predicate, one.object): one for one in facts}
    puts: list[Fact] = []
    new = 0
    for key, one in wanted.items():
        if len(msgspec.json.encode(dict(one.provenance))) > PROVENANCE:
            raise InvalidParams(
                f"the provenance of ({one.subject}, {one.predicate}, {one.object}) is too long",
                hint=f"{PROVENANCE} bytes at the most: name a file or an address",
            )
        there = unit.get(Fact, key)
        fact = Fact(
            id=key,
            subject=one.subject,
            predicate=one.predicate,
            object=one.object,
            source=one.source,
            confidence=round(one.confidence * THOUSAND),
            said={"provenance": dict(one.provenance)} if one.provenance else {},
            repository_path=repository,
            created_by=there.created_by if there is not None else unit.actor.name,
            created_at=there.created_at if there is not None else unit.now_ms(),
            updated_at=unit.now_ms(),
        )
        if there is not None and msgspec.structs.replace(there, updated_at=fact.updated_at) == fact:
            continue
        puts.append(fact)
        new += there is None
    if puts:
        unit.record("facts.inserted", *puts, data={"count": len(puts)})
    return Inserted(new, len(puts) - new, len(wanted) - len(puts))


def find(
    unit: UnitOfWork, repository: str | None, pattern: FactPattern, order: Order, limit: int, offset: int
) -> tuple[list[Fact], int]:
    """A page of the facts that match, and how many match in all."""
    conditions: list[tuple[str, Any]] = [
        (name, value) for name in ("subject", "predicate", "object") if (value := getattr(pattern, name)) is not None
    ]
    conditions.append(("repository_path", repository))
    if pattern.min_confidence > 0:
        conditions.append(("confidence >", round(pattern.min_confidence * THOUSAND) - 1))
    where = tuple(conditions)
    found = unit.select(Fact, Query(where, ORDERS[order], limit, offset))
    return found, unit.count(Fact, Query(where))
