"""Toolset `assist`: facts to keep and find, plans made from earlier work, and what led to an outcome.

Small on purpose: no model and no guessing, only what the store knows, with its sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.knowledge.facts import THOUSAND, FactPattern, Inserted, StatedFact, find, insert
from handrail.domain.knowledge.records import Fact
from handrail.domain.reply_size import bounds, within
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.late import late_module
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.vocabulary import ASSIST

if TYPE_CHECKING:
    from handrail.toolsets.registry import assist_answers
else:
    assist_answers = late_module("handrail.toolsets.registry.assist_answers")
    assist_answers = late_module("handrail.toolsets.registry.assist_answers")

FACTS = 50
DEPTH = 8

Word = Annotated[str, Meta(min_length=1, max_length=400)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Triple(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fact."""

    subject: Word
    predicate: Word
    object: Word
    source: Annotated[str, Meta(max_length=200)] | None = None
    confidence: Share = 1.0
    provenance: dict[str, Any] = {}


class InsertFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts to keep."""

    triples: Annotated[
        list[Triple],
        Meta(
            min_length=1,
            max_length=256,
            description="Plans: (plan, includes, task), (task, depends_on, task), (task, label | duration, …)",
        ),
    ]


class InsertedFacts(msgspec.Struct, frozen=True):
    """What became of them: a fact that is known already is no second one."""

    inserted: int
    updated: int
    unchanged: int


class QueryFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which facts; what is left out may be anything."""

    subject: Word | None = None
    predicate: Word | None = None
    object: Word | None = None
    min_confidence: Share = 0.0
    order: Literal["subject", "confidence", "newest"] = "subject"
    limit: Annotated[int, Meta(ge=1, le=500)] | UnsetType = UNSET
    after: Annotated[int, Meta(ge=0, le=2**53, description="next of the page before")] = 0


class FactPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts, and where the next page begins."""

    facts: tuple[dict[str, Any], ...]
    total: int
    next: int | None = None


class SuggestContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What matters for a suggestion."""

    preferred_sources: Annotated[list[Word], Meta(max_length=20, description="Workflow ids or sources of facts")] = []
    exclude_tasks: Annotated[list[Word], Meta(max_length=200)] = []
    max_fragments: Annotated[int, Meta(ge=1, le=5)] = 3


class SuggestPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done."""

    goal: Annotated[str, Meta(min_length=1, max_length=4000)]
    context: SuggestContext = SuggestContext()


class SuggestedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Fragments of plans, the best first. `tasks` of one are as `workflow_set_plan` takes them."""

    summary: str
    fragments: tuple[dict[str, Any], ...]
    rationale: tuple[str, ...]
    coverage: dict[str, Any]
    sources: tuple[dict[str, Any], ...]
    preferred_sources_applied: tuple[str, ...]
    preferred_sources_ignored: tuple[str, ...]


class ExplainOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which outcome, and how far back."""

    outcome_id: Annotated[str, Meta(max_length=200, description="A task, workflow, gate, or event's seq")]
    max_depth: Annotated[int, Meta(ge=1, le=32)] = DEPTH


class ExplainedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What led to it. Edges lead from a cause to what it made possible, by `seq`."""

    summary: str
    outcome: dict[str, Any]
    ancestors: tuple[dict[str, Any], ...]
    """In the order they happened; where not all fit, those nearest to the outcome."""
    ancestors_total: int
    edges: tuple[dict[str, Any], ...]
    whole: bool
    """False where more lies behind it than is told."""


def kg_insert(call: Call, request: InsertFacts) -> InsertedFacts:
    said = [
        StatedFact(one.subject, one.predicate, one.object, one.source, one.confidence, one.provenance)
        for one in request.triples
    ]
    done: Inserted = insert(call.work, call.here.only, said)
    return InsertedFacts(*done)


def kg_query(call: Call, request: QueryFacts) -> FactPage:
    limit, room = bounds(request.limit, FACTS)
    pattern = FactPattern(request.subject, request.predicate, request.object, request.min_confidence)
    found, total = find(call.work, call.here.only, pattern, request.order, limit, request.after)
    shown = within([_shown(fact) for fact in found], room)
    following = request.after + len(shown)
    return FactPage(tuple(shown), total, following if following < total else None)


def kg_suggest_plan(call: Call, request: SuggestPlan) -> SuggestedPlan:
    context = request.context
    found = assist_answers.suggest(
        call.work,
        call.here.only,
        request.goal,
        tuple(context.preferred_sources),
        tuple(context.exclude_tasks),
        context.max_fragments,
    )
    return SuggestedPlan(**found)


def causal_explain(call: Call, request: ExplainOutcome) -> ExplainedOutcome:
    return ExplainedOutcome(**assist_answers.explain(call.work, request.outcome_id, request.max_depth))


def _shown(fact: Fact) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "confidence": fact.confidence / THOUSAND,
        "by": fact.created_by,
        "updated_at": fact.updated_at,
    }
    return shown | {name: value for name, value in (("source", fact.source), *fact.said.items()) if value}


