"""One connection, and one request under way on it. What a handler sees of the protocol; no dispatch, no transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handrail.protocol.revisions import META_CAPABILITIES, META_VERSION
from handrail.protocol.wire import RequestId, notification_of


class Cancelled(Exception):  # noqa: N818 - not an error: the client no longer wants the answer
    """Raised inside a handler whose request was cancelled; no reply is sent."""


class Connection:
    """State that outlives a request: what the handshake settled, and who listens for changes."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self.send = send
        self.revision: str | None = None
        """The handshake revision agreed on; None until `initialize` has succeeded."""
        self.client_capabilities: dict[str, Any] = {}
        self.client_info: dict[str, Any] = {}
        self.listeners: dict[RequestId, Listener] = {}
        """Open `subscriptions/listen` streams of the stateless era, by request id."""
        self.closing = False
        """True once `shutdown` was asked for: the transport leaves after the reply."""


class Listener:
    """One `subscriptions/listen` stream: which kinds of change its client wants to hear of."""

    def __init__(self, exchange: Exchange, wanted: frozenset[str]) -> None:
        self.exchange = exchange
        self.wanted = wanted


class Exchange:
    """One request being served: its revision, its client, and a way to talk back before the reply."""

    __slots__ = (
        "_last_progress",
        "cancelled",
        "connection",
        "emit",
        "meta",
        "method",
        "params",
        "request_id",
        "stateless",
    )

    def __init__(
        self,
        connection: Connection,
        request_id: RequestId,
        method: str,
        params: dict[str, Any],
        *,
        stateless: bool,
        emit: Callable[[dict[str, Any]], None],
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
        self._last_progress: float | None = None

    @property
    def revision(self) -> str | None:
        """The protocol revision this request is served under."""
        return self.meta.get(META_VERSION) if self.stateless else self.connection.revision

    @property
    def client_capabilities(self) -> dict[str, Any]:
        return self.meta.get(META_CAPABILITIES, {}) if self.stateless else self.connection.client_capabilities

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tells the client something about this request while it runs."""
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

    def raise_if_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled
