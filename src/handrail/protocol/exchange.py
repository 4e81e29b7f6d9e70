"""One connection, and one request under way on it: a handler's view of the protocol. No dispatch, no transport."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from handrail.protocol.client_requests import (
    MAY_ASK,
    Answers,
    ClientRequest,
    PendingRequest,
    RequestCancelled,
    check_capabilities,
    elicitation,
    has_forms,
)
from handrail.protocol.revisions import ELICITATION_SINCE, META_CAPABILITIES, META_LOG_LEVEL, META_VERSION
from handrail.protocol.wire import RequestId, Response, notification_of, request_of

if TYPE_CHECKING:
    from handrail.protocol.subscriptions import Subscription
    from handrail.protocol.tasks import ContinuedCall

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

Send = Callable[[dict[str, Any]], None]


class Connection:
    """State that outlives a request: the result of the handshake, what we asked the client, and who is listening."""

    def __init__(self, send: Send, *, lasting: bool = True) -> None:
        self.send = send
        self.lasting = lasting
        """False if made for a single request: it cannot be used to recognise a client that calls again."""
        self.revision: str | None = None
        """The handshake revision agreed on; None until `initialize` has succeeded."""
        self.client_capabilities: dict[str, Any] = {}
        self.client_info: dict[str, Any] = {}
        self.log_level = "info"
        self.subscribed: set[str] = set()
        """Resources this client subscribed to, handshake era."""
        self.listeners: dict[RequestId, Subscription] = {}
        """Open `subscriptions/listen` streams of the stateless era, by request id."""
        self.principal: Any = None
        """Who was admitted, if the transport checks that. Opaque to the protocol."""
        self.memory: Any = None
        """What the surface above remembers about its client. Opaque to the protocol."""
        self.closing = False
        """True once `shutdown` was called: the transport stops after the reply."""
        self.failed = False
        """True once something essential to the server has failed: the stdio transport answers, then exits with 1."""
        self._questions: dict[RequestId, PendingRequest] = {}
        self._asked = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def is_asking(self) -> bool:
        """True while a handler waits for the client's answer."""
        return bool(self._questions)

    @property
    def has_forms(self) -> bool:
        """Whether a handshake client declared that it can show forms to its user."""
        return (self.revision or "") >= ELICITATION_SINCE and has_forms(self.client_capabilities)

    def put(self, request: ClientRequest, question: PendingRequest, emit: Send) -> str:
        """Sends a request to the client, whose response will settle the question, and returns the request's id for
        `take_back`. On a closed connection the question is abandoned at once."""
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
        """Tells the client that a request of ours no longer needs an answer. False if it was answered already, or if
        nobody is left to tell."""
        if self._questions.pop(request_id, None) is None:
            return False
        emit(notification_of("notifications/cancelled", {"requestId": request_id, "reason": "no longer asked"}))
        return True

    def settle(self, response: Response) -> None:
        """Takes the client's answer to a request of ours; answers to anything else are ignored."""
        if response.id is not None and (question := self._questions.pop(response.id, None)) is not None:
            question.settle(response.result, response.error)

    def close(self) -> None:
        """The client is gone: ends every wait for its answers."""
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
        self.task: ContinuedCall | None = None
        """Set once the call continues as a task."""
        self.detach: Callable[[], None] = lambda: None
        """Makes the call continue as a task if the client can follow one; otherwise has no effect."""
        self.close_stream: Callable[[], None] = lambda: None
        """Ends the stream that carries this reply if it can be resumed; the client comes back for the rest."""
        self._last_progress: float | None = None
        self._question: PendingRequest | None = None

    @property
    def revision(self) -> str | None:
        """The protocol revision this request is served under."""
        return self.meta.get(META_VERSION) if self.stateless else self.connection.revision

    @property
    def client_capabilities(self) -> dict[str, Any]:
        return self.meta.get(META_CAPABILITIES, {}) if self.stateless else self.connection.client_capabilities

    # -- telling ----------------------------------------------------------------------------------------------------

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tells the client something about this request while it runs. Dropped for a task, which has no stream."""
        if self.task is None:
            self.emit(notification_of(method, params))

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress if the client asked for it. Drops values that do not increase, as the protocol demands."""
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
        """Sends the client a log line if it wants this level; stateless clients say so on each request."""
        floor = self.meta.get(META_LOG_LEVEL) if self.stateless else self.connection.log_level
        if floor in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(floor):
            named = {"logger": logger} if logger is not None else {}
            self.notify("notifications/message", {"level": level, **named, "data": data})

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, requests: Mapping[str, ClientRequest]) -> dict[str, Any]:
        """Asks the client and returns its answers under the same keys.

        There are three ways a question travels. On a handshake connection it is a live request. On a stateless one the
        result asks for input; the client retries, and this handler runs again from the top with the answers at hand.
        Inside a task, the task waits for input. Keys must be unique within one handler.
        """
        check_capabilities(requests.values(), self.client_capabilities, stateless=self.stateless)
        if self.task is not None:
            return self.task.ask(requests, self.answers)
        if self.stateless:
            return self.answers.take(requests)
        return {key: self._ask_live(request).wait() for key, request in requests.items()}

    def _ask_live(self, request: ClientRequest, wait_s: Callable[[], float] | None = None) -> PendingRequest:
        """Asks, and returns the question once it is settled, or taken back because `wait_s` allows no more time."""
        # Set before the request goes out: from here on `cancel` may be called at any moment and must find the question.
        question = self._question = PendingRequest()
        self.raise_if_cancelled()
        request_id = self.connection.put(request, question, self.emit)
        try:
            while not question.is_settled:
                pause = wait_s() if wait_s is not None else None
                if pause is not None and pause <= 0:
                    break
                question.rest(pause)
        finally:
            # Also when the call was cancelled or failed meanwhile: nobody will read the answer any more.
            if self.connection.take_back(request_id, self.emit):
                question.abandon()
        return question

    def elicit(self, message: str, schema: Mapping[str, Any], *, key: str = "input") -> dict[str, Any]:
        """Asks the person at the client; the answer has an `action` and, if accepted, `content`."""
        answer = self.ask({key: elicitation(message, schema)})[key]
        return answer if isinstance(answer, dict) else {}

    @property
    def can_elicit(self) -> bool:
        """Whether the person at the client can be asked with a form during this request."""
        if not self.stateless:
            return self.connection.has_forms
        return self.method in MAY_ASK and has_forms(self.client_capabilities)

    def elicit_while(
        self, wait_s: Callable[[], float], message: str, schema: Mapping[str, Any], *, key: str
    ) -> dict[str, Any] | None:
        """Like `elicit`, with an end: `wait_s` is called repeatedly, returns how long to wait until the next call, and
        takes the question back by returning 0. None if there was no answer by then, or none can come any more. A
        stateless request does not wait, and accepts only answers to questions that were actually asked."""
        request = elicitation(message, schema)
        check_capabilities([request], self.client_capabilities, stateless=self.stateless)
        if self.stateless:
            answer = self.answers.take({key: request}, unasked=False)[key]
        else:
            try:
                answer = self._ask_live(request, wait_s).wait()
            except RequestCancelled:
                self.raise_if_cancelled()
                return None
        return answer if isinstance(answer, dict) else {}

    # -- ending -----------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Called when the client no longer wants the reply. Safe from any thread."""
        self.cancelled = True
        if self._question is not None:
            self._question.abandon()

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise RequestCancelled
