"""One connection, and one request under way on it. What a handler sees of the protocol; no dispatch, no transport."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from handrail.protocol.asking import (
    MAY_ASK,
    Answers,
    Cancelled,
    ClientRequest,
    Question,
    check_capabilities,
    elicitation,
    has_forms,
)
from handrail.protocol.revisions import ELICITATION_SINCE, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION
from handrail.protocol.wire import RequestId, Response, notification_of, request_of

if TYPE_CHECKING:
    from handrail.protocol.subscriptions import Listener
    from handrail.protocol.tasks import Task

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

Send = Callable[[dict[str, Any]], None]


class Connection:
    """State that outlives a request: what the handshake settled, what we asked the client, and who listens."""

    def __init__(self, send: Send, *, lasting: bool = True) -> None:
        self.send = send
        self.lasting = lasting
        """False for one that is made for a single request: whoever calls again cannot be known by it."""
        self.revision: str | None = None
        """The handshake revision agreed on; None until `initialize` has succeeded."""
        self.client_capabilities: dict[str, Any] = {}
        self.client_info: dict[str, Any] = {}
        self.log_level = "info"
        self.subscribed: set[str] = set()
        """Resources this client wants to hear of, handshake era."""
        self.listeners: dict[RequestId, Listener] = {}
        """Open `subscriptions/listen` streams of the stateless era, by request id."""
        self.principal: Any = None
        """Whom the transport has let in, where it asks; nothing of it is the protocol's."""
        self.memory: Any = None
        """What the surface above remembers of its client; nothing of it is the protocol's."""
        self.closing = False
        """True once `shutdown` was asked for: the transport leaves after the reply."""
        self.failed = False
        """True once something the server cannot do without has failed: a pipe's transport answers, then ends with 1."""
        self._questions: dict[RequestId, Question] = {}
        self._asked = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def is_asking(self) -> bool:
        """True while a handler waits for the client's answer."""
        return bool(self._questions)

    @property
    def has_forms(self) -> bool:
        """Whether a handshake client said that it can put a form before its person."""
        return (self.revision or "") >= ELICITATION_SINCE and has_forms(self.client_capabilities)

    def put(self, request: ClientRequest, question: Question, emit: Send) -> str:
        """Sends a request to the client; its response will settle the question. On a closed connection nobody will.
        The request's id, for taking it back."""
        with self._lock:
            self._asked += 1
            request_id = f"handrail-{self._asked}"
            if not self._closed:
                self._questions[request_id] = question
        if self._closed:
            question.abandon()
        else:
            emit(request_of(request_id, request.method, dict(request.params)))
        return request_id

    def take_back(self, request_id: str, emit: Send) -> bool:
        """Tells the client that a request of ours needs no answer any more. False where it has been answered, or where
        nobody is left to tell."""
        if self._questions.pop(request_id, None) is None:
            return False
        emit(notification_of("notifications/cancelled", {"requestId": request_id, "reason": "no longer asked"}))
        return True

    def settle(self, response: Response) -> None:
        """Takes the client's answer to a request of ours; one we never made is ignored."""
        if response.id is not None and (question := self._questions.pop(response.id, None)) is not None:
            question.settle(response.result, response.error)

    def close(self) -> None:
        """The client is gone: whoever waits for its answers is told so."""
        with self._lock:
            self._closed = True
            questions, self._questions = self._questions, {}
        for question in questions.values():
            question.abandon()


