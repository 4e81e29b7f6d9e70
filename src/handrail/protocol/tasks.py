"""The tasks extension: calls that continue after their reply, which clients follow by a handle.

Handles live as long as the process. A task runs on a thread of its own; to ask the client it waits for `tasks/update`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from handrail.protocol.client_requests import (
    Answers,
    ClientRequest,
    PendingRequest,
    RequestCancelled,
    missing_capability,
)
from handrail.protocol.exchange import Exchange
from handrail.protocol.wire import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TTL_MS = 3_600_000
POLL_MS = 500
KEPT_TASKS = 1000
"""Finished tasks beyond this are forgotten, oldest first."""

RUNNING_TASKS = 64
"""How many calls that may become tasks can run at once, over all clients: each keeps a thread as long as it likes."""

_FINAL = ("completed", "failed", "cancelled")


def follows_tasks(exchange: Exchange) -> bool:
    """True if the client declared the extension on this request."""
    extensions = exchange.client_capabilities.get("extensions")
    return exchange.stateless and isinstance(extensions, dict) and TASKS_EXTENSION in extensions


def require_tasks(exchange: Exchange) -> None:
    if not follows_tasks(exchange):
        raise missing_capability({"extensions": {TASKS_EXTENSION: {}}}, stateless=True)


class ContinuedCall:
    """One call that continues after its reply."""

    def __init__(
        self,
        task_id: str,
        *,
        now: Callable[[], str],
        changed: Callable[[ContinuedCall], None],
        stop: Callable[[], None],
    ) -> None:
        self.id: Final = task_id
        self.status = "working"
        self._stop = stop
        self._now = now
        self._changed = changed
        self._created = self._updated = now()
        self._result: dict[str, Any] | None = None
        self._error: dict[str, Any] | None = None
        self._questions: dict[str, tuple[ClientRequest, PendingRequest]] = {}
        self._asked = 0
        self._lock = threading.Lock()

    def _move(self, status: str) -> bool:
        with self._lock:
            if self.status in _FINAL:
                return False
            self.status = status
            self._updated = self._now()
        self._changed(self)
        return True

    def complete(self, result: dict[str, Any]) -> None:
        self._result = {"resultType": "complete", **result}
        self._move("completed")

    def fail(self, error: RpcError) -> None:
        self._error = error.as_dict()
        self._move("failed")

    def cancel(self) -> None:
        if self._move("cancelled"):
            self._stop()
            for _, question in tuple(self._questions.values()):
                question.abandon()

    def ask(self, requests: Mapping[str, ClientRequest], answers: Answers) -> dict[str, Any]:
        """Asks questions and waits for `tasks/update`. Their keys are made unique over the task's life."""
        known = answers.known(requests)
        keys: dict[str, str] = {}
        with self._lock:
            for key, request in requests.items():
                if key not in known:
                    self._asked += 1
                    keys[key] = f"{key}-{self._asked}"
                    self._questions[keys[key]] = (request, PendingRequest())
            waiting = {key: self._questions[asked][1] for key, asked in keys.items()}
        if waiting and not self._move("input_required"):
            raise RequestCancelled
        return {**known, **{key: question.wait() for key, question in waiting.items()}}

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Takes the client's answers. Keys that were not asked for are ignored; so are answers that are not objects."""
        with self._lock:
            answered = [key for key, value in responses.items() if key in self._questions and isinstance(value, dict)]
            settled = [(self._questions.pop(key)[1], responses[key]) for key in answered]
            open_questions = bool(self._questions)
        if settled and not open_questions and self.status == "input_required":
            self._move("working")
        for question, value in settled:
            question.settle(value)

    def as_dict(self, *, whole: bool = True) -> dict[str, Any]:
        """The task as sent to clients. `whole` adds its outcome or its open questions."""
        state: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self._created,
            "lastUpdatedAt": self._updated,
            "ttlMs": TTL_MS,
            "pollIntervalMs": POLL_MS,
        }
        if whole and self.status == "completed":
            state["result"] = self._result
        if whole and self.status == "failed":
            state["error"] = self._error
        if whole and self.status == "input_required":
            state["inputRequests"] = {key: request.as_dict() for key, (request, _) in tuple(self._questions.items())}
        return state


class TaskBoard:
    """The tasks of one server."""

    def __init__(
        self,
        *,
        new_id: Callable[[], str],
        now: Callable[[], str],
        changed: Callable[[ContinuedCall], None],
        most: int = RUNNING_TASKS,
    ) -> None:
        self._most = most
        self._running = 0
        self._new_id = new_id
        self._now = now
        self._changed = changed
        self._tasks: dict[str, ContinuedCall] = {}
        self._lock = threading.Lock()

    def find(self, task_id: object) -> ContinuedCall:
        task = self._tasks.get(task_id) if isinstance(task_id, str) else None
        if task is None:
            raise RpcError(INVALID_PARAMS, "Unknown task", {"taskId": task_id if isinstance(task_id, str) else None})
        return task

    def _create(self, stop: Callable[[], None]) -> ContinuedCall:
        task = ContinuedCall(self._new_id(), now=self._now, changed=self._changed, stop=stop)
        with self._lock:
            self._tasks[task.id] = task
            finished = [known.id for known in self._tasks.values() if known.status in _FINAL]
            for surplus in finished[: max(0, len(self._tasks) - KEPT_TASKS)]:
                del self._tasks[surplus]
        return task

    def run(self, exchange: Exchange, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Runs a call that may detach. Returns its result, or the handle of the task it continues as."""
        self._take_place()
        turned = threading.Event()
        outcome: list[dict[str, Any] | BaseException] = []

        def detach() -> None:
            if exchange.task is None:
                exchange.task = self._create(exchange.cancel)
                turned.set()

        def work() -> None:
            try:
                result = call()
            except Exception as error:  # noqa: BLE001 - passed on to the reply, or to the task
                if exchange.task is None:
                    outcome.append(error)
                else:
                    self._record_failure(exchange.task, error)
            else:
                if exchange.task is None:
                    outcome.append(result)
                else:
                    exchange.task.complete(result)
            finally:
                with self._lock:
                    self._running -= 1
                turned.set()

        exchange.detach = detach
        threading.Thread(target=work, name="handrail-task", daemon=True).start()
        turned.wait()
        if exchange.task is not None:
            return {"resultType": "task", **exchange.task.as_dict(whole=False)}
        ended = outcome[0]
        if isinstance(ended, BaseException):
            raise ended
        return ended

    def _take_place(self) -> None:
        with self._lock:
            if self._running < self._most:
                self._running += 1
                return
        details = f"{self._most} tasks are running, the most at once: wait for one with tasks/get, or tasks/cancel one"
        raise RpcError(INVALID_REQUEST, "Too many tasks", {"details": details, "running": self._most})

    @staticmethod
    def _record_failure(task: ContinuedCall, error: Exception) -> None:
        if isinstance(error, RequestCancelled):
            task.cancel()
        elif isinstance(error, RpcError):
            task.fail(error)
        else:
            task.fail(RpcError(INTERNAL_ERROR, "Internal error", {"details": f"{type(error).__name__} in a task"}))
