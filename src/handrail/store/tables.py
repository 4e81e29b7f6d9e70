"""Which records are kept, and how each becomes a row: one `Table` per record type, derived from the type itself.

Not the schema's history (`migrations/`): a test keeps the two consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.board.entry import BoardEntry
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import Message
from handrail.domain.crew.token import Token
from handrail.domain.gates.gate import Gate
from handrail.domain.graphs.records import GraphEdge, GraphNode, SharedGraph, Transaction
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.knowledge.records import Fact
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.registry.cancellation import RunningCall
from handrail.domain.values.records import ValueSet
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lease import Lease
from handrail.domain.work.repository import Repository
from handrail.domain.work.task import Dependency, Task
from handrail.domain.work.template import Template
from handrail.domain.work.workflow import Tally, Workflow
from handrail.domain.workspaces.records import Reservation, Workspace
from handrail.kernel.errors import InvalidParams, StoreUnusable

_PLAIN: dict[Any, str] = {str: "text", int: "int", bool: "flag", str | None: "text", int | None: "int"}


class Table(msgspec.Struct, frozen=True):
    """How records of one type are stored. Columns are the type's fields; every table also has `stream`."""

    name: str
    record: type[Any]
    fields: tuple[str, ...]
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    """text, int, flag or json, for each column."""
    nullable: tuple[str, ...]
    """The columns that may be NULL. JSON has its own null."""
    unlogged: tuple[str, ...] = ()
    """Fields that may change without an event, so the ledger's value need not be the newest."""
    texts: tuple[int, ...] = ()
    flags: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    """The indexes of the text, flag and JSON fields: only these need checking or converting."""

    def row_of(self, record: Any) -> tuple[Any, ...]:
        """The row: plain values, JSON as text."""
        values = list(msgspec.structs.astuple(record))
        for place in self.documents:
            values[place] = msgspec.json.encode(values[place]).decode()
        for place in self.flags:
            values[place] = int(values[place])
        if any("\0" in values[place] for place in self.texts if values[place] is not None):
            raise InvalidParams(
                f"a text of this {self.name} holds a NUL character, which cannot be kept", hint="leave it out"
            )
        if len(self.columns) > len(self.fields):
            values.append(record.stream)
        return tuple(values)

    def record_of(self, row: Sequence[Any]) -> Any:
        """The record a row holds."""
        values = list(row)
        try:
            for place in self.documents:
                values[place] = msgspec.json.decode(values[place])
            for place in self.flags:
                values[place] = bool(values[place])
            return self.record(**dict(zip(self.fields, values, strict=False)))
        except (msgspec.DecodeError, ValueError):
            key = row[self.columns.index("id")]
            raise StoreUnusable(
                f"{self.name} {key}: its row cannot be read back",
                hint="`handrail db verify` lists what is damaged",
                key=key,
            ) from None

    def document_of(self, record: Any) -> dict[str, Any]:
        """The record as plain JSON values, as the ledger holds it."""
        values: dict[str, Any] = msgspec.to_builtins(record)
        return values

    def record_from(self, document: Mapping[str, Any]) -> Any:
        return msgspec.convert(document, self.record)


def _table(name: str, record: type[Any], *, unlogged: tuple[str, ...] = ()) -> Table:
    hints = {field.name: field.type for field in msgspec.structs.fields(record)}
    kinds = tuple(_PLAIN.get(hint, "json") for hint in hints.values())
    fields = tuple(hints)
    has_stream = "stream" in hints
    return Table(
        name,
        record,
        fields,
        columns=fields if has_stream else (*fields, "stream"),
        kinds=kinds if has_stream else (*kinds, "text"),
        nullable=tuple(field for field, hint in hints.items() if hint in (str | None, int | None)),
        unlogged=unlogged,
        texts=tuple(place for place, kind in enumerate(kinds) if kind == "text"),
        flags=tuple(place for place, kind in enumerate(kinds) if kind == "flag"),
        documents=tuple(place for place, kind in enumerate(kinds) if kind == "json"),
    )


TABLES: tuple[Table, ...] = (
    _table("workflow", Workflow),
    _table("task", Task),
    _table("checkpoint", Checkpoint),
    _table("gate", Gate),
    _table("agent", Agent),
    _table("lease", Lease, unlogged=("expires_ms", "renewed_ms")),
    _table("message", Message),
    _table("repository", Repository),
    _table("dependency", Dependency),
    _table("tally", Tally),
    _table("template", Template),
    _table("journal", JournalEntry),
    _table("token", Token),
    _table("workspace", Workspace),
    _table("reservation", Reservation),
    _table("pipeline", PipelineRun),
    _table("board", BoardEntry),
    _table("running", RunningCall),
    _table("graph", SharedGraph),
    _table("graph_node", GraphNode),
    _table("graph_edge", GraphEdge),
    _table("tx", Transaction),
    _table("value_set", ValueSet),
    _table("fact", Fact),
)
BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
BY_RECORD: dict[type[Any], Table] = {table.record: table for table in TABLES}
UNIQUE: dict[str, tuple[tuple[str, ...], ...]] = {
    "task": (("workflow_id", "name"),),
    "checkpoint": (("task_id", "sequence"),),
    "repository": (("path",),),
    "template": (("name",),),
    "message": (("recipient_id", "sequence"),),
}
"""What the schema keeps unique besides ids."""
