"""Hints that name tools this server has off: they say which toolset each belongs to. Turns nothing on.

The rules behind a refusal do not know which toolsets are on, so a hint may name a tool that the agent does not have.
"""

from __future__ import annotations

import re
from typing import Any

from handrail.catalog import operation_named
from handrail.kernel.errors import Refusal
from handrail.operation import Operation
from handrail.selection import DYNAMIC
from handrail.surfaces.toolset_switch import ToolsetSwitch

_NAME = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def complete_hint(refusal: Refusal, operation: Operation[Any, Any], switch: ToolsetSwitch) -> None:
    """Adds to the hint of a refused operation where the tools that are off belong."""
    words = dict.fromkeys(_NAME.findall(refusal.hint))
    strange = [word for word in words if switch.find(word) is None and not _is_argument(word, operation)]
    named = [(word, operation_named(word)) for word in strange]  # loads every toolset, so it comes last
    active = {toolset.name for toolset in switch.active()}
    off = [f"{word} (toolset {tool.toolset.name})" for word, tool in named if tool and tool.toolset.name not in active]
    if off:
        way = "; toolset_enable turns a toolset on" if DYNAMIC in active else ""
        refusal.hint = f"{refusal.hint}; off here: {', '.join(off)}{way}"


def _is_argument(word: str, operation: Operation[Any, Any]) -> bool:
    return word in operation.request.__struct_fields__
