"""Rewrites tests/golden/tools: one file per tool, the wire form with everything in it. Run after a wanted change."""

from __future__ import annotations

from pathlib import Path

import msgspec

from handrail.catalog import CATALOG
from handrail.operation import PublishedOperation
from handrail.surfaces.mcp.tools import tool_of

FOLDER = Path(__file__).parent / "golden" / "tools"

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for operation in CATALOG:
        wire = msgspec.json.encode(tool_of(PublishedOperation(operation.name, operation), whole=True))
        (FOLDER / f"{operation.name}.json").write_bytes(msgspec.json.format(wire, indent=2) + b"\n")
