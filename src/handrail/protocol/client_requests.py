"""Asking the client: what can be asked, the answers so far, and how they survive a retry. No transport, no dispatch.

Under 2026-07-28 a server cannot send requests. It replies with what it needs to know; the client asks its user or model
and sends the whole request again. Answers of earlier rounds travel in a sealed `requestState`, so a handler simply asks
again and gets them: it is written once for both eras.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.protocol.wire import INVALID_REQUEST, RpcError

MISSING_CAPABILITY = -32021

_CAPABILITY_FOR = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


_FORM, _URL = "form", "url"
_ROUNDS = "rounds/"
"""The key under which the sealed state keeps our own data of earlier rounds, beside the client's answers."""

MAY_ASK = ("tools/call", "prompts/get", "resources/read")
"""Stateless requests that may be answered with a request for input."""


class RequestCancelled(Exception):  # noqa: N818 - not an error: the client no longer wants the answer
    """Raised inside a handler whose request was cancelled; no reply is sent."""


class ClientRequest(msgspec.Struct, frozen=True):
    """Something only the client can answer."""

    method: str
    params: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {"method": self.method, "params": dict(self.params)}


def elicitation(message: str, schema: Mapping[str, Any]) -> ClientRequest:
    """A question to the person at the client, answered by a form."""
    return ClientRequest("elicitation/create", {"mode": _FORM, "message": message, "requestedSchema": dict(schema)})


class InputRequired(Exception):  # noqa: N818 - an answer, not an error
    """The handler cannot continue until the client has answered these requests."""

    def __init__(self, requests: Mapping[str, ClientRequest], answers: Mapping[str, Any]) -> None:
        super().__init__("input required")
        self.requests = requests
        self.answers = answers


class Answers:
    """The client's answers so far, by key: those sent with this retry and those of earlier rounds. Also what no client
    can make up: which questions were asked, and what the handler noted for later rounds."""

    def __init__(self, fresh: Mapping[str, Any] | None = None, kept: Mapping[str, Any] | None = None) -> None:
        # An answer that is not an object does not count: the question is asked again.
        usable = {key: value for key, value in (fresh or {}).items() if isinstance(value, dict)}
        earlier = dict(kept or {})
        ours = earlier.pop(_ROUNDS, {})
        self._put: list[str] = ours.get("put", [])
        self._noted: dict[str, Any] = ours.get("noted", {})
        self._notes: dict[str, Any] = {}
        self._by_key: dict[str, Any] = {**usable, **earlier}

    def take(self, requests: Mapping[str, ClientRequest], *, unasked: bool = True) -> dict[str, Any]:
        """The answers to these questions; raises InputRequired for those without one. Unless `unasked`, an answer
        counts only if its question was asked in an earlier round."""
        missing = {
            key: request
            for key, request in requests.items()
            if key not in self._by_key or not (unasked or key in self._put)
        }
        if missing:
            put = [*self._put, *(key for key in missing if key not in self._put)]
            ours = {"put": put, "noted": {**self._noted, **self._notes}}
            raise InputRequired(missing, {**self._by_key, _ROUNDS: ours})
        return {key: self._by_key[key] for key in requests}

    def note(self, key: str, value: Any) -> None:
        """Keeps a value for later rounds, should this one end in a question."""
        self._notes[key] = value

    def noted(self, key: str) -> Any:
        """What an earlier round noted under this key; None if nothing."""
        return self._noted.get(key)

    def known(self, requests: Mapping[str, ClientRequest]) -> dict[str, Any]:
        return {key: self._by_key[key] for key in requests if key in self._by_key}


class PendingRequest:
    """A request of ours that waits for the client's response, on the thread of the handler that asked."""

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._result: Any = None
        self._error: dict[str, Any] | None = None
        self._abandoned = False

    def settle(self, result: Any, error: dict[str, Any] | None = None) -> None:
        self._result, self._error = result, error
        self._settled.set()

    def abandon(self) -> None:
        """Ends the wait: no answer will come."""
        self._abandoned = True
        self._settled.set()

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def rest(self, most_s: float | None) -> None:
        """Waits at most this long for it to be settled; with None, until it is."""
        self._settled.wait(most_s)

    def wait(self) -> Any:
        self._settled.wait()
        if self._abandoned:
            raise RequestCancelled
        if self._error is not None:
            code, message = self._error.get("code"), self._error.get("message")
            raise RpcError(code if isinstance(code, int) else INVALID_REQUEST, str(message or "the client refused"))
        return self._result


