"""The only mapping from a refusal to what a client sees: a JSON-RPC error, a tool result, or an exit code.

In the `guide` toolset a refusal is the JSON-RPC error that its document defines. In every other toolset, and in all
toolsets on 2026-07-28, whose specification retires those numbers, it is a tool result marked as an error.
"""

from __future__ import annotations

from typing import Any

from handrail.kernel.errors import InvalidParams, Refusal
from handrail.kernel.wording import shortened
from handrail.operation import Operation
from handrail.protocol.wire import INVALID_PARAMS, RpcError, encode

REFUSED = -32000
"""The number of a refusal in the bare call style, if the document gives it none."""

REFUSED_STATELESS = 1
"""The same on 2026-07-28, which reserves -32000 to -32099."""

TEXT = 1_500
"""The longest message or hint, in characters."""
WORD = 200
"""How much of a word without spaces a refusal repeats, in characters: callers may send any length."""

EXIT_REFUSED = 1
EXIT_USAGE = 2


def speaks_numbers(operation: Operation[Any, Any], *, stateless: bool) -> bool:
    """True if refusals use the document's own error numbers."""
    return operation.toolset.family == "guide" and not stateless


def numbered_error(refusal: Refusal) -> RpcError:
    """The JSON-RPC error of guide.md: its number, its fixed message, and data on what was wrong and what to do."""
    assert refusal.number is not None, f"{refusal.code} has no number in guide.md"
    message = cut(refusal.message)
    data: dict[str, Any] = {**_cut_details(refusal), "details": message}
    if refusal.hint:
        data["hint"] = cut(refusal.hint)
    return RpcError(refusal.number, refusal.headline or message, data)


def bare_error(refusal: Refusal, *, stateless: bool) -> RpcError:
    """A refusal in the bare style of every toolset but `guide`: the whole error object in `data`."""
    if isinstance(refusal, InvalidParams):
        return RpcError(INVALID_PARAMS, "Invalid params", {**error_object(refusal), "details": cut(refusal.message)})
    return RpcError(REFUSED_STATELESS if stateless else REFUSED, cut(refusal.message), error_object(refusal))


def error_object(refusal: Refusal) -> dict[str, Any]:
    """code, message, hint, details; a document's number goes into the details."""
    error = refusal.as_dict()
    details = _cut_details(refusal)
    if refusal.number is not None:
        details["number"] = refusal.number
    return {**error, "message": cut(refusal.message), "hint": cut(refusal.hint), "details": details}


def cut(text: str) -> str:
    """A refusal's text, shortened: it should teach, not repeat long input."""
    if len(text) <= WORD:
        return text
    return shortened(" ".join(shortened(word, WORD) for word in text.split(" ")), TEXT)


def _cut_details(refusal: Refusal) -> dict[str, Any]:
    return {name: cut(value) if isinstance(value, str) else value for name, value in refusal.details.items()}


def refused_result(refusal: Refusal) -> dict[str, Any]:
    """A `tools/call` result that reports a refusal."""
    structured = {"error": error_object(refusal)}
    return {
        "content": [{"type": "text", "text": encode(structured).decode()}],
        "structuredContent": structured,
        "isError": True,
    }
