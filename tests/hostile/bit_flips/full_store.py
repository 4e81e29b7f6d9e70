"""A store that holds something in every table and every column: whatever can be damaged is there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.records import KeyWrite
from handrail.store.store import Store
from handrail.store.tables import TABLES, Table
from handrail.store.unit import Unit
from tests.store.ground import Ground, sqlite_ground
from tests.store.records import ANNA, BEN, put, task, workflow

NEVER = 4_102_444_800_000
"""When the kept answers expire: in 2100."""


def record_of(table: Table, number: int) -> Any:
    """A record with a value of its own in every column."""
    values = {
        field.name: _value(field, kind, table.name, number)
        for field, kind in zip(msgspec.structs.fields(table.record), table.kinds, strict=False)
    }
    values["id"] = f"{table.name}_{number}"
    if "stream" in values:
        values["stream"] = "workflow_1"
    return table.record(**values)


def _value(field: msgspec.structs.FieldInfo, kind: str, table: str, number: int) -> Any:
    if kind == "text":
        return "workflow_1" if field.name == "workflow_id" else f"{field.name} of {table} {number}: ünd so weiter"
    if kind == "int":
        return number * 1_000_003 + len(field.name)
    if kind == "flag":
        return bool(number % 2)
    hint = str(field.type)
    if "list[dict" in hint:
        return [{"n": number, "what": field.name}]
    if "dict[str, int]" in hint:
        return {"pending": number, "done": 7}
    if "list" in hint:
        return [f"{field.name} {number}", "x"]
    return {"n": number, "half": 0.5, "big": 1e22, "yes": True, "none": None, "what": field.name}


def fill(store: Store, each: int = 3) -> None:
    """Everything a ledger can hold: records made, changed and removed, a lease renewed, answers kept."""
    put(store, workflow("workflow_1"), task("task_9", workflow_id="workflow_1"))
    for table in TABLES:
        for number in range(1, each + 1):
            put(store, record_of(table, number), kind=f"{table.name}.made", actor=BEN, said="made")
    put(store, task("task_9", workflow_id="workflow_1", status="failed", context={"long": "x" * 9000}))

    def removed(unit: Unit) -> None:
        unit.record("board.removed", removes=[found for found in [unit.get(_BOARD, f"board_{each}")] if found])

    store.run(ANNA, removed)
    for number in range(3):
        store.run(ANNA, partial(_keep, number))
    store.engine.renew(f"holder of lease {each}: ünd so weiter", 1_000, 9_000_000)


def _keep(number: int, unit: Unit) -> None:
    answer = msgspec.json.encode({"answer": number, "text": "kept " * 5})
    unit.keep_answer(KeyWrite("tool", f"key {number}", f"{number:064x}", answer, NEVER + number, 1))


_BOARD = next(table.record for table in TABLES if table.name == "board")


def full_ground(path: Path, each: int = 3) -> Ground:
    """Such a store in a file, open."""
    ground = sqlite_ground(path)
    fill(ground.store, each)
    return ground