class Exchange:
    """One request being served: its revision, its client, and ways to talk back before the reply."""

    __slots__ = (
        "_last_progress",
        "_question",
        "answers",
        "cancelled",
        "close_stream",
        "connection",
        "detach",
        "emit",
        "meta",
        "method",
        "params",
        "request_id",
        "stateless",
        "task",
    )

    def __init__(
        self,
        connection: Connection,
        request_id: RequestId,
        method: str,
        params: dict[str, Any],
        *,
        stateless: bool,
        emit: Send,
    ) -> None:
        self.connection = connection
        self.request_id = request_id
        self.method = method
        self.params = params
        self.stateless = stateless
        self.emit = emit
        self.cancelled = False
        meta = params.get("_meta")
        self.meta: dict[str, Any] = meta if isinstance(meta, dict) else {}
        self.answers = Answers()
        """What the client has answered so far to a stateless request that is being retried."""
        self.task: Task | None = None
        """Set once the call runs on as a task."""
        self.detach: Callable[[], None] = lambda: None
        """From here on run as a task, where the client can follow one; otherwise go on as before."""
        self.close_stream: Callable[[], None] = lambda: None
        """Ends the stream this reply would travel on, where it can be resumed; the client comes back for the rest."""
        self._last_progress: float | None = None
        self._question: Question | None = None

    @property
    def revision(self) -> str | None:
        """The protocol revision this request is served under."""
        return self.meta.get(META_VERSION) if self.stateless else self.connection.revision

    @property
    def client_capabilities(self) -> dict[str, Any]:
        return self.meta.get(META_CAPABILITIES, {}) if self.stateless else self.connection.client_capabilities

    # -- telling ----------------------------------------------------------------------------------------------------

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tells the client something about this request while it runs. A task has no stream to say it on."""
        if self.task is None:
            self.emit(notification_of(method, params))

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress where the client asked for it. Values that do not grow are left out, as the protocol
        demands."""
        self.raise_if_cancelled()
        token = self.meta.get("progressToken")
        if token is None or (self._last_progress is not None and progress <= self._last_progress):
            return
        self._last_progress = progress
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.notify("notifications/progress", params)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """A log line for the client, if it wants lines of this level: stateless clients say so on each request."""
        floor = self.meta.get(META_LOG_LEVEL) if self.stateless else self.connection.log_level
        if floor in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(floor):
            named = {"logger": logger} if logger is not None else {}
            self.notify("notifications/message", {"level": level, **named, "data": data})

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, Any]:
        """Asks the client and returns its answers by the same keys.

        One call, three carriers: a live request on a handshake connection; on a stateless one a result that asks for
        input, after which the client retries and this handler runs again from the top with the answers at hand; inside
        a task, the task waits for input. Keys must be unique within one handler.
        """
        check_capabilities(requests.values(), self.client_capabilities, stateless=self.stateless)
        if self.task is not None:
            return self.task.ask(requests, self.answers)
        if self.stateless:
            return self.answers.take(requests)
        return {key: self._asked_live(request).wait() for key, request in requests.items()}

    def _asked_live(self, request: ClientRequest, wait_s: Callable[[], float] | None = None) -> Question:
        """The question, settled, or taken back once `wait_s` gives it no more time."""
        # Known to `cancel` before it goes out: a cancellation may come at any moment from here on.
        question = self._question = Question()
        self.raise_if_cancelled()
        request_id = self.connection.put(request, question, self.emit)
        try:
            while not question.is_settled:
                pause = wait_s() if wait_s is not None else None
                if pause is not None and pause <= 0:
                    break
                question.rest(pause)
        finally:
            # Also of a call that was cancelled, or that failed meanwhile: its question has no reader any more.
            if self.connection.take_back(request_id, self.emit):
                question.abandon()
        return question

    def elicit(self, message: str, schema: Mapping[str, Any], *, key: str = "input") -> dict[str, Any]:
        """Asks the person at the client; the answer has an `action` and, when accepted, `content`."""
        answer = self.ask({key: elicitation(message, schema)})[key]
        return answer if isinstance(answer, dict) else {}

    @property
    def can_elicit(self) -> bool:
        """Whether the person at the client can be asked by a form in the course of this request."""
        if not self.stateless:
            return self.connection.has_forms
        return self.method in MAY_ASK and has_forms(self.client_capabilities)

    def elicit_while(
        self, wait_s: Callable[[], float], message: str, schema: Mapping[str, Any], *, key: str
    ) -> dict[str, Any] | None:
        """The same with an end: `wait_s` says for how long to wait until it is asked again, and takes the question back
        with 0. None where there was no answer by then, or where none can come any more. On a stateless request nothing
        waits; only an answer to a question that was put counts there."""
        request = elicitation(message, schema)
        check_capabilities([request], self.client_capabilities, stateless=self.stateless)
        if self.stateless:
            answer = self.answers.take({key: request}, unasked=False)[key]
        else:
            try:
                answer = self._asked_live(request, wait_s).wait()
            except Cancelled:
                self.raise_if_cancelled()
                return None
        return answer if isinstance(answer, dict) else {}

    # -- ending -----------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The client no longer wants the reply. Safe from any thread."""
        self.cancelled = True
        if self._question is not None:
            self._question.abandon()

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled
