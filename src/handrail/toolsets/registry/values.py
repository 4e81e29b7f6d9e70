"""Toolset `values`: what a team stands for, and whether a plan violates it. The arithmetic is in
`domain/values/value_sets.py`.

A task says what it does to values in its context: `task_set_plan` with
`context: {"values": [{"value": "privacy", "effect": "risks", "severity": 0.6, "why": "logs addresses"}]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.reply_size import within
from handrail.domain.values.value_sets import (
    Account,
    Contribution,
    Impact,
    Relationship,
    Score,
    Share,
    Value,
    Values,
    ValueSetVersion,
    declared_by,
    keep_values,
    score,
    values_at,
)
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidParams, RunNotFound
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.vocabulary import VALUES

ROOM = 2_800
"""Bytes for each list in a reply."""
NODES = 5
"""How many parts of a plan are named for one violation."""
NONE_SET = "no values are stated here: values_set states them"

Impacts = Annotated[list[Impact], Meta(max_length=500)]


class SetValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All values of the team: they take the place of what was stated before."""

    values: Annotated[list[Value], Meta(max_length=64)]
    relationships: Annotated[list[Relationship], Meta(max_length=256)] = []
    default_threshold: Annotated[Share, Meta(description="The score that something must have")] = 0.6


class ValuesKept(msgspec.Struct, frozen=True):
    """The set that holds now."""

    version: int
    changed: bool
    values: int
    relationships: int
    default_threshold: float
    set_by: str | None
    updated_at: int | None


class ScoreValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What something does to values."""

    impacts: Impacts
    threshold: Share | UnsetType = UNSET


class Scored(msgspec.Struct, frozen=True, omit_defaults=True):
    """How well it agrees with the values, from 0 to 1. It is allowed where that is enough and nothing is violated."""

    score: float
    threshold: float
    allowed: bool
    violations: tuple[dict[str, Any], ...]
    values: tuple[dict[str, Any], ...]
    """Those that it touches, the least satisfied first."""
    values_total: int
    version: int
    """Of the set of values; 0 where none was ever stated."""
    hint: str | None = None


class ValueCandidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several ways."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    impacts: Impacts


class FilterValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ways to choose between."""

    candidates: Annotated[list[ValueCandidate], Meta(min_length=1, max_length=50)]
    threshold: Share | UnsetType = UNSET


