"""Calls that run on as tasks: outcome, questions, cancelling, bounds, and who may use them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from handrail.protocol.client_requests import MISSING_CAPABILITY, RequestCancelled, elicitation
from handrail.protocol.exchange import Exchange
from handrail.protocol.offer import TaskUse
from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION, NEWEST
from handrail.protocol.server import HeldStream, Server
from handrail.protocol.tasks import KEPT_TASKS, RUNNING_TASKS, TASKS_EXTENSION
from handrail.protocol.wire import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from tests.protocol.toy import Client, toy_offer

DEADLINE_S = 5.0
FORM = {"type": "object", "properties": {"v": {"type": "string"}}}
FOLLOWS: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}}


class Jobs:
    """Tools that run on; each waits at `gate` after it has detached, and says at `ended` how it went."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.ended: list[str] = []
        self.end = threading.Semaphore(0)

    def published(self) -> list[dict[str, Any]]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("may", "must", "never")]

    def waits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        return True

    def task_use(self, name: str) -> TaskUse:
        return {"never": TaskUse.NEVER, "must": TaskUse.MUST}.get(name, TaskUse.MAY)

    def call(self, exchange: Exchange, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        how = arguments.get("how", "complete")
        if how == "at once":
            return {"content": [], "structuredContent": {"at": "once"}}
        if how == "refuse at once":
            raise RpcError(INVALID_PARAMS, "refused at once")
        first = exchange.elicit("first?", FORM, key="first") if how == "ask first" else {}
        exchange.detach()
        exchange.detach()
        try:
            return self._run_on(exchange, how, first)
        except RequestCancelled:
            self.ended.append("cancelled")
            raise
        finally:
            self.end.release()

    def _run_on(self, exchange: Exchange, how: str, first: dict[str, Any]) -> dict[str, Any]:
        if how in ("ask", "ask first"):
            answers = exchange.ask({"a": elicitation("a?", FORM), "b": elicitation("b?", FORM)})
            return {"content": [], "structuredContent": {**answers, "first": first}}
        assert self.gate.wait(DEADLINE_S)
        exchange.raise_if_cancelled()
        if how == "refuse":
            raise RpcError(INVALID_PARAMS, "refused", {"why": "because"})
        if how == "break":
            raise ZeroDivisionError("a bug")
        return {"content": [], "structuredContent": {"how": how}}

    def has_ended(self) -> None:
        assert self.end.acquire(timeout=DEADLINE_S)


class TaskClient:
    """A stateless client that declares what `can` says, and hears of task states through a listening stream."""

    def __init__(self, can: Mapping[str, Any] = FOLLOWS, **changes: Any) -> None:
        self.jobs = Jobs()
        self.changed = threading.Condition()
        ticks = iter(range(100_000_000))
        ids = iter(f"task-{number}" for number in range(100_000))
        offer = toy_offer(**{"tools": self.jobs, "tasks": True, **changes})
        self.server = Server(offer, new_id=lambda: next(ids), now=lambda: f"t{next(ticks):06d}")
        self.client = Client(self.server)
        self.can = can

    def ask(self, method: str, request_id: str | int = 1, **params: Any) -> Any:
        meta = {META_VERSION: NEWEST, META_CAPABILITIES: dict(self.can)}
        return self.client.ask(method, {**params, "_meta": meta}, request_id)

    def start(self, name: str = "may", how: str = "complete", **params: Any) -> dict[str, Any]:
        result = self.ask("tools/call", name=name, arguments={"how": how}, **params)
        assert isinstance(result, dict)
        return result

    def get(self, task_id: str) -> dict[str, Any]:
        state = self.ask("tasks/get", taskId=task_id)
        assert isinstance(state, dict)
        return state

    def until(self, task_id: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The task's state once it is as wanted; heard of through notifications, never by polling with a pause."""
        heard = threading.Semaphore(0)
        listener = Client(self.server)
        listener.heard = Announced(heard)
        meta = {META_VERSION: NEWEST, META_CAPABILITIES: FOLLOWS}
        assert (
            listener.ask("subscriptions/listen", {"notifications": {"taskIds": [task_id]}, "_meta": meta})
            is HeldStream.OPEN
        )
        while not reached(state := self.get(task_id)):
            assert heard.acquire(timeout=DEADLINE_S), f"the task stays {state}"
        self.server.subscribers.detach(listener.connection)
        return state

    def until_status(self, task_id: str, status: str) -> dict[str, Any]:
        return self.until(task_id, lambda state: state["status"] == status)


class Announced(list[dict[str, Any]]):
    """A list that says when something was added."""

    def __init__(self, heard: threading.Semaphore) -> None:
        super().__init__()
        self._heard = heard

    def append(self, message: dict[str, Any]) -> None:
        super().append(message)
        self._heard.release()


@pytest.fixture
def follower() -> TaskClient:
    return TaskClient()


def code_of(ask: Callable[[], Any]) -> int:
    with pytest.raises(RpcError) as refused:
        ask()
    return refused.value.code


def test_a_call_that_detaches_is_answered_with_a_handle(follower: TaskClient) -> None:
    handle = follower.start()
    assert handle["resultType"] == "task"
    assert (handle["taskId"], handle["status"]) == ("task-0", "working")
    assert handle["ttlMs"] > 0
    assert handle["pollIntervalMs"] > 0
    assert "result" not in handle
    follower.jobs.gate.set()
    done = follower.until_status("task-0", "completed")
    assert done["result"]["structuredContent"] == {"how": "complete"}
    assert done["result"]["resultType"] == "complete"
    assert done["lastUpdatedAt"] > done["createdAt"] == handle["createdAt"]


def test_a_call_that_ends_before_it_detaches_is_answered_directly(follower: TaskClient) -> None:
    done = follower.start(how="at once")
    assert (done["resultType"], done["structuredContent"]) == ("complete", {"at": "once"})
    with pytest.raises(RpcError, match="refused at once"):
        follower.start(how="refuse at once")


def test_a_task_that_refuses_has_failed_with_its_error(follower: TaskClient) -> None:
    task_id = follower.start(how="refuse")["taskId"]
    follower.jobs.gate.set()
    failed = follower.until_status(task_id, "failed")
    assert failed["error"] == {"code": INVALID_PARAMS, "message": "refused", "data": {"why": "because"}}
    assert "result" not in failed


def test_a_task_that_breaks_has_failed_and_tells_no_secrets(follower: TaskClient) -> None:
    task_id = follower.start(how="break")["taskId"]
    follower.jobs.gate.set()
    failed = follower.until_status(task_id, "failed")
    assert failed["error"]["code"] == -32603
    assert "a bug" not in str(failed)


def test_a_task_asks_and_goes_on_once_everything_is_answered(follower: TaskClient) -> None:
    task_id = follower.start(how="ask")["taskId"]
    asking = follower.until_status(task_id, "input_required")
    keys = list(asking["inputRequests"])
    assert [key.partition("-")[0] for key in keys] == ["a", "b"]
    assert asking["inputRequests"][keys[0]] == elicitation("a?", FORM).as_dict()
    assert follower.ask("tasks/update", taskId=task_id, inputResponses={keys[0]: {"n": 1}})["resultType"] == "complete"
    still = follower.get(task_id)
    assert (still["status"], list(still["inputRequests"])) == ("input_required", keys[1:])
    follower.ask("tasks/update", taskId=task_id, inputResponses={keys[1]: {"n": 2}})
    done = follower.until_status(task_id, "completed")
    assert done["result"]["structuredContent"] == {"a": {"n": 1}, "b": {"n": 2}, "first": {}}
    assert "inputRequests" not in done


@pytest.mark.parametrize("responses", [{"nobody": {}}, {"a": {}}, {}, [], "text", 5, None])
def test_an_update_with_keys_nobody_asked_for_changes_nothing(follower: TaskClient, responses: Any) -> None:
    task_id = follower.start(how="ask")["taskId"]
    before = follower.until_status(task_id, "input_required")
    follower.ask("tasks/update", taskId=task_id, inputResponses=responses)
    assert follower.get(task_id) == before
    follower.ask("tasks/cancel", taskId=task_id)


@pytest.mark.parametrize("junk", ["text", 5, None, []])
def test_an_update_whose_answer_is_no_object_leaves_the_question_open(follower: TaskClient, junk: Any) -> None:
    task_id = follower.start(how="ask")["taskId"]
    asking = follower.until_status(task_id, "input_required")
    follower.ask("tasks/update", taskId=task_id, inputResponses=dict.fromkeys(asking["inputRequests"], junk))
    state = follower.get(task_id)
    follower.ask("tasks/cancel", taskId=task_id)
    assert state["status"] == "input_required"


def test_an_answered_question_is_not_answered_twice(follower: TaskClient) -> None:
    task_id = follower.start(how="ask")["taskId"]
    first, second = follower.until_status(task_id, "input_required")["inputRequests"]
    follower.ask("tasks/update", taskId=task_id, inputResponses={first: {"n": 1}})
    follower.ask("tasks/update", taskId=task_id, inputResponses={first: {"n": "other"}, second: {"n": 2}})
    done = follower.until_status(task_id, "completed")
    assert done["result"]["structuredContent"]["a"] == {"n": 1}


def test_a_call_may_ask_before_it_becomes_a_task_and_after(follower: TaskClient) -> None:
    asked = follower.start(how="ask first")
    assert asked["resultType"] == "input_required"
    handle = follower.start(
        how="ask first", inputResponses={"first": {"action": "accept"}}, requestState=asked["requestState"]
    )
    keys = follower.until_status(handle["taskId"], "input_required")["inputRequests"]
    follower.ask("tasks/update", taskId=handle["taskId"], inputResponses={key: {"n": 1} for key in keys})
    done = follower.until_status(handle["taskId"], "completed")
    assert done["result"]["structuredContent"]["first"] == {"action": "accept"}


def test_a_task_cancelled_while_it_asks_ends_its_wait(follower: TaskClient) -> None:
    task_id = follower.start(how="ask")["taskId"]
    follower.until_status(task_id, "input_required")
    follower.ask("tasks/cancel", taskId=task_id)
    follower.jobs.has_ended()
    assert follower.jobs.ended == ["cancelled"]
    cancelled = follower.get(task_id)
    assert cancelled["status"] == "cancelled"
    assert "inputRequests" not in cancelled


def test_a_task_cancelled_while_it_works_is_told_at_its_next_look(follower: TaskClient) -> None:
    task_id = follower.start()["taskId"]
    follower.ask("tasks/cancel", taskId=task_id)
    assert follower.get(task_id)["status"] == "cancelled"
    follower.jobs.gate.set()
    follower.jobs.has_ended()
    assert follower.jobs.ended == ["cancelled"]


def test_a_task_that_has_ended_stays_as_it_ended(follower: TaskClient) -> None:
    task_id = follower.start()["taskId"]
    follower.jobs.gate.set()
    done = follower.until_status(task_id, "completed")
    follower.ask("tasks/cancel", taskId=task_id)
    follower.ask("tasks/update", taskId=task_id, inputResponses={"a-1": {}})
    assert follower.get(task_id) == done


def test_a_cancelled_task_is_not_completed_by_a_late_result() -> None:
    follower = TaskClient()
    task_id = follower.start(how="ask")["taskId"]
    keys = follower.until_status(task_id, "input_required")["inputRequests"]
    follower.ask("tasks/cancel", taskId=task_id)
    follower.ask("tasks/update", taskId=task_id, inputResponses={key: {} for key in keys})
    follower.jobs.has_ended()
    state = follower.get(task_id)
    assert state["status"] == "cancelled"
    assert "result" not in state


@pytest.mark.parametrize("task_id", ["task-99", "", None, 5, {}, []])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_an_unknown_task_is_invalid_params(follower: TaskClient, method: str, task_id: Any) -> None:
    assert code_of(lambda: follower.ask(method, taskId=task_id)) == INVALID_PARAMS


def test_finished_tasks_are_forgotten_beyond_a_bound_oldest_first_and_running_ones_never(
    follower: TaskClient,
) -> None:
    running = follower.start(how="ask")["taskId"]
    follower.jobs.gate.set()
    finished = []
    for _ in range(KEPT_TASKS + 5):
        finished.append(follower.start()["taskId"])
        follower.jobs.has_ended()
    follower.until_status(finished[-1], "completed")
    for forgotten in finished[:5]:
        assert code_of(lambda known=forgotten: follower.get(known)) == INVALID_PARAMS  # type: ignore[misc]
    assert follower.get(finished[10])["status"] == "completed"
    assert follower.get(running)["status"] == "input_required"
    follower.ask("tasks/cancel", taskId=running)


def test_running_tasks_are_bounded_and_a_place_is_free_again_once_one_has_ended(follower: TaskClient) -> None:
    asking = [follower.start(how="ask")["taskId"] for _ in range(RUNNING_TASKS)]
    with pytest.raises(RpcError) as refused:
        follower.start()
    assert refused.value.code == INVALID_REQUEST
    assert refused.value.data is not None
    assert refused.value.data["running"] == RUNNING_TASKS
    assert "tasks/get" in refused.value.data["details"]
    assert "tasks/cancel" in refused.value.data["details"]
    assert follower.ask("tools/call", name="never", arguments={"how": "at once"})["structuredContent"] == {"at": "once"}
    for task_id in asking:
        follower.ask("tasks/cancel", taskId=task_id)
        follower.jobs.has_ended()
    follower.jobs.gate.set()
    again = [follower.start(how="at once") for _ in range(2 * RUNNING_TASKS)]  # none of these keeps its place
    assert all(result["structuredContent"] == {"at": "once"} for result in again)


# -- who may use tasks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("can", [{}, {"extensions": {}}, {"extensions": []}, {"extensions": {"other": {}}}])
def test_a_tool_that_must_be_a_task_is_refused_without_the_extension(can: dict[str, Any]) -> None:
    client = TaskClient(can=can)
    with pytest.raises(RpcError) as refused:
        client.start(name="must")
    assert refused.value.code == MISSING_CAPABILITY
    assert refused.value.data == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_task_methods_need_the_extension(method: str) -> None:
    assert code_of(lambda: TaskClient(can={}).ask(method, taskId="x")) == MISSING_CAPABILITY


def test_listening_to_tasks_needs_the_extension() -> None:
    client = TaskClient(can={})
    listen = lambda: client.ask("subscriptions/listen", notifications={"taskIds": ["x"]})  # noqa: E731
    assert code_of(listen) == MISSING_CAPABILITY


@pytest.mark.parametrize("name", ["may", "never"])
def test_without_the_extension_a_call_goes_on_as_before(name: str) -> None:
    client = TaskClient(can={})
    client.jobs.gate.set()
    assert client.start(name=name)["resultType"] == "complete"


def test_a_tool_that_is_never_a_task_answers_directly_even_when_it_detaches(follower: TaskClient) -> None:
    follower.jobs.gate.set()
    assert follower.start(name="never")["resultType"] == "complete"


@pytest.mark.parametrize("name", ["may", "must"])
def test_a_handshake_client_gets_the_result_and_never_a_task(follower: TaskClient, name: str) -> None:
    follower.jobs.gate.set()
    old = Client(follower.server)
    old.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": dict(FOLLOWS)})
    assert old.ask("tools/call", {"name": name})["structuredContent"] == {"how": "complete"}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert code_of(lambda known=method: old.ask(known, {"taskId": "x"})) == METHOD_NOT_FOUND  # type: ignore[misc]


def test_a_server_without_tasks_declares_and_knows_none() -> None:
    client = TaskClient(tasks=False)
    assert "extensions" not in client.ask("server/discover")["capabilities"]
    assert code_of(lambda: client.ask("tasks/get", taskId="x")) == METHOD_NOT_FOUND
    assert TaskClient().ask("server/discover")["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
