"""Toolset `dynamic`: two tools that let a client turn other toolsets on while connected. Only with `--dynamic`.

For clients that follow `tools/list_changed`: they start with a short list and ask for more when they need it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.kernel.errors import ToolsetUnknown
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.vocabulary import DYNAMIC


class ListToolsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """toolset_list takes no arguments."""


class ToolsetEntry(msgspec.Struct, frozen=True):
    """One toolset and whether it is on."""

    name: str
    purpose: str
    enabled: bool


class ToolsetList(msgspec.Struct, frozen=True):
    """Every toolset of this version."""

    toolsets: tuple[ToolsetEntry, ...]


class EnableToolsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which toolsets to turn on."""

    toolsets: Annotated[list[str], Meta(min_length=1, description="Names from toolset_list")]


class EnabledToolsets(msgspec.Struct, frozen=True):
    """What is on now."""

    enabled: tuple[str, ...]
    tools: tuple[str, ...]


def toolset_list(call: Call, request: ListToolsets) -> ToolsetList:  # noqa: ARG001 - every handler takes its request
    active = {toolset.name for toolset in call.toolsets.active()}
    return ToolsetList(
        toolsets=tuple(
            ToolsetEntry(name=toolset.name, purpose=toolset.purpose, enabled=toolset.name in active)
            for toolset in call.toolsets.available()
        )
    )


def toolset_enable(call: Call, request: EnableToolsets) -> EnabledToolsets:
    call.toolsets.enable(request.toolsets)
    return EnabledToolsets(
        enabled=tuple(toolset.name for toolset in call.toolsets.active()),
        tools=tuple(entry.name for entry in call.toolsets.published()),
    )


OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="toolset_list",
        toolset=DYNAMIC,
        effect=Effect.READ,
        summary="Lists the toolsets that can be turned on",
        request=ListToolsets,
        response=ToolsetList,
        handler=toolset_list,
        examples=(
            Example(
                title="every toolset is listed with its state",
                request={},
                response={"toolsets": [{"name": "guide", "purpose": "Follow a guide..."}]},
            ),
        ),
    ),
    Operation(
        name="toolset_enable",
        toolset=DYNAMIC,
        effect=Effect.WRITE,
        idempotent=True,
        summary="Turns toolsets on for this server and announces the new tool list",
        request=EnableToolsets,
        response=EnabledToolsets,
        handler=toolset_enable,
        refusals=(ToolsetUnknown,),
        examples=(
            Example(
                title="a toolset is turned on",
                request={"toolsets": ["guide"]},
                response={"enabled": ["guide"], "tools": ["workflow_list"]},
            ),
            Example(title="an unknown toolset is refused", request={"toolsets": ["gide"]}, refused=ToolsetUnknown),
        ),
    ),
)
