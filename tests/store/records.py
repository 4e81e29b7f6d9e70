"""Records to put into a store, with everything a test does not care about filled in."""

from __future__ import annotations

from typing import Any

from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lease import Lease
from handrail.domain.work.repository import Repository
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Actor, NewEvent
from handrail.store.store import Store
from handrail.store.writes import Head, WriteSet, chained

ANNA = Actor("anna", "mcp")
BEN = Actor("ben", "cli")


def workflow(key: str = "wf_1", **given: Any) -> Workflow:
    plain: dict[str, Any] = {
        "id": key,
        "name": "Ship it",
        "status": "planning",
        "source_type": "prompt",
        "source_ref": None,
        "source_content": "make it so",
        "repository_path": None,
        "plan": None,
        "max_parallel_tasks": 3,
        "auto_create_workspaces": False,
        "created_at": 1,
        "updated_at": 1,
    }
    return Workflow(**{**plain, **given})


def task(key: str = "task_1", **given: Any) -> Task:
    plain: dict[str, Any] = {
        "id": key,
        "workflow_id": "wf_1",
        "parent_task_id": None,
        "name": key,
        "description": "",
        "status": "pending",
        "sequence": 1,
        "priority": 0,
        "parallel_group": None,
        "depends_on": [],
        "unmet": 0,
        "estimated_complexity": None,
        "files_likely_affected": [],
        "plan": None,
        "context": {},
        "outcome": None,
        "outcome_detail": None,
        "error": None,
        "checkpoints": 0,
        "created_at": 1,
        "updated_at": 1,
    }
    return Task(**{**plain, **given})


def checkpoint(key: str = "cp_1", **given: Any) -> Checkpoint:
    plain: dict[str, Any] = {
        "id": key,
        "workflow_id": "wf_1",
        "task_id": "task_1",
        "sequence": 1,
        "type": "progress",
        "summary": "half way",
        "detail": {},
        "files_changed": [],
        "created_at": 1,
    }
    return Checkpoint(**{**plain, **given})


def lease(key: str = "lease_1", **given: Any) -> Lease:
    plain: dict[str, Any] = {"id": key, "stream": "wf_1", "holder": None, "fence": 0, "expires_ms": 0}
    return Lease(**{**plain, **given})


def repository(key: str = "repo_1", **given: Any) -> Repository:
    plain: dict[str, Any] = {"id": key, "path": f"/code/{key}", "name": key, "created_at": 1}
    return Repository(**{**plain, **given})


def put(store: Store, *records: Any, kind: str = "thing.put", actor: Actor = ANNA, **data: Any) -> None:
    """Puts records of one stream with one event."""

    def work(unit: Any) -> None:
        unit.expect(records[0].stream)
        unit.record(kind, *records, data=data)

    store.run(actor, work)


def remove(store: Store, *records: Any, actor: Actor = ANNA) -> None:
    def work(unit: Any) -> None:
        unit.expect(records[0].stream)
        unit.record("thing.removed", removes=records)

    store.run(actor, work)


def happened(stream: str, expected: Head, *kinds: str) -> WriteSet:
    """Events without rows, after `expected`."""
    return WriteSet((chained(stream, expected, [NewEvent(kind, "anna", "mcp", 5, {}, ()) for kind in kinds]),), ())


def found(store: Store, kind: Any, key: str) -> Any:
    """The record a store has under an id."""
    return store.run(ANNA, lambda unit: unit.get(kind, key))
