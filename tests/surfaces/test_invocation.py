"""Who a connection is known to be, and what that changes for its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.work.lease import Lease
from handrail.kernel.errors import IdentityUnproven, InvalidParams, Refusal, StoreAway
from handrail.kernel.ledger import Actor
from handrail.operation import Call, Effect, Ledger
from handrail.surfaces.cancellable_call import CancellableCall
from handrail.surfaces.elicitation import Meanwhile, Patience
from handrail.surfaces.invocation import CallingClient, invoke
from tests.surfaces.keyed import Noticing
from tests.toolsets.plan.planned import TESTER, Desk

PERSON: dict[str, Any] = {"runtime": "custom"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, identity="strict")


def test_who_registers_is_meant_by_every_later_call_on_the_connection(desk: Desk) -> None:
    desk.plan({"name": "one"})
    connection = CallingClient()
    anna = desk.call_as(connection, "agent_register", name="Anna", **PERSON)["id"]
    desk.call_as(connection, "task_claim", task_id="task_1", agent_id=anna, start=True)
    desk.call_as(connection, "checkpoint_add", task_id="task_1", type="progress", summary="s")
    assert desk.store.events("wf_1")[-1].actor == anna


def test_another_connection_is_nobody_until_it_proves_itself(desk: Desk) -> None:
    desk.plan({"name": "one"})
    first, second = CallingClient(), CallingClient()
    known = desk.call_as(first, "agent_register", name="Anna", **PERSON)
    claim: dict[str, Any] = {"task_id": "task_1", "agent_id": known["id"]}
    with pytest.raises(IdentityUnproven):
        desk.call_as(second, "task_claim", **claim)
    desk.call_as(second, "task_claim", **claim, agent_secret=known["secret"])
    assert desk.call_as(second, "task_claim", **claim)["success"] is True, "once is enough"


def test_of_several_agents_on_one_connection_none_is_meant_by_itself(desk: Desk) -> None:
    desk.plan({"name": "one"})
    connection = CallingClient()
    for name in ("Anna", "Ben"):
        desk.call_as(connection, "agent_register", name=name, **PERSON)
    desk.call_as(connection, "task_update_status", id="task_1", status="in_progress")
    assert desk.store.events("wf_1")[-1].actor == "tester"
    desk.call_as(connection, "task_claim", task_id="task_1", agent_id="ag_2")
    assert desk.store.events("wf_1")[-1].actor == "ag_2"


def test_what_is_noted_of_a_connection_is_noted_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plan({"name": "one"})
    anna = desk.call("agent_register", name="Anna", **PERSON)["id"]
    connection = CallingClient()
    for _ in range(3):
        desk.call_as(connection, "task_claim", task_id="task_1", agent_id=anna)
    assert desk.call("agent_get", id=anna)["unproven_calls"] == 1


def test_unread_messages_are_told_with_other_replies_and_only_where_there_are_some(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    anna, ben = (desk.call("agent_register", name=name, **PERSON)["id"] for name in ("Anna", "Ben"))
    desk.plan({"name": "one"})
    assert "unread_messages" not in desk.call("task_get", id="task_1", agent_id=ben)
    desk.call("message_send", sender_id=anna, recipient_id=ben, message_type="query", body="?")
    assert desk.call("task_get", id="task_1", agent_id=ben)["unread_messages"] == 1
    assert "unread_messages" not in desk.call("task_get", id="task_1", agent_id=anna)
    assert "unread_messages" not in desk.call("task_get", id="task_1")


def test_a_guide_knows_no_agents(desk: Desk) -> None:
    with pytest.raises(InvalidParams):
        desk.call("mcp_info", agent_id="ag_1")


def test_a_waiting_call_is_answered_by_what_happens_meanwhile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    anna, ben = (desk.call("agent_register", name=name, **PERSON)["id"] for name in ("Anna", "Ben"))
    heard: list[Any] = []
    waiting = threading.Thread(
        target=lambda: heard.append(desk.call("message_list", agent_id=ben, wait_ms=25_000)), daemon=True
    )
    waiting.start()
    desk.call("message_send", sender_id=anna, recipient_id=ben, message_type="query", body="there?")
    waiting.join(20)
    assert [message["body"] for message in heard[0]["messages"]] == ["there?"]


def test_a_waiting_call_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ben = desk.call("agent_register", name="Ben", **PERSON)["id"]
    looked = iter([False, True])
    answer = desk.call_as(
        CallingClient(), "message_list", cancelled=lambda: next(looked, True), agent_id=ben, wait_ms=25_000
    )
    assert not answer["messages"]


class Passing(Noticing):
    """A ledger that has no news: the clock goes on by as long as somebody waits for some."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk._handrail.call.ledger)
        self._desk = desk
        self.claims: list[bool] = []
        """Whether the first task was still held, each time nothing had happened."""

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        self._desk.clock.advance(max(1, round(timeout_s * 1000)))
        lease = self._desk.store.run(TESTER, lambda unit: unit.get(Lease, "task_1"))
        self.claims.append(lease is not None and lease.holding.is_held(self._desk.clock.now_ms()))
        return False


