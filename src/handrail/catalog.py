"""The whole tool surface, in listing order: the one place to see it.

Toolsets that a source document names and this version does not have are listed too, so that asking for one gets an
answer rather than a guess.
"""

from __future__ import annotations

from typing import Any

from handrail.operation import Operation, Toolset
from handrail.toolsets import (
    agent,
    blackboard,
    cancellation,
    checkpoint,
    children,
    claims,
    context,
    dynamic,
    events,
    guide,
    idempotency,
    introspection,
    journal,
    message,
    orchestration,
    pipeline,
    replanning,
    repository,
    reservations,
    resources,
    task,
    template,
    workflow,
    workspace,
)

CATALOG: tuple[Operation[Any, Any], ...] = (
    *introspection.OPERATIONS,
    *guide.OPERATIONS,
    *journal.OPERATIONS,
    *workflow.OPERATIONS,
    *replanning.OPERATIONS,
    *task.OPERATIONS,
    *checkpoint.OPERATIONS,
    *context.OPERATIONS,
    *orchestration.OPERATIONS,
    *workspace.OPERATIONS,
    *reservations.OPERATIONS,
    *repository.OPERATIONS,
    *template.OPERATIONS,
    *agent.OPERATIONS,
    *claims.OPERATIONS,
    *message.OPERATIONS,
    *pipeline.OPERATIONS,
    *resources.OPERATIONS,
    *events.OPERATIONS,
    *blackboard.OPERATIONS,
    *idempotency.OPERATIONS,
    *cancellation.OPERATIONS,
    *children.OPERATIONS,
    *dynamic.OPERATIONS,
)

TOOLSETS: tuple[Toolset, ...] = (
    introspection.INTROSPECTION,
    guide.GUIDE,
    journal.JOURNAL,
    workflow.WORKFLOW,
    task.TASK,
    checkpoint.CHECKPOINT,
    context.CONTEXT,
    orchestration.ORCHESTRATION,
    workspace.WORKSPACE,
    repository.REPOSITORY,
    template.TEMPLATE,
    agent.AGENT,
    message.MESSAGE,
    pipeline.PIPELINE,
    resources.RESOURCES,
    events.EVENTS,
    blackboard.BLACKBOARD,
    idempotency.IDEMPOTENCY,
    cancellation.CANCELLATION,
    children.CHILDREN,
    dynamic.DYNAMIC,
)

ANNOUNCED: dict[str, tuple[str, ...]] = {
    "registry": (
        "tx",
        "bulk",
        "locks",
        "diff-patch",
        "plan-lifecycle",
        "values",
        "assist",
        "bt",
    ),
}
"""Toolsets of each document that are not in this version yet."""

PROFILES: dict[str, tuple[str, ...]] = {
    "solo": ("introspection", "guide", "journal", "context", "orchestration"),
    "team": ("introspection", "plan", "journal"),
    "forge": ("introspection", "pipeline", "journal"),
    "orchestrator": ("registry", "plan"),
    "workflowlookup": ("guide",),
    "all": ("all",),
}
"""Named bundles of toolsets or document families; `mcp_*` is on in every one but `workflowlookup`, which is exactly
guide.md."""

ENABLE_FLAGS: dict[str, str] = {
    "resources": "resources",
    "mcp-introspection": "introspection",
    "events-bus": "events",
    "cancellation": "cancellation",
    "tx": "tx",
    "bulk": "bulk",
    "idempotency": "idempotency",
    "locks": "locks",
    "diff-patch": "diff-patch",
    "plan-lifecycle": "plan-lifecycle",
    "child-ops-fine": "children",
    "values-explain": "values",
    "assist": "assist",
}
"""registry.md's thirteen `--enable-…` flags and the toolset each adds."""
