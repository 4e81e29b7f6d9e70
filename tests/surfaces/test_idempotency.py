"""A call with an idempotency key is done once, however often and from wherever it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import IdentityUnproven, InvalidParams, KeyReused, Refusal, StoreBusy, TaskBlocked
from handrail.operation import Bounds, Call, HouseRules, Wait
from handrail.surfaces.idempotency import KEPT_MS, LONGEST_TURN_MS
from handrail.surfaces.invocation import CallingClient
from tests.surfaces.keyed import Made, Make, Slow, an_operation, call_it, noticed, workflows
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import Beginning, RegistryDesk

NEW: dict[str, Any] = {"name": "Work", "source_type": "prompt", "source_content": "Do it."}


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "idempotency", "cancellation")


# -- once -------------------------------------------------------------------------------------------------------------


def test_the_same_call_is_answered_again_and_not_done_again(desk: RegistryDesk) -> None:
    first = desk.call("workflow_create", **NEW, idempotency_key="k1")
    again = desk.call("workflow_create", **NEW, idempotency_key="k1")
    assert again == {**first, "idempotent": True}
    assert "idempotent" not in first
    assert workflows(desk) == 1


def test_the_documents_spelling_is_understood_too(desk: RegistryDesk) -> None:
    first = desk.call("workflow_create", **NEW, idempotencyKey="k1")
    assert desk.call("workflow_create", **NEW, idempotency_key="k1")["id"] == first["id"]
    refusal = desk.refusal("workflow_create", **NEW, idempotency_key="k1", idempotencyKey="k2")
    assert isinstance(refusal, InvalidParams)


def test_what_is_left_out_and_what_is_said_to_be_the_default_are_the_same(desk: RegistryDesk) -> None:
    first = desk.call("workflow_create", **NEW, idempotency_key="k1")
    again = desk.call("workflow_create", **NEW, max_parallel_tasks=1, idempotency_key="k1", op_id="again")
    assert again["id"] == first["id"]


def test_other_arguments_under_the_same_key_are_a_conflict(desk: RegistryDesk) -> None:
    desk.call("workflow_create", **NEW, idempotency_key="k1")
    refusal = desk.refusal("workflow_create", **{**NEW, "name": "Other"}, idempotency_key="k1")
    assert isinstance(refusal, KeyReused)
    assert refusal.code == "IDEMPOTENCY_CONFLICT"
    assert workflows(desk) == 1


def test_a_key_belongs_to_one_tool(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    desk.call("workflow_create", **NEW, idempotency_key="k1")
    status: dict[str, Any] = {"id": "task_1", "status": "in_progress", "idempotency_key": "k1"}
    assert "idempotent" not in desk.call("task_update_status", **status)
    assert desk.call("task_update_status", **status)["idempotent"] is True


def test_the_same_words_of_another_agent_are_another_call(desk: RegistryDesk) -> None:
    anna, ben = (desk.call("agent_register", name=name, runtime="custom")["id"] for name in ("Anna", "Ben"))
    desk.call("workflow_create", **NEW, idempotency_key="k1", agent_id=anna)
    assert isinstance(desk.refusal("workflow_create", **NEW, idempotency_key="k1", agent_id=ben), KeyReused)


def test_whoever_a_connection_implies_does_not_matter(desk: RegistryDesk) -> None:
    """A client that was cut off repeats its call as it was, before it has registered again or after."""
    anna, ben = (desk.call("agent_register", name=name, runtime="custom")["id"] for name in ("Anna", "Ben"))
    first = desk.call_as(CallingClient((anna,)), "workflow_create", **NEW, idempotency_key="k1")
    for connection in (CallingClient(), CallingClient((ben,)), CallingClient((anna, ben))):
        again = desk.call_as(connection, "workflow_create", **NEW, idempotency_key="k1")
        assert (again["id"], again["idempotent"]) == (first["id"], True)


def test_a_refusal_is_not_kept(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]})
    anna = desk.call("agent_register", name="Anna", runtime="custom")["id"]
    claim: dict[str, Any] = {"task_id": "task_2", "agent_id": anna, "idempotency_key": "k1"}
    assert isinstance(desk.refusal("task_claim", **claim), TaskBlocked)
    desk.move("task_1", "in_progress", "completed")
    assert desk.call("task_claim", **claim)["success"] is True


def test_an_answer_that_wrote_nothing_is_kept_too(desk: RegistryDesk) -> None:
    desk.plan({"name": "one"})
    anna, ben = (desk.call("agent_register", name=name, runtime="custom")["id"] for name in ("Anna", "Ben"))
    desk.call("task_claim", task_id="task_1", agent_id=anna)
    claim: dict[str, Any] = {"task_id": "task_1", "agent_id": ben, "idempotency_key": "k1"}
    denied = desk.call("task_claim", **claim)
    desk.call("task_release", task_id="task_1", agent_id=anna)
    again = desk.call("task_claim", **claim)
    assert again["success"] is denied["success"] is False
    assert again["idempotent"] is True


def test_a_key_is_forgotten_after_a_day(desk: RegistryDesk) -> None:
    desk.call("workflow_create", **NEW, idempotency_key="k1")
    desk.clock.advance(KEPT_MS - 1)
    assert desk.call("workflow_create", **NEW, idempotency_key="k1")["idempotent"] is True
    desk.clock.advance(1)
    assert "idempotent" not in desk.call("workflow_create", **NEW, idempotency_key="k1")
    assert workflows(desk) == 2


@given(st.lists(st.tuples(st.sampled_from(("k1", "k2", "k3")), st.sampled_from(("a", "b"))), max_size=12))
def test_whatever_is_repeated_is_done_once_a_key(tmp_path_factory: Any, calls: list[tuple[str, str]]) -> None:
    desk = RegistryDesk(tmp_path_factory.mktemp("desk"), "idempotency")
    model: dict[str, tuple[str, str]] = {}
    for key, name in calls:
        given_name = {**NEW, "name": name}
        if key in model and model[key][0] != name:
            assert isinstance(desk.refusal("workflow_create", **given_name, idempotency_key=key), KeyReused)
            continue
        answer = desk.call("workflow_create", **given_name, idempotency_key=key)
        assert answer.get("idempotent", False) is (key in model)
        assert model.setdefault(key, (name, answer["id"])) == (name, answer["id"])
    assert workflows(desk) == len(model)


# -- who may give one -------------------------------------------------------------------------------------------------


def test_what_only_reads_takes_no_key(desk: RegistryDesk) -> None:
    for tool in ("workflow_list", "mcp_info"):
        refusal = desk.refusal(tool, idempotency_key="k1")
        assert isinstance(refusal, InvalidParams)
        assert "leave idempotency_key out" in refusal.hint


def test_without_the_toolset_a_key_is_refused_and_the_flag_named(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path)
    for name in ("idempotency_key", "idempotencyKey"):
        refusal = desk.refusal("workflow_create", **NEW, **{name: "k1"})
        assert isinstance(refusal, InvalidParams)
        assert "--enable-idempotency" in refusal.hint
    assert workflows(desk) == 0


@pytest.mark.parametrize("key", ["", "x" * 201, 7, None, "a\x00b"])
def test_a_key_that_cannot_be_one_is_refused(desk: RegistryDesk, key: Any) -> None:
    assert isinstance(desk.refusal("workflow_create", **NEW, idempotency_key=key), InvalidParams)
    assert workflows(desk) == 0


# -- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_is_not_kept(desk: RegistryDesk) -> None:
    anna: dict[str, Any] = {"name": "Anna", "runtime": "custom", "idempotency_key": "k1"}
    first = desk.call("agent_register", **anna)
    kept = desk.store.run(TESTER, lambda unit: unit.key_answer("plan.agent_register", "k1"))
    assert kept is not None
    assert first["secret"].encode() not in kept[1]
    again = desk.call("agent_register", **anna)
    assert again["id"] == first["id"]
    assert "secret" not in again
    assert "told once" in again["warnings"][0]


@pytest.mark.parametrize("identity", ["open", "strict"])
def test_whoever_repeats_a_registration_has_not_proved_to_be_the_agent(tmp_path: Path, identity: str) -> None:
    desk = RegistryDesk(tmp_path, "idempotency", identity=identity)
    anna: dict[str, Any] = {"name": "Anna", "runtime": "custom", "idempotency_key": "k1"}
    agent_id = desk.call_as(CallingClient(), "agent_register", **anna)["id"]
    another = CallingClient()
    desk.call_as(another, "agent_register", **anna)
    assert another.agents == ([] if identity == "strict" else [agent_id])
    if identity == "strict":
        with pytest.raises(IdentityUnproven):
            desk.call_as(another, "agent_list", agent_id=agent_id)


def test_the_same_key_in_another_repository_is_a_conflict_and_not_its_answer(tmp_path: Path) -> None:
    first = RegistryDesk(tmp_path / "one", "idempotency")
    other = RegistryDesk(tmp_path / "two", "idempotency", store=first.store)
    first.call("workflow_create", **NEW, idempotency_key="k1")
    assert isinstance(other.refusal("workflow_create", **NEW, idempotency_key="k1"), KeyReused)


# -- operations that look at the world first, and those that are followed by something --------------------------------


def test_where_the_first_was_refused_the_second_does_it(desk: RegistryDesk) -> None:
    slow = Slow()

    def fails_first(call: Call, request: Any) -> None:
        slow(call, request)
        if slow.times == 1:
            raise InvalidParams("not now")

    operation = an_operation(prepare=fails_first)
    first = Beginning(lambda: call_it(desk, operation))
    assert slow.begun.wait(20)
    waits = noticed(desk)
    second = Beginning(lambda: call_it(desk, operation))
    assert waits.wait(20)
    slow.go_on.set()
    with pytest.raises(Refusal):
        first.result()
    assert "idempotent" not in second.result()
    assert workflows(desk) == 1


class Killed(BaseException):
    """What happens to a process rather than to a call."""


def left_behind(desk: RegistryDesk) -> None:
    """A first call that began and came to no end: nothing more of it was written."""

    def die(call: Call, request: Any) -> None:
        del call, request
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr("handrail.surfaces.cancellable_call.CancellableCall._end", lambda *_, **__: None)
        call_it(desk, an_operation(prepare=die))


@pytest.mark.parametrize("alive", [False, None])
def test_a_first_call_that_died_keeps_nobody_waiting(desk: RegistryDesk, alive: bool | None) -> None:
    operation = an_operation(prepare=lambda _call, _request: None)
    left_behind(desk)
    desk.with_world(is_alive=lambda _: alive)
    desk.with_call(rules=lambda: HouseRules(bounds=Bounds(wait_ms=1)))
    if alive is None:  # it ran on another machine: nobody can tell, so it is waited for, within reason
        with pytest.raises(StoreBusy) as busy:
            call_it(desk, operation)
        assert "same key" in busy.value.hint
        desk.clock.advance(LONGEST_TURN_MS + 1)
    assert "idempotent" not in call_it(desk, operation)
    assert workflows(desk) == 1


def test_what_follows_a_call_is_done_again_with_its_answer(desk: RegistryDesk) -> None:
    followed: list[Any] = []

    def follow(call: Call, request: Make, made: Made) -> Callable[[Call], Made]:
        del call, request
        followed.append(made)
        return lambda _: msgspec.structs.replace(made, names=[*made.names, "followed"])

    operation = an_operation(follow=follow)
    first = call_it(desk, operation)
    assert call_it(desk, operation) == {**first, "idempotent": True}
    assert followed == [Made(first["id"], ["it"])] * 2


def test_an_answer_that_still_waits_is_not_kept(desk: RegistryDesk) -> None:
    over = False
    wait = Wait[Any, Any](for_ms=lambda request: request.wait_ms, is_over=lambda _: over)
    operation = an_operation(wait=wait)
    first = call_it(desk, operation, wait_ms=1)
    over = True
    second = call_it(desk, operation, wait_ms=1)
    assert second["id"] != first["id"]
    assert call_it(desk, operation, wait_ms=1) == {**second, "idempotent": True}
