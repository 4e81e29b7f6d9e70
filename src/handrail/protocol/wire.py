"""Messages: bytes in, typed messages out, and back. JSON-RPC 2.0 framing only; no methods, revisions or transports.

Nothing a client can send makes `parse` raise: what cannot be served comes back as `Malformed`, with the reply to send.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias, TypeGuard

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

RequestId: TypeAlias = str | int

_SALVAGE_BYTES = 64 * 1024  # do not look for an id beyond this
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()


class RpcError(Exception):
    """A JSON-RPC error: the request was not served. `data` holds anything that helps the caller do better."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def as_dict(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def invalid_params(details: str) -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid params", {"details": details})


def invalid_request(details: str) -> RpcError:
    return RpcError(INVALID_REQUEST, "Invalid Request", {"details": details})


class Request(msgspec.Struct, frozen=True):
    """A call that wants exactly one reply."""

    id: RequestId
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct, frozen=True):
    """A message that never gets a reply."""

    method: str
    params: dict[str, Any]


class Response(msgspec.Struct, frozen=True):
    """The client's answer to a request of ours."""

    id: RequestId | None
    result: Any
    error: dict[str, Any] | None


class Malformed(msgspec.Struct, frozen=True):
    """Something that is not a valid message; `error` is the reply, addressed to `id` if one could be read."""

    id: RequestId | None
    error: RpcError


class Batch(msgspec.Struct, frozen=True):
    """Several messages in one array; only revision 2025-03-26 allows them."""

    messages: tuple[Request | Notification | Response | Malformed, ...]


Message: TypeAlias = Request | Notification | Response | Malformed | Batch


def cancelled_id(message: Message) -> RequestId | None:
    """The id of the request that this message cancels; None for every other message."""
    if not isinstance(message, Notification) or message.method != "notifications/cancelled":
        return None
    request_id = message.params.get("requestId")
    return request_id if _is_id(request_id) else None


def encode(message: object) -> bytes:
    """One line of JSON, without its newline. JSON escapes newlines inside strings, so a line is always one message."""
    try:
        return _ENCODER.encode(message)
    except UnicodeEncodeError:  # a file name that is not UTF-8 reaches us with lone surrogates
        return _ENCODER.encode(_printable(msgspec.to_builtins(message, str_keys=True)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(member) for member in value]
    return value


def result_of(request_id: RequestId, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_of(request_id: RequestId | None, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.as_dict()}


def request_of(request_id: RequestId, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification_of(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def parse(line: bytes, *, max_depth: int) -> Message:
    """Reads one line. Text that is not JSON is a parse error without an id, as JSON-RPC demands. A message that is JSON
    but too deeply nested keeps its id, so that its sender is not left waiting."""
    try:
        decoded = _DECODER.decode(line)
    except RecursionError:
        return _too_deep(line, max_depth)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        decoded = _with_half_characters(line)
        if decoded is None:
            return Malformed(None, RpcError(PARSE_ERROR, "Parse error", {"details": str(problem)}))
    # Only a line with many brackets can be deep; counting bytes is far cheaper than walking every message.
    if line.count(b"[") + line.count(b"{") > max_depth and _deeper_than(decoded, max_depth):
        return _too_deep(line, max_depth)
    if isinstance(decoded, list):
        return Batch(tuple(_classify(item) for item in decoded))
    return _classify(decoded)


def _with_half_characters(line: bytes) -> Any:
    """Reads a line that is valid JSON except for half a surrogate pair, as written by clients that cut a text inside an
    emoji; the half is replaced. None for every other line."""
    if b"\\u" not in line:
        return None
    import json  # noqa: PLC0415 - more lenient than our decoder, and needed only here

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return _printable(json.loads(line, parse_constant=refuse))
    except (ValueError, RecursionError):
        return None


def oversized(head: bytes, max_bytes: int) -> Malformed:
    """The answer to a line longer than the limit; only its `head` was kept."""
    return _invalid(salvage_id(head), f"the message is larger than {max_bytes} bytes, the most this server reads")


def _classify(decoded: Any) -> Request | Notification | Response | Malformed:
    if not isinstance(decoded, dict):
        return _invalid(None, "a message must be a JSON object")
    raw_id = decoded.get("id")
    request_id = raw_id if _is_id(raw_id) else None
    if decoded.get("jsonrpc") != "2.0":
        return _invalid(request_id, 'jsonrpc must be "2.0"')
    method = decoded.get("method")
    if method is None and ("result" in decoded or "error" in decoded):
        error = decoded.get("error")
        return Response(request_id, decoded.get("result"), error if isinstance(error, dict) else None)
    if not isinstance(method, str):
        return _invalid(request_id, "method must be a string")
    params = decoded.get("params")
    if "id" not in decoded:
        return Notification(method, params if isinstance(params, dict) else {})
    if request_id is None:
        return _invalid(None, "id must be a string or an integer")
    if params is not None and not isinstance(params, dict):
        return Malformed(request_id, invalid_params("params must be an object"))
    return Request(request_id, method, params or {})


def _is_id(value: object) -> TypeGuard[RequestId]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _invalid(request_id: RequestId | None, details: str) -> Malformed:
    return Malformed(request_id, invalid_request(details))


def _too_deep(line: bytes, max_depth: int) -> Malformed:
    return _invalid(salvage_id(line[:_SALVAGE_BYTES]), f"the message is nested deeper than {max_depth} levels")


def _deeper_than(decoded: Any, max_depth: int) -> bool:
    level = [decoded]
    for _ in range(max_depth):
        level = [
            inner
            for container in level
            for inner in (container.values() if isinstance(container, dict) else container)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


_TOKEN = rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+'  # compiled when first needed, which is hardly ever


def salvage_id(head: bytes) -> RequestId | None:
    """The top-level `id` of a message that could not be decoded, if it is within `head`."""
    depth = 0
    key = previous = b""
    for match in re.finditer(_TOKEN, head[:_SALVAGE_BYTES]):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif token == b":":
            key = previous if depth == 1 else b""
        elif key == b'"id"' and depth == 1:
            return _decoded_id(token)
        else:
            key = b""
        previous = token
    return None


def _decoded_id(token: bytes) -> RequestId | None:
    try:
        value = _DECODER.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return value if _is_id(value) else None