def test_an_agent_that_waits_longer_than_its_lease_keeps_what_it_holds(tmp_path: Path) -> None:
    desk = Desk(tmp_path, heartbeat_ms=1000)
    desk.plan({"name": "one"})
    anna, ben = (desk.call("agent_register", name=name, **PERSON)["id"] for name in ("Anna", "Ben"))
    desk.call("task_claim", task_id="task_1", agent_id=ben, start=True)
    ledger = Passing(desk)
    waits = desk._handrail.switch.find("message_list")
    assert waits is not None
    invoke(
        waits,
        msgspec.structs.replace(desk._handrail.call, ledger=ledger),
        {"agent_id": ben, "wait_ms": 25_000},
        actor=TESTER,
        meanwhile=Meanwhile(patience=Patience(now_s=lambda: desk.clock.now_ms() / 1000)),
    )
    assert len(ledger.claims) >= 25, "once a heartbeat"
    assert all(ledger.claims)
    assert desk.call("task_claim", task_id="task_1", agent_id=anna)["success"] is False


def test_a_refused_call_still_shows_that_its_agent_is_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    anna = desk.call("agent_register", name="Anna", **PERSON)["id"]
    desk.clock.advance(10**6)
    assert desk.call("agent_get", id=anna)["liveness"]["state"] == "lost"
    with pytest.raises(Refusal):
        desk.call("task_claim", task_id="task_9", agent_id=anna)
    assert desk.call("agent_get", id=anna)["liveness"]["state"] != "lost"


def test_where_identity_is_strict_an_unproven_call_renews_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, identity="strict", heartbeat_ms=1000)
    anna = CallingClient()
    known = desk.call_as(anna, "agent_register", name="Anna", **PERSON)
    for _ in range(5):
        desk.clock.advance(900)
        with pytest.raises(IdentityUnproven):
            desk.call("task_get", id="task_1", agent_id=known["id"])
    status = desk.call("agent_list")["agents"][0]
    assert status["liveness"]["state"] == "lost"
    desk.call("workflow_list", agent_id=known["id"], agent_secret=known["secret"])
    assert desk.call("agent_list")["agents"][0]["liveness"]["state"] != "lost"


class Leaves:
    """A ledger whose store goes away while somebody waits, or when something is to be renewed."""

    def __init__(self, ledger: Ledger, *, renewing: bool = False) -> None:
        self._ledger = ledger
        self._renewing = renewing
        self.waits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def renew(self, holder: str, ttl_ms: int) -> None:
        if self._renewing:
            raise StoreAway("it is read-only")
        self._ledger.renew(holder, ttl_ms)

    def wait(self, position: int, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        del position, timeout_s, cancelled
        self.waits += 1
        raise StoreAway("the server does not answer")


def with_ledger(desk: Desk, ledger: Leaves) -> Call:
    return msgspec.structs.replace(desk._handrail.call, ledger=ledger)


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
def test_who_has_written_and_waits_is_told_what_was_written_although_the_store_left(
    tmp_path: Path, effect: Effect
) -> None:
    desk = Desk(tmp_path)
    agent = desk.call("agent_register", name="Anna", **PERSON)["id"]
    ledger = Leaves(desk._handrail.call.ledger)
    listing = desk._handrail.switch.find("message_list")
    assert listing is not None
    operation = msgspec.structs.replace(listing, effect=effect)
    arguments = {"agent_id": agent, "wait_ms": 5000}
    if effect is Effect.READ:
        with pytest.raises(StoreAway):
            invoke(operation, with_ledger(desk, ledger), arguments, actor=Actor("x", "test"))
    else:
        answer = invoke(operation, with_ledger(desk, ledger), arguments, actor=Actor("x", "test"))
        assert not answer["messages"]
        assert "does not answer" in answer["warnings"][0]
    assert ledger.waits == 1


def test_a_store_that_cannot_be_written_now_can_still_be_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    agent = desk.call("agent_register", name="Anna", **PERSON)["id"]
    ledger = Leaves(desk._handrail.call.ledger, renewing=True)
    reading = desk._handrail.switch.find("agent_get")
    assert reading is not None
    assert invoke(reading, with_ledger(desk, ledger), {"id": agent, "agent_id": agent}, actor=Actor("x", "test"))["id"]
    writing = desk._handrail.switch.find("agent_heartbeat")
    assert writing is not None
    with pytest.raises(StoreAway):
        invoke(writing, with_ledger(desk, ledger), {"agent_id": agent}, actor=Actor("x", "test"))


def test_an_answer_stands_although_its_end_cannot_be_recorded(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    row = CancellableCall(desk._handrail.call, Actor("x", "test"), "x", "op", "tool")
    with row.begun({}, lambda: False):
        row._end = lambda *_, **__: the_store_left()  # type: ignore[method-assign]


def the_store_left() -> None:
    raise StoreAway("the server does not answer")
