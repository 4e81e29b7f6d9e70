"""A tool that runs on as a task of the MCP extension is cancelled by its task's id, as any other call is by its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.domain.registry.cancellation import RunningCall, find_call
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.surfaces.mcp.tools import CatalogTools
from tests.protocol.test_tasks import TaskClient
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import RegistryDesk


class Detaching(CatalogTools):
    """The catalog's tools, where those that wait run on as tasks."""

    def task_use(self, name: str) -> TaskUse:
        return TaskUse.MAY if name == "events_subscribe" else TaskUse.NEVER

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name == "events_subscribe":
            exchange.detach()
        return super().call(exchange, name, arguments)


def row_of(desk: RegistryDesk, op_id: str) -> RunningCall | None:
    return desk.store.run(TESTER, lambda unit: find_call(unit, op_id))


def begun(desk: RegistryDesk, op_id: str) -> None:
    position = 0
    while row_of(desk, op_id) is None:
        desk.store.wait(position, 10)
        position = desk.store.position()


def ended(desk: RegistryDesk, op_id: str) -> RunningCall:
    while True:
        position = desk.store.position()
        row = row_of(desk, op_id)
        if row is not None and row.ended_at is not None:
            return row
        desk.store.wait(position, 10)


def a_client(desk: RegistryDesk) -> TaskClient:
    return TaskClient(tools=Detaching(desk._handrail.switch, desk._handrail.call, whole=False))


POLL = {"cats": ["bb"], "wait_ms": 25_000}


def test_a_task_is_cancelled_by_its_id(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "events", "cancellation")
    client = a_client(desk)
    task_id = client.ask("tools/call", name="events_subscribe", arguments=POLL)["taskId"]
    begun(desk, task_id)
    assert desk.call("op_cancel", op_id=task_id)["outcome"] == "requested"
    client.until_status(task_id, "cancelled")
    assert desk.call("op_cancel", op_id=task_id)["outcome"] == "already_cancelled"


def test_a_task_that_its_client_cancels_counts_as_cancelled(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "events", "cancellation")
    client = a_client(desk)
    task_id = client.ask("tools/call", name="events_subscribe", arguments={**POLL, "op_id": "mine"})["taskId"]
    begun(desk, task_id)
    begun(desk, "mine")
    client.ask("tasks/cancel", taskId=task_id)
    assert [ended(desk, op_id).status for op_id in (task_id, "mine")] == ["cancelled", "cancelled"]


def test_without_the_toolset_a_task_leaves_no_row(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "events")
    desk.plan({"name": "one"})
    client = a_client(desk)
    task_id = client.ask("tools/call", name="events_subscribe", arguments={})["taskId"]
    client.until_status(task_id, "completed")
    assert row_of(desk, task_id) is None