class Filtered(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which of them agree with the values, the best first."""

    allowed: tuple[str, ...]
    threshold: float
    candidates: tuple[dict[str, Any], ...]
    """All of them, the best first, with what speaks against each."""
    version: int
    hint: str | None = None


class ExplainValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run's plan, impacts, or both; with neither, the values themselves are shown."""

    run_id: Annotated[str, Meta(description="What its tasks declare in context.values is weighed")] | None = None
    impacts: Impacts = []
    threshold: Share | UnsetType = UNSET


class Explained(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Which part of a plan breaks which value, and what can be done about it."""

    summary: str
    score: float
    threshold: float
    allowed: bool
    violations: tuple[dict[str, Any], ...]
    violations_total: int
    impacts: int
    version: int
    values: tuple[dict[str, Any], ...] | None = None
    """The values themselves, where nothing was given to be weighed."""
    unreadable: tuple[str, ...] = ()
    """Tasks whose context.values is no list of impacts."""


def values_set(call: Call, request: SetValues) -> ValuesKept:
    wanted = Values(
        values=request.values, relationships=request.relationships, default_threshold=request.default_threshold
    )
    kept, changed = keep_values(call.work, _repository(call), wanted)
    return ValuesKept(
        kept.version,
        changed,
        len(wanted.values),
        len(wanted.relationships),
        wanted.default_threshold,
        kept.set_by,
        kept.updated_at,
    )


def values_score(call: Call, request: ScoreValues) -> Scored:
    kept = values_at(call.work, _repository(call))
    found = score(kept.values, request.impacts, _unless_unset(request.threshold))
    touched = sorted(
        (account for account in found.accounts if account.contributions),
        key=lambda account: (account.satisfaction, account.value.id),
    )
    return Scored(
        _round(found.score),
        found.threshold,
        found.is_allowed,
        tuple(within(_violations(found, kept, {}), ROOM)),
        tuple(within([_shown(account) for account in touched], ROOM)),
        len(touched),
        kept.version,
        None if kept.version else NONE_SET,
    )


def values_filter(call: Call, request: FilterValues) -> Filtered:
    ids = [candidate.id for candidate in request.candidates]
    if len(set(ids)) < len(ids):
        raise InvalidParams("two candidates have the same id", hint="give each an id of its own")
    kept = values_at(call.work, _repository(call))
    threshold = _unless_unset(request.threshold)
    found = {one.id: score(kept.values, one.impacts, threshold) for one in request.candidates}
    ranked = sorted(ids, key=lambda key: (not found[key].is_allowed, -found[key].score, ids.index(key)))
    shown = [
        {
            "id": key,
            "allowed": found[key].is_allowed,
            "score": _round(found[key].score),
            "violations": [*(one.value.id for one in found[key].violated), *found[key].unknown][:NODES],
        }
        for key in ranked
    ]
    return Filtered(
        tuple(key for key in ranked if found[key].is_allowed),
        kept.values.default_threshold if threshold is None else threshold,
        tuple(within(shown, ROOM)),
        kept.version,
        None if kept.version else NONE_SET,
    )


def values_explain(call: Call, request: ExplainValues) -> Explained:
    impacts, names, unreadable, repository = list(request.impacts), {}, [], _repository(call)
    if request.run_id is not None:
        workflow = find_workflow(call.work, request.run_id)
        declared = declared_by(call.work, workflow)
        impacts, names, unreadable = [*declared.impacts, *impacts], declared.names, declared.unreadable
        repository = _repository(call, workflow)
    kept = values_at(call.work, repository)
    found = score(kept.values, impacts, _unless_unset(request.threshold))
    violations = _violations(found, kept, names)
    nothing = request.run_id is None and not request.impacts
    return Explained(
        summary=_summary(found, kept, violations, len(impacts)),
        score=_round(found.score),
        threshold=found.threshold,
        allowed=found.is_allowed,
        violations=tuple(within(violations, 2 * ROOM)),
        violations_total=len(violations),
        impacts=len(impacts),
        version=kept.version,
        values=tuple(within([msgspec.to_builtins(one) for one in kept.values.values], 2 * ROOM)) if nothing else None,
        unreadable=tuple(unreadable[:NODES]),
    )


def _repository(call: Call, workflow: Workflow | None = None) -> str:
    """The repository whose values apply: a store of its own has only one."""
    if not call.here.shared:
        return ""
    return (workflow.repository_path if workflow is not None else None) or call.here.repository


def _unless_unset(threshold: float | UnsetType) -> float | None:
    return None if threshold is UNSET else threshold


def _round(number: float) -> float:
    return round(number, 4)


def _shown(account: Account) -> dict[str, Any]:
    return {
        "value": account.value.id,
        "weight": account.value.weight,
        "support": _round(account.support),
        "risk": _round(account.risk),
        "satisfaction": _round(account.satisfaction),
        "violated": account.is_violated,
    }


def _violations(found: Score, kept: ValueSetVersion, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """What is violated, worst first, with the parts that do it; then impacts on values that nobody has stated."""
    shown = [_violation(account, names) for account in found.violated]
    known = [value.id for value in kept.values.values]
    for key, impacts in found.unknown.items():
        hint = f"nobody stated this value{did_you_mean(key, known)}; values_set states it" if known else NONE_SET
        parts = [_shown_contribution(Contribution(impact, impact.severity, True), names) for impact in impacts[:NODES]]
        shown.append({"value": key, "severity": 1.0, "unknown": True, "nodes": parts, "hint": hint})
    return shown


def _violation(account: Account, names: Mapping[str, str]) -> dict[str, Any]:
    risks = sorted((one for one in account.contributions if one.is_risk), key=lambda one: -one.amount)
    primary = account.primary
    assert primary is not None, "what is violated is at risk"
    shown: dict[str, Any] = {"value": account.value.id}
    if account.value.label:
        shown["label"] = account.value.label
    return {
        **shown,
        "severity": _round(account.severity),
        "tolerance": account.value.tolerance,
        "primary_contributor": _shown_contribution(primary, names),
        "nodes": [_shown_contribution(one, names) for one in risks[:NODES]],
        "nodes_total": len(risks),
        "hint": _hint(account, primary, names),
    }


def _shown_contribution(one: Contribution, names: Mapping[str, str]) -> dict[str, Any]:
    """A part of a plan that puts a value at risk."""
    shown: dict[str, Any] = {"node": one.impact.part or None, "amount": _round(one.amount)}
    if one.impact.part in names:
        shown["label"] = names[one.impact.part][:80]
    if one.over:
        shown["over"] = one.over
    if one.impact.why:
        shown["why"] = one.impact.why[:160]
    return shown


def _hint(account: Account, primary: Contribution, names: Mapping[str, str]) -> str:
    """What would bring the value back within its tolerance."""
    excess = account.residual - account.value.tolerance * account.value.weight
    part = primary.impact.part
    who = f'"{names.get(part, part)[:80]}"' if part else f"the impact on {primary.impact.value}"
    over = f" (through {primary.over})" if primary.over else ""
    enough = "would be enough" if primary.amount >= excess else "is where to begin"
    return f"changing {who}{over} {enough}: {_round(excess)} of risk less, or as much support more, for this value"


def _summary(found: Score, kept: ValueSetVersion, violations: Sequence[Mapping[str, Any]], impacts: int) -> str:
    if not kept.version:
        return f"Nothing can be weighed: {NONE_SET}."
    if not impacts:
        return f"{len(kept.values.values)} values hold here; nothing was said of what this does to them."
    if violations:
        named = ", ".join(str(one.get("label") or one["value"]) for one in violations[:3])
        more = f" and {len(violations) - 3} more" if len(violations) > 3 else ""
        return f"It breaks {named}{more}: score {_round(found.score)}, needed {found.threshold}."
    verdict = "agrees with" if found.is_allowed else "breaks no single one of, and on the whole falls short of,"
    return f"It {verdict} the values: score {_round(found.score)}, needed {found.threshold}."


_STATED = (
    (
        "values_set",
        {
            "values": [
                {"id": "privacy", "label": "Privacy", "weight": 2, "tolerance": 0.2},
                {"id": "speed"},
                {"id": "clarity"},
            ],
            "relationships": [{"from": "speed", "to": "clarity", "kind": "conflicts"}],
        },
    ),
)
_RISK = {"value": "privacy", "effect": "risks", "severity": 0.5, "task": "logging", "why": "logs addresses"}
_GOOD = {"value": "privacy", "effect": "supports"}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="values_set",
        toolset=VALUES,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Sets the team's values, replacing earlier ones",
        request=SetValues,
        response=ValuesKept,
        handler=values_set,
        examples=(
            Example(
                title="values and what they do to each other",
                request=_STATED[0][1],
                response={"version": 1, "changed": True, "values": 3, "relationships": 1},
            ),
            Example(
                title="the same again changes nothing",
                given=_STATED,
                request=_STATED[0][1],
                response={"version": 1, "changed": False},
            ),
        ),
    ),
    Operation(
        name="values_score",
        toolset=VALUES,
        effect=Effect.READ,
        stored=True,
        summary="Weighs impacts against the team's values",
        request=ScoreValues,
        response=Scored,
        handler=values_score,
        examples=(
            Example(
                title="more risk than is borne",
                given=_STATED,
                request={"impacts": [_RISK]},
                response={
                    "score": 0.75,
                    "threshold": 0.6,
                    "allowed": False,
                    "violations": [{"value": "privacy", "severity": 0.5, "primary_contributor": {"node": "logging"}}],
                },
            ),
            Example(
                title="support makes up for risk",
                given=_STATED,
                request={"impacts": [_RISK, _GOOD]},
                response={"score": 1.0, "allowed": True, "violations": []},
            ),
        ),
    ),
    Operation(
        name="values_filter",
        toolset=VALUES,
        effect=Effect.READ,
        stored=True,
        summary="Ranks ways to do something by the team's values",
        request=FilterValues,
        response=Filtered,
        handler=values_filter,
        examples=(
            Example(
                title="one of two agrees",
                given=_STATED,
                request={"candidates": [{"id": "log all", "impacts": [_RISK]}, {"id": "hash", "impacts": [_GOOD]}]},
                response={
                    "allowed": ["hash"],
                    "candidates": [{"id": "hash"}, {"id": "log all", "violations": ["privacy"]}],
                },
            ),
        ),
    ),
    Operation(
        name="values_explain",
        toolset=VALUES,
        effect=Effect.READ,
        stored=True,
        summary="Shows whether a plan breaks one of the team's values, and which part does",
        request=ExplainValues,
        response=Explained,
        handler=values_explain,
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="the part that breaks a value",
                given=_STATED,
                request={"impacts": [_RISK, {"value": "privcy", "effect": "supports"}]},
                response={
                    "allowed": False,
                    "violations": [
                        {"value": "privacy", "nodes": [{"node": "logging", "why": "logs addresses"}]},
                        {"value": "privcy", "unknown": True, "hint": "nobody stated this value...privacy..."},
                    ],
                },
            ),
            Example(
                title="the values themselves",
                given=_STATED,
                request={},
                response={"allowed": True, "values": [{"id": "privacy", "weight": 2.0}, {"id": "speed"}, {}]},
            ),
            Example(title="an unknown run is refused", request={"run_id": "wf_9"}, refused=RunNotFound),
        ),
    ),
)
