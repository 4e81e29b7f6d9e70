"""The whole tool surface, in listing order: the one place to see it.

A toolset's operations are loaded when it is turned on, so a server with five toolsets loads five. Toolsets that a
source document names but this version lacks are listed too, so that asking for one gets an answer rather than a guess.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from handrail.operation import Operation, Toolset
from handrail.toolsets import vocabulary

TOOLSETS: tuple[Toolset, ...] = (
    vocabulary.INTROSPECTION,
    vocabulary.GUIDE,
    vocabulary.JOURNAL,
    vocabulary.WORKFLOW,
    vocabulary.TASK,
    vocabulary.CHECKPOINT,
    vocabulary.CONTEXT,
    vocabulary.ORCHESTRATION,
    vocabulary.WORKSPACE,
    vocabulary.REPOSITORY,
    vocabulary.TEMPLATE,
    vocabulary.AGENT,
    vocabulary.MESSAGE,
    vocabulary.PIPELINE,
    vocabulary.RESOURCES,
    vocabulary.EVENTS,
    vocabulary.BLACKBOARD,
    vocabulary.IDEMPOTENCY,
    vocabulary.CANCELLATION,
    vocabulary.CHILDREN,
    vocabulary.PLAN_LIFECYCLE,
    vocabulary.VALUES,
    vocabulary.TX,
    vocabulary.DIFF_PATCH,
    vocabulary.LOCKS,
    vocabulary.BULK,
    vocabulary.ASSIST,
    vocabulary.DYNAMIC,
)

MODULES: dict[str, tuple[str, ...]] = {
    "introspection": ("registry.introspection",),
    "guide": ("guide.tools",),
    "journal": ("journal.tools",),
    "workflow": (
        "plan.workflow",
        "plan.replan",
    ),
    "task": ("plan.task",),
    "checkpoint": ("plan.checkpoint",),
    "context": ("plan.context",),
    "orchestration": ("plan.orchestration",),
    "workspace": (
        "plan.workspace",
        "plan.reservations",
    ),
    "repository": ("plan.repository",),
    "template": ("plan.template",),
    "agent": (
        "plan.agent",
        "plan.claims",
    ),
    "message": ("plan.message",),
    "pipeline": ("pipeline.tools",),
    "resources": ("registry.resources",),
    "events": ("registry.events",),
    "blackboard": ("registry.blackboard",),
    "idempotency": ("registry.idempotency",),
    "cancellation": ("registry.cancellation",),
    "children": ("registry.children",),
    "plan-lifecycle": ("registry.plan_lifecycle",),
    "values": ("registry.values",),
    "tx": ("registry.tx",),
    "diff-patch": ("registry.diff_patch",),
    "locks": ("registry.locks",),
    "bulk": ("registry.bulk",),
    "assist": ("registry.assist",),
    "dynamic": ("registry.dynamic",),
}
"""The modules of `handrail.toolsets` that contain each toolset's operations, in listing order."""


@functools.cache
def operations_of(toolset: str) -> tuple[Operation[Any, Any], ...]:
    """The operations of one toolset, in listing order."""
    modules = (import_module(f"handrail.toolsets.{name}") for name in MODULES[toolset])
    return tuple(operation for module in modules for operation in module.OPERATIONS)


@functools.cache
def whole_catalog() -> tuple[Operation[Any, Any], ...]:
    """Every operation there is. Loads every toolset: for the docs, the tests, and to say where a tool belongs."""
    return tuple(operation for toolset in TOOLSETS for operation in operations_of(toolset.name))


def operation_named(name: str) -> Operation[Any, Any] | None:
    """The operation that has this name on some server, whether it is on here or not. Loads every toolset."""
    return _every_name().get(name)


@functools.cache
def _every_name() -> dict[str, Operation[Any, Any]]:
    """Every operation by every name it could have."""
    everything = whole_catalog()
    return {
        **{f"{operation.toolset.family}_{operation.name}": operation for operation in everything},
        **{operation.name: operation for operation in reversed(everything)},  # the first to have a name wins
    }


ANNOUNCED: dict[str, tuple[str, ...]] = {
    "registry": ("bt",),
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
