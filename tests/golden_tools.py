"""Rewrites tests/golden/tools: one file per tool, the wire form with everything in it. Run after a wanted change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from handrail.catalog import whole_catalog
from handrail.operation import Operation, PublishedOperation
from handrail.surfaces.mcp.tools import tool_of

FOLDER = Path(__file__).parent / "golden" / "tools"


def snapshot_name(operation: Operation[Any, Any]) -> str:
    return f"{operation.toolset.name}.{operation.name}.json"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for operation in whole_catalog():
        wire = msgspec.json.encode(tool_of(PublishedOperation(operation.name, operation), whole=True))
        (FOLDER / snapshot_name(operation)).write_bytes(msgspec.json.format(wire, indent=2) + b"\n")
