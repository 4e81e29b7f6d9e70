"""The published revisions of MCP and what tells them apart. Facts and checks; no dispatch.

Two eras: *handshake* revisions agree on a version once per connection through `initialize`; the *stateless* revision
2026-07-28 names its version in the `_meta` of every request. One connection may carry both.
"""

from __future__ import annotations

from typing import Any

from handrail.protocol.wire import RpcError, invalid_params

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_REVISIONS = ("2026-07-28",)
NEWEST_HANDSHAKE = HANDSHAKE_REVISIONS[-1]
NEWEST = STATELESS_REVISIONS[-1]
BATCH_REVISION = "2025-03-26"
ELICITATION_SINCE = "2025-06-18"

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META_SERVER = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

HANDSHAKE_REFUSED = -32000
UNSUPPORTED_VERSION = -32022


def negotiate(requested: str) -> str:
    """The revision a handshake settles on.

    A published handshake revision is accepted as it is. The stateless one, and anything newer, gets our newest
    handshake revision, so that tomorrow's clients still connect. Anything else was never published and is refused.
    """
    if requested in HANDSHAKE_REVISIONS:
        return requested
    if _is_date(requested) and requested >= NEWEST:
        return NEWEST_HANDSHAKE
    raise RpcError(
        HANDSHAKE_REFUSED,
        "Unsupported protocol version",
        {"supportedVersions": list(HANDSHAKE_REVISIONS), "requestedVersion": requested},
    )


def stateless_meta(params: dict[str, Any]) -> dict[str, Any] | None:
    """The request's `_meta`, checked, if it is a stateless envelope; None for a handshake-era request."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or META_VERSION not in meta:
        return None
    version = meta[META_VERSION]
    if not isinstance(version, str):
        raise invalid_params(f"_meta['{META_VERSION}'] must be a string")
    if version not in STATELESS_REVISIONS:
        data = {"supported": list(STATELESS_REVISIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta.get(META_CAPABILITIES), dict):
        raise invalid_params(f"_meta['{META_CAPABILITIES}'] is required and must be an object")
    return meta


def _is_date(text: str) -> bool:
    year, month, day = text[:4], text[5:7], text[8:]
    return (
        len(text) == 10
        and text[4] == text[7] == "-"
        and all(part.isascii() and part.isdigit() for part in (year, month, day))
        and 1 <= int(month) <= 12
        and 1 <= int(day) <= 31
    )
