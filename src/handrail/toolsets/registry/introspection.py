"""Toolset `introspection`: registry.md's `mcp_info` and `mcp_capabilities`. What this server is, true in every field.

A field of the document for a mechanism that Handrail does not have is null (a timer) or 0 (a number the document
types); it is never filled with a made-up default.
"""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.operation import Call, Effect, Example, HttpAddress, Operation
from handrail.toolsets.vocabulary import INTROSPECTION

FEATURES: dict[str, str | None] = {
    "enableBT": "bt",
    "enableReactiveScheduler": None,
    "enableBlackboard": "blackboard",
    "enableStigmergy": None,
    "enableCNP": None,
    "enableConsensus": None,
    "enableAutoscaler": None,
    "enableSupervisor": None,
    "enableKnowledge": "assist",
    "enableCausalMemory": "assist",
    "enableValueGuard": "values",
    "enableMcpIntrospection": "introspection",
    "enableResources": "resources",
    "enableEventsBus": "events",
    "enableCancellation": "cancellation",
    "enableTx": "tx",
    "enableBulk": "bulk",
    "enableIdempotency": "idempotency",
    "enableLocks": "locks",
    "enableDiffPatch": "diff-patch",
    "enablePlanLifecycle": "plan-lifecycle",
    "enableChildOpsFine": "children",
    "enableValuesExplain": "values",
    "enableAssist": "assist",
}
"""The toggles a client of registry.md looks for, and the toolset that makes each true. None: nothing here does."""


class McpInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """mcp_info takes no arguments."""


class McpCapabilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """mcp_capabilities takes no arguments."""


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    """Who answers, and the newest protocol revision it speaks."""

    name: str
    version: str
    mcp_version: str


class StdioFacts(msgspec.Struct, frozen=True):
    """Standard input and output."""

    enabled: bool


class HttpTransport(msgspec.Struct, frozen=True, rename="camel"):
    """Streamable HTTP; null members while it is off. `stateless` is false: handshake clients are given sessions."""

    enabled: bool
    host: str | None
    port: int | None
    path: str | None
    enable_json: bool
    stateless: bool


class Transports(msgspec.Struct, frozen=True):
    """How this server can be reached."""

    stdio: StdioFacts
    http: HttpTransport


class Timings(msgspec.Struct, frozen=True, rename="camel"):
    """Timers, in milliseconds; null where Handrail has no such mechanism."""

    default_timeout_ms: int
    bt_tick_ms: int | None = None
    stig_half_life_ms: int | None = None
    supervisor_stall_ticks: int | None = None
    autoscale_cooldown_ms: int | None = None


class Safety(msgspec.Struct, frozen=True, rename="camel"):
    """Bounds on children. `maxChildren` counts agents that are present; no process is started here, so the others are
    0. 0 is no bound."""

    max_children: int = 0
    memory_limit_mb: int = 0
    cpu_percent: int = 0


class InfoLimits(msgspec.Struct, frozen=True, rename="camel"):
    """The largest message read, the longest any call waits, and how many events are kept."""

    max_input_bytes: int
    default_timeout_ms: int
    max_event_history: int


class Info(msgspec.Struct, frozen=True):
    """What this server is."""

    server: Identity
    transports: Transports
    features: dict[str, bool]
    timings: Timings
    safety: Safety
    limits: InfoLimits
    warnings: tuple[str, ...] = ()
    """What a person should look after, such as this machine's clock."""


class Namespace(msgspec.Struct, frozen=True):
    """One toolset that is on."""

    name: str
    description: str


class ToolSummary(msgspec.Struct, frozen=True):
    """One tool: where it belongs and what it does."""

    namespace: str
    summary: str


class CapabilityLimits(msgspec.Struct, frozen=True, rename="camel"):
    """How many events are kept."""

    max_event_history: int


class Capabilities(msgspec.Struct, frozen=True):
    """The toolsets that are on and their tools."""

    namespaces: tuple[Namespace, ...]
    schemas: dict[str, ToolSummary]
    limits: CapabilityLimits


EVERY_EVENT = 2**53 - 1
"""`maxEventHistory` if every event is shown: the largest integer that every client can read."""


def mcp_info(call: Call, request: McpInfo) -> Info:  # noqa: ARG001 - every handler takes its request
    active = {toolset.name for toolset in call.toolsets.active()}
    server = call.server
    remark = call.ledger.clock_remark()
    return Info(
        server=Identity(name=server.name, version=server.version, mcp_version=server.protocol_revision),
        transports=_transports(server.http),
        features={feature: toolset in active for feature, toolset in FEATURES.items()},
        timings=Timings(default_timeout_ms=call.bounds.wait_ms),
        safety=Safety(max_children=call.bounds.children),
        limits=InfoLimits(
            max_input_bytes=server.max_message_bytes,
            default_timeout_ms=call.bounds.wait_ms,
            max_event_history=call.bounds.events or EVERY_EVENT,
        ),
        warnings=() if remark is None else (remark,),
    )


def _transports(http: HttpAddress | None) -> Transports:
    if http is None:
        off = HttpTransport(enabled=False, host=None, port=None, path=None, enable_json=False, stateless=False)
        return Transports(stdio=StdioFacts(enabled=True), http=off)
    on = HttpTransport(enabled=True, host=http.host, port=http.port, path=http.path, enable_json=True, stateless=False)
    return Transports(stdio=StdioFacts(enabled=False), http=on)


def mcp_capabilities(call: Call, request: McpCapabilities) -> Capabilities:  # noqa: ARG001 - every handler takes its request
    return Capabilities(
        namespaces=tuple(Namespace(toolset.name, toolset.purpose) for toolset in call.toolsets.active()),
        schemas={
            entry.name: ToolSummary(entry.operation.toolset.name, entry.operation.summary)
            for entry in call.toolsets.published()
        },
        limits=CapabilityLimits(max_event_history=call.bounds.events or EVERY_EVENT),
    )


OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="mcp_info",
        toolset=INTROSPECTION,
        effect=Effect.READ,
        summary="Shows server identity, transports, features and limits",
        request=McpInfo,
        response=Info,
        handler=mcp_info,
        examples=(
            Example(
                title="the server says what it is",
                request={},
                response={
                    "server": {"name": "handrail", "mcpVersion": "2026-07-28"},
                    "features": {"enableMcpIntrospection": True, "enableBT": False},
                    "limits": {"maxInputBytes": 4194304},
                },
            ),
        ),
    ),
    Operation(
        name="mcp_capabilities",
        toolset=INTROSPECTION,
        effect=Effect.READ,
        summary="Lists the toolsets that are on, and what each tool does",
        request=McpCapabilities,
        response=Capabilities,
        handler=mcp_capabilities,
        examples=(
            Example(
                title="every tool that is on is named",
                request={},
                response={
                    "namespaces": [{"name": "guide"}, {"name": "introspection"}],
                    "schemas": {"workflow_next": {"namespace": "guide"}},
                },
            ),
        ),
    ),
)
