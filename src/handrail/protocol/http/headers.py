"""Headers by name, with duplicates detected where they matter. The headers of 2026-07-28 repeat parts of the body and
are checked against it here. Pure; sends no answers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from handrail.protocol.revisions import META_VERSION
from handrail.protocol.wire import Request, RpcError, invalid_params

HEADER_MISMATCH = -32020

_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_BASE64_START, _BASE64_END = "=?base64?", "?="


def headers_of(
    raw: Iterable[tuple[bytes, bytes]], must_be_one: Callable[[str], bool]
) -> tuple[dict[str, str], str | None]:
    """The headers by name, and the first that was repeated and must not be."""
    headers: dict[str, str] = {}
    repeated = None
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1").lower()
        if name in headers and must_be_one(name):
            repeated = repeated or name
        headers[name] = raw_value.decode("latin-1").strip()
    return headers, repeated


def check_headers(
    headers: Mapping[str, str], repeated: str | None, request: Request, tool: Mapping[str, Any] | None
) -> None:
    """Raises RpcError if a header and the body disagree. `tool` is the listed tool that a `tools/call` names."""
    if repeated is not None:
        raise _mismatch(f"the header {repeated} appears more than once")
    meta = request.params.get("_meta")
    version = meta.get(META_VERSION) if isinstance(meta, dict) else None
    if version is None:
        raise invalid_params(f"_meta['{META_VERSION}'] is required")
    if headers.get("mcp-protocol-version") != version:
        raise _mismatch("MCP-Protocol-Version does not match the version in _meta")
    if headers.get("mcp-method") != request.method:
        raise _mismatch("Mcp-Method does not match the method")
    key = _NAMED_BY.get(request.method)
    if (
        key is not None
        and request.params.get(key) is not None
        and decoded(headers.get("mcp-name")) != request.params[key]
    ):
        raise _mismatch(f"Mcp-Name does not match params.{key}")
    if tool is not None:
        _check_arguments(headers, request, tool)


def decoded(value: str | None) -> str | None:
    """A header value, plain or in the base64 form for text that a header cannot carry; None if malformed."""
    if value is None or not (value.startswith(_BASE64_START) and value.endswith(_BASE64_END)):
        return value
    payload = value[len(_BASE64_START) : -len(_BASE64_END)]
    try:
        raw = base64.b64decode(payload, validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == payload else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def _check_arguments(headers: Mapping[str, str], request: Request, tool: Mapping[str, Any]) -> None:
    """Checks arguments that a tool's schema marks with `x-mcp-header`, which are also sent in a header."""
    for path, name, kind in _header_arguments(tool.get("inputSchema", {})):
        value: Any = request.params.get("arguments")
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        sent = headers.get(f"mcp-param-{name.lower()}")
        if value is None and sent is None:
            continue
        if value is None or not _says(decoded(sent), value, kind):
            raise _mismatch(f"Mcp-Param-{name} does not match the argument {'.'.join(path)}")


def _header_arguments(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    pending: list[tuple[tuple[str, ...], Mapping[str, Any]]] = [((), schema)]
    while pending:
        path, node = pending.pop()
        properties = node.get("properties")
        for name, member in properties.items() if isinstance(properties, dict) else ():
            if isinstance(member, dict):
                if isinstance(member.get("x-mcp-header"), str):
                    yield (*path, name), member["x-mcp-header"], str(member.get("type"))
                pending.append(((*path, name), member))


def _says(sent: str | None, value: Any, kind: str) -> bool:
    if sent is None:
        return False
    if isinstance(value, bool):
        return sent == ("true" if value else "false")
    if kind == "integer":
        try:
            return bool((int(sent) if sent.lstrip("-").isdigit() else float(sent)) == value)
        except (ValueError, OverflowError):
            return False
    return sent == str(value)


def _mismatch(reason: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, "Header mismatch", {"details": reason})
