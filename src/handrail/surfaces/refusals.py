"""The only map from a refusal to what a client sees: a JSON-RPC error, a tool result, or an exit code.

In the `guide` toolset a refusal is the JSON-RPC error its document gives it; in every other toolset, and for every
toolset on 2026-07-28, whose specification retires those numbers, it is a tool result that is marked as an error.
"""

from __future__ import annotations

from typing import Any

from handrail.kernel.errors import InvalidParams, Refusal
from handrail.operation import Operation
from handrail.protocol.wire import INVALID_PARAMS, RpcError, encode

REFUSED = -32000
"""A refusal in the bare call style, where the document gives it no number."""

REFUSED_STATELESS = 1
"""The same on 2026-07-28, which keeps -32000 to -32099 for itself."""

TEXT = 1_500
"""Characters of a message or a hint at most."""
WORD = 200
"""Characters that a refusal repeats of something without a space: what somebody sent may be of any length."""

EXIT_REFUSED = 1
EXIT_USAGE = 2


def speaks_numbers(operation: Operation[Any, Any], *, stateless: bool) -> bool:
    """True where the document's own error numbers are the answer."""
    return operation.toolset.family == "guide" and not stateless


def numbered_error(refusal: Refusal) -> RpcError:
    """The JSON-RPC error of guide.md: its number, its fixed message, and data that says what and what next."""
    assert refusal.number is not None, f"{refusal.code} has no number in guide.md"
    message = cut(refusal.message)
    data: dict[str, Any] = {**_cut_details(refusal), "details": message}
    if refusal.hint:
        data["hint"] = cut(refusal.hint)
    return RpcError(refusal.number, refusal.headline or message, data)


def bare_error(refusal: Refusal, *, stateless: bool) -> RpcError:
    """A refusal as the bare style gives it in every toolset but `guide`: the whole error object in `data`."""
    if isinstance(refusal, InvalidParams):
        return RpcError(INVALID_PARAMS, "Invalid params", {**error_object(refusal), "details": cut(refusal.message)})
    return RpcError(REFUSED_STATELESS if stateless else REFUSED, cut(refusal.message), error_object(refusal))


def error_object(refusal: Refusal) -> dict[str, Any]:
    """code, message, hint, details; a document's number travels in the details."""
    error = refusal.as_dict()
    details = _cut_details(refusal)
    if refusal.number is not None:
        details["number"] = refusal.number
    return {**error, "message": cut(refusal.message), "hint": cut(refusal.hint), "details": details}


def cut(text: str) -> str:
    """A text of a refusal without what would make it long: it teaches, and repeats nothing in full."""
    if len(text) <= WORD:
        return text
    text = " ".join(word if len(word) <= WORD else f"{word[: WORD - 1]}…" for word in text.split(" "))
    return text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"


def _cut_details(refusal: Refusal) -> dict[str, Any]:
    return {name: cut(value) if isinstance(value, str) else value for name, value in refusal.details.items()}


def refused_result(refusal: Refusal) -> dict[str, Any]:
    """A `tools/call` result that says no."""
    structured = {"error": error_object(refusal)}
    return {
        "content": [{"type": "text", "text": encode(structured).decode()}],
        "structuredContent": structured,
        "isError": True,
    }
