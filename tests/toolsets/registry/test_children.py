"""Children are the registered agents: what is seen of them, their roles and limits, and those that run elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import AgentNotFound, InvalidParams
from handrail.surfaces.invocation import CallingClient
from tests.toolsets.registry.registry_desk import RegistryDesk

LEASE_MS = 90_000


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "children", "events")


def attach(desk: RegistryDesk, name: str, **given: Any) -> str:
    return str(desk.call("child_attach", name=name, **given)["child_id"])


def status(desk: RegistryDesk, child_id: str) -> dict[str, Any]:
    (child,) = desk.call("child_status", child_id=child_id)["children"]
    return dict(child)


def test_a_child_is_seen_at_work_and_lost_with_the_evidence(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    cleo = attach(desk, "Cleo", runtime="codex")
    assert status(desk, cleo)["liveness"]["state"] == "idle"
    desk.call("task_claim", task_id="task_1", agent_id=cleo, start=True)
    seen = status(desk, cleo)
    assert (seen["status"], seen["liveness"]["state"]) == ("busy", "working")
    assert seen["current_task"] == {"task_id": "task_1", "name": "one", "status": "in_progress"}
    assert seen["lease_expires_at"] == desk.clock.now_ms() + LEASE_MS
    assert seen["last_event"]["kind"] == "task.in_progress"
    log = desk.call("logs_tail", stream="child", id=cleo, limit=1)
    assert log["entries"][0]["seq"] == seen["last_event"]["seq"]
    desk.clock.advance(LEASE_MS)
    gone = status(desk, cleo)
    assert (gone["status"], gone["liveness"]["state"]) == ("offline", "lost")


def test_all_are_listed_the_newest_first_and_a_page_at_a_time(desk: RegistryDesk) -> None:
    names = [f"child {number}" for number in range(12)]
    for name in names:
        attach(desk, name)
        desk.clock.advance(1)
    page = desk.call("child_status")
    assert ([child["name"] for child in page["children"]], page["total"]) == (names[:1:-1], 12)
    rest = desk.call("child_status", offset=10)["children"]
    assert [child["name"] for child in rest] == ["child 1", "child 0"]


def test_who_attaches_a_child_does_not_become_it(desk: RegistryDesk) -> None:
    connection = CallingClient()
    child = desk.call_as(connection, "child_attach", name="Cleo")
    assert connection.agents == []
    desk.call_as(connection, "agent_list", agent_id=child["child_id"], agent_secret=child["secret"])
    assert connection.agents == [child["child_id"]], "whoever has the secret is the child"
    assert child["logs"] == f"sc://children/{child['child_id']}/logs"


def test_a_role_is_given_and_counts(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    anna, ben = attach(desk, "Anna"), attach(desk, "Ben")
    desk.call("task_claim", task_id="task_1", agent_id=anna)
    assert desk.call("child_set_role", child_id=ben, role="coordinator") == {
        "child_id": ben,
        "role": "coordinator",
        "limits": {},
    }
    assert desk.call("task_release", task_id="task_1", agent_id=ben)["success"] is True
    before = desk.store.position()
    desk.call("child_set_role", child_id=ben, role="coordinator")
    assert desk.store.position() == before, "what is so already is no news"
    assert isinstance(desk.refusal("child_set_role", child_id=ben, role="king"), InvalidParams)


def test_limits_take_the_place_of_those_before_and_leave_the_rest_alone(desk: RegistryDesk) -> None:
    cleo = attach(desk, "Cleo", limits={"tokens": 10}, metadata={"model": "m"})
    assert status(desk, cleo)["limits"] == {"tokens": 10}
    assert desk.call("child_set_limits", child_id=cleo, limits={"minutes": 2.5})["limits"] == {"minutes": 2.5}
    assert status(desk, cleo)["limits"] == {"minutes": 2.5}
    assert desk.call("agent_get", id=cleo)["metadata"] == {"model": "m", "limits": {"minutes": 2.5}}
    assert desk.call("child_set_limits", child_id=cleo, limits={})["limits"] == {}
    assert desk.call("agent_get", id=cleo)["metadata"] == {"model": "m"}


@pytest.mark.parametrize("limits", [{"tokens": -1}, {"tokens": "many"}, {"": 1}, {str(n): n for n in range(21)}])
def test_limits_are_a_few_numbers(desk: RegistryDesk, limits: dict[str, Any]) -> None:
    cleo = attach(desk, "Cleo")
    assert isinstance(desk.refusal("child_set_limits", child_id=cleo, limits=limits), InvalidParams)


def test_an_unknown_child_is_refused_with_those_there_are(desk: RegistryDesk) -> None:
    cleo = attach(desk, "Cleo")
    for tool, more in (
        ("child_status", {}),
        ("child_set_role", {"role": "worker"}),
        ("child_set_limits", {"limits": {}}),
    ):
        arguments: dict[str, Any] = {"child_id": "ag_9", **more}
        refusal = desk.refusal(tool, **arguments)
        assert isinstance(refusal, AgentNotFound)
        assert cleo in refusal.hint


def test_a_limit_is_a_number_that_every_client_can_read(desk: RegistryDesk) -> None:
    anna = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    for limits in ({"tokens": float("inf")}, {"tokens": float("nan")}, {"tokens": 1e16}, {"\ud800": 1}):
        assert isinstance(desk.refusal("child_set_limits", child_id=anna, limits=limits), InvalidParams)
    assert desk.call("child_set_limits", child_id=anna, limits={"tokens": 1e15})["limits"] == {"tokens": 10**15}


def test_a_list_for_which_no_limit_was_asked_stays_small(desk: RegistryDesk) -> None:
    long = {f"{number:02}" * 30: 1e9 for number in range(20)}
    for number in range(10):
        desk.call("child_attach", name=f"child {number}", limits=long)
    page = desk.call("child_status")
    assert 0 < len(page["children"]) < 10 == page["total"]
    assert len(msgspec.json.encode(page)) < 8192
    following = desk.call("child_status", offset=len(page["children"]))
    assert following["children"][0]["child_id"] not in {child["child_id"] for child in page["children"]}
    assert len(desk.call("child_status", limit=10)["children"]) == 10
