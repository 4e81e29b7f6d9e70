"""Who is notified of changes (lists, resources, task states), for clients of both eras. No transport.

Handshake clients hear about list changes once connected, and about resources they subscribed to. Stateless clients hear
about what they named in a `subscriptions/listen` request, on its stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.offer import Offer
from handrail.protocol.revisions import META_SUBSCRIPTION
from handrail.protocol.wire import RpcError, notification_of

LIST_CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


class Subscription:
    """One `subscriptions/listen` stream and what its client wants to be notified of."""

    def __init__(self, exchange: Exchange, asked: Mapping[str, Any], *, offer: Offer) -> None:
        self.exchange = exchange
        can_change = {
            "toolsListChanged": offer.changing.tools,
            "promptsListChanged": offer.changing.prompts,
            "resourcesListChanged": offer.changing.resources,
        }
        self.lists = frozenset(change for change in LIST_CHANGES if can_change[change] and asked.get(change) is True)
        updates = _texts(asked.get("resourceSubscriptions")) if offer.changing.resource_updates else []
        self.resources = frozenset(uri for uri in updates if _may_hear(offer, exchange, uri))
        self.tasks = frozenset(_texts(asked.get("taskIds")) if offer.tasks else [])

    def granted(self) -> dict[str, Any]:
        """What the stream will carry, as stated in its acknowledgement."""
        granted: dict[str, Any] = {change: True for change in LIST_CHANGES if change in self.lists}
        if self.resources:
            granted["resourceSubscriptions"] = sorted(self.resources)
        if self.tasks:
            granted["taskIds"] = sorted(self.tasks)
        return granted

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        meta = {META_SUBSCRIPTION: self.exchange.request_id}
        self.exchange.notify(method, {**params, "_meta": meta})


class Subscribers:
    """Every connection of a server, and ways to notify those that care. Safe from any thread."""

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()

    def attach(self, connection: Connection) -> None:
        with self._lock:
            self._connections.add(connection)

    def detach(self, connection: Connection) -> None:
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def listen(self, listener: Subscription, acknowledge: Callable[[], None]) -> None:
        """Acknowledges and adds the listener in one step: nothing is sent before the acknowledgement, and no change
        after it is missed."""
        connection = listener.exchange.connection
        with self._lock:
            acknowledge()
            connection.listeners[listener.exchange.request_id] = listener
            self._connections.add(connection)

    def is_watched(self) -> bool:
        """True while some client follows some resource."""
        return any(connection.subscribed for connection in self._all()) or any(
            listener.resources for listener in self._listeners()
        )

    def list_changed(self, change: str) -> None:
        """`change` is a key of LIST_CHANGES."""
        method = LIST_CHANGES[change]
        for connection in self._all():
            if connection.revision is not None:
                connection.send(notification_of(method))
        for listener in self._listeners():
            if change in listener.lists:
                listener.tell(method, {})

    def resource_updated(self, uri: str) -> None:
        for connection in self._all():
            if uri in connection.subscribed:
                connection.send(notification_of("notifications/resources/updated", {"uri": uri}))
        for listener in self._listeners():
            if uri in listener.resources:
                listener.tell("notifications/resources/updated", {"uri": uri})

    def task_changed(self, task_id: str, state: Mapping[str, Any]) -> None:
        for listener in self._listeners():
            if task_id in listener.tasks:
                listener.tell("notifications/tasks", state)

    def _all(self) -> tuple[Connection, ...]:
        with self._lock:
            return tuple(self._connections)

    def _listeners(self) -> list[Subscription]:
        return [listener for connection in self._all() for listener in tuple(connection.listeners.values())]


def _may_hear(offer: Offer, exchange: Exchange, uri: str) -> bool:
    try:
        if offer.watching is not None:
            offer.watching.check(exchange, uri)
    except RpcError:
        return False
    return True


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