_DONE = (
    *PLANNED,
    ("task_update_status", {"id": "task_1", "status": "in_progress"}),
    ("task_update_status", {"id": "task_1", "status": "failed", "error": "The proxy hangs up"}),
    ("task_update_status", {"id": "task_1", "status": "in_progress"}),
    ("task_update_status", {"id": "task_1", "status": "completed", "outcome": "Retries five times"}),
    ("task_update_status", {"id": "task_2", "status": "in_progress"}),
    ("task_update_status", {"id": "task_2", "status": "completed", "outcome": "Tested"}),
    ("workflow_update_status", {"id": "wf_1", "status": "completed"}),
)
_TRIPLES: list[dict[str, Any]] = [
    {"subject": "release", "predicate": "includes", "object": "build", "source": "handbook"},
    {"subject": "release", "predicate": "includes", "object": "publish", "source": "handbook"},
    {"subject": "publish", "predicate": "depends_on", "object": "build", "confidence": 0.9},
]
_KNOWN = (("kg_insert", {"triples": _TRIPLES}),)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="kg_insert",
        toolset=ASSIST,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Stores facts: subject, predicate, object, and their source",
        request=InsertFacts,
        response=InsertedFacts,
        handler=kg_insert,
        examples=(
            Example(
                title="facts about a plan",
                request={"triples": _TRIPLES},
                response={"inserted": 3, "updated": 0, "unchanged": 0},
            ),
            Example(
                title="what is known is no second fact",
                given=_KNOWN,
                request={"triples": [_TRIPLES[0], {**_TRIPLES[2], "confidence": 1.0}]},
                response={"inserted": 0, "updated": 1, "unchanged": 1},
            ),
        ),
    ),
    Operation(
        name="kg_query",
        toolset=ASSIST,
        effect=Effect.READ,
        stored=True,
        summary="Finds facts by subject, predicate or object",
        request=QueryFacts,
        response=FactPage,
        handler=kg_query,
        examples=(
            Example(
                title="what a plan includes",
                given=_KNOWN,
                request={"subject": "release", "predicate": "includes"},
                response={"facts": [{"object": "build", "source": "handbook"}, {"object": "publish"}], "total": 2},
            ),
            Example(
                title="only what is certain",
                given=_KNOWN,
                request={"min_confidence": 0.95, "limit": 1},
                response={"facts": [{"object": "build"}], "total": 2, "next": 1},
            ),
        ),
    ),
    Operation(
        name="kg_suggest_plan",
        toolset=ASSIST,
        effect=Effect.READ,
        stored=True,
        summary="Suggests a plan for a goal from finished workflows and facts, with reasons",
        request=SuggestPlan,
        response=SuggestedPlan,
        handler=kg_suggest_plan,
        examples=(
            Example(
                title="as it was done before",
                given=_DONE,
                request={"goal": "Retry imports when the connection is lost"},
                response={
                    "fragments": [
                        {
                            "source": "wf_1",
                            "tasks": [{"name": "wrap"}, {"name": "test", "depends_on": ["wrap"]}],
                            "notes": [{"task": "wrap", "attempts": 2}, {"task": "test"}],
                        }
                    ],
                    "coverage": {"total_tasks": 2, "suggested_tasks": 2},
                },
            ),
            Example(
                title="as facts describe it",
                given=_KNOWN,
                request={"goal": "release", "context": {"preferred_sources": ["handbook", "nobody"]}},
                response={
                    "fragments": [{"source": "facts:release", "tasks": [{"name": "build"}, {"name": "publish"}]}],
                    "preferred_sources_applied": ["handbook"],
                    "preferred_sources_ignored": ["nobody"],
                },
            ),
        ),
    ),
    Operation(
        name="causal_explain",
        toolset=ASSIST,
        effect=Effect.READ,
        stored=True,
        summary="Explains what led to an outcome, event by event",
        request=ExplainOutcome,
        response=ExplainedOutcome,
        handler=causal_explain,
        refusals=(ResourceNotFound,),
        examples=(
            Example(
                title="what a task's end came from",
                given=_DONE,
                request={"outcome_id": "task_2"},
                response={
                    "summary": '"test" was completed by ...: Tested; 7 events led to it (1 failure), the first of '
                    "them: The workflow was created by ....",
                    "outcome": {"kind": "task.completed", "task_id": "task_2"},
                    "ancestors": [
                        {"kind": "workflow.created"},
                        {"kind": "workflow.planned"},
                        {"kind": "task.in_progress", "task_id": "task_1"},
                        {"kind": "task.failed", "sentence": '"wrap" was reported failed by ...: The proxy hangs up'},
                        {"kind": "task.in_progress"},
                        {"kind": "task.completed"},
                        {"kind": "task.in_progress", "task_id": "task_2"},
                    ],
                    "whole": True,
                },
            ),
            Example(title="nothing has that id", request={"outcome_id": "task_9"}, refused=ResourceNotFound),
        ),
    ),
)