def check_capabilities(requests: Iterable[ClientRequest], offered: Mapping[str, Any], *, stateless: bool) -> None:
    """Refuses to ask a client anything it cannot answer, or in a mode it does not support."""
    needed: dict[str, Any] = {}
    missing = False
    for request in requests:
        capability = _CAPABILITY_FOR.get(request.method)
        if capability is None:
            continue
        can = offered.get(capability)
        within = needed.setdefault(capability, {})
        missing = missing or not isinstance(can, dict)
        if capability == "elicitation":
            mode = request.params.get("mode", _FORM)
            within[mode] = {}
            missing = missing or mode not in _elicitation_modes(can)
    if missing:
        raise missing_capability(needed, stateless=stateless)


def has_forms(offered: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities can show a form to its user."""
    can = offered.get("elicitation")
    return isinstance(can, dict) and _FORM in _elicitation_modes(can)


def _elicitation_modes(can: Any) -> tuple[str, ...]:
    """The ways in which a client can ask its user. None named means forms: before 2025-11-25 there was nothing else."""
    named = tuple(mode for mode in (_FORM, _URL) if isinstance(can, dict) and isinstance(can.get(mode), dict))
    return named or (_FORM,)


def missing_capability(needed: Mapping[str, Any], *, stateless: bool) -> RpcError:
    code = MISSING_CAPABILITY if stateless else INVALID_REQUEST
    return RpcError(code, "Missing required client capability", {"requiredCapabilities": dict(needed)})


class StateSeal:
    """Makes `requestState` tamper-proof: bound to its request's content, and valid for a limited time."""

    def __init__(self, key: bytes, *, now_s: float, ttl_s: float = 600.0) -> None:
        self._key = key
        self._now_s = now_s
        self._ttl_s = ttl_s

    def seal(self, method: str, params: Mapping[str, Any], answers: Mapping[str, Any]) -> str:
        from base64 import urlsafe_b64encode  # noqa: PLC0415 - only where a server asks; keeps start-up light

        payload = msgspec.json.encode([self._now_s + self._ttl_s, dict(answers)])
        return urlsafe_b64encode(payload).decode() + "." + self._mac(method, params, payload)

    def open(self, method: str, params: Mapping[str, Any], sealed: object) -> dict[str, Any]:
        """The answers of earlier rounds; raises ValueError for a state that is not ours, not for this request, or
        expired."""
        import binascii  # noqa: PLC0415 - as above
        import hmac  # noqa: PLC0415 - as above
        from base64 import urlsafe_b64decode  # noqa: PLC0415 - as above

        text, _, mac = sealed.rpartition(".") if isinstance(sealed, str) else ("", "", "")
        try:
            payload = urlsafe_b64decode(text)
        except (binascii.Error, ValueError):
            payload = b""
        if not payload or not hmac.compare_digest(self._mac(method, params, payload).encode(), mac.encode()):
            raise ValueError("requestState is not one this server gave out for this request")
        expires, answers = msgspec.json.decode(payload, type=tuple[float, dict[str, Any]])
        if expires < self._now_s:
            raise ValueError("requestState has expired; send the request again without it")
        return answers

    def _mac(self, method: str, params: Mapping[str, Any], payload: bytes) -> str:
        import hashlib  # noqa: PLC0415 - as above
        import hmac  # noqa: PLC0415 - as above

        bound = {key: params[key] for key in ("name", "uri", "arguments", "ref", "argument") if key in params}
        content = msgspec.json.encode([method, bound], order="deterministic")
        return hmac.new(self._key, content + b"\x00" + payload, hashlib.sha256).hexdigest()
