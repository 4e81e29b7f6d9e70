"""Turns what a handler returns or refuses into an answer: status, headers, bytes. No sockets, no store."""

from __future__ import annotations

import gzip
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.kernel.errors import (
    BoardConflict,
    ClaimHeld,
    IdentityUnproven,
    IllegalTransition,
    InvalidParams,
    KeyReused,
    NotAllowed,
    NotFound,
    Refusal,
    StoreBusy,
    StoreRefused,
    WorkspaceHeld,
)
from handrail.surfaces.refusals import error_object

Headers = tuple[tuple[bytes, bytes], ...]

GZIP_BYTES = 32 * 1024
"""Larger answers are compressed if the browser accepts that: a thousand tasks over a slow link."""
_GZIP_LEVEL = 1
_NO_STORE = (b"cache-control", b"no-store")
_STATUS: tuple[tuple[type[Refusal], int], ...] = (
    (NotFound, 404),
    (IllegalTransition, 409),
    (ClaimHeld, 409),
    (WorkspaceHeld, 409),
    (BoardConflict, 409),
    (KeyReused, 409),
    (NotAllowed, 403),
    (IdentityUnproven, 403),
    (InvalidParams, 400),
    (StoreBusy, 503),
    (StoreRefused, 503),
)


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler returns if the answer is a file to save."""

    name: str
    kind: str
    data: bytes


class PageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One whole answer."""

    status: int = 200
    headers: Headers = ()
    body: bytes = b""


def answer_of(result: Any, accepts: str = "", extra: Headers = ()) -> PageResponse:
    """What a handler returned, as an answer. Slow for large results: not for the event loop."""
    if isinstance(result, Download):
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in result.name)
        headers: Headers = (
            (b"content-type", result.kind.encode()),
            (b"content-disposition", f'attachment; filename="{plain}"'.encode()),
        )
        body = result.data
    else:
        headers = ((b"content-type", b"application/json"),)
        body = msgspec.json.encode(result)
    if len(body) > GZIP_BYTES and takes_gzip(accepts):
        body = gzip.compress(body, _GZIP_LEVEL, mtime=0)
        headers = (*headers, (b"content-encoding", b"gzip"))
    return PageResponse(headers=(*headers, _NO_STORE, (b"vary", b"accept-encoding, cookie"), *extra), body=body)


def refused(refusal: Refusal) -> PageResponse:
    status = next((number for kind, number in _STATUS if isinstance(refusal, kind)), 422)
    return _error(status, error_object(refusal))


def failed(status: int, code: str, message: str, hint: str = "", *, extra: Headers = ()) -> PageResponse:
    """A failure reported by the page itself rather than by the domain."""
    return _error(status, {"code": code, "message": message, "hint": hint, "details": {}}, extra)


def broken(path: str, bug: BaseException) -> PageResponse:
    """A bug of ours: the terminal gets the details, the visitor only learns that there was one."""
    traceback.print_exception(bug, file=sys.stderr)
    message = f"{type(bug).__name__} while answering {path}"
    return failed(500, "INTERNAL_ERROR", message, "this is a mistake in Handrail; its terminal says more")


def _error(status: int, error: Mapping[str, Any], extra: Headers = ()) -> PageResponse:
    later: Headers = ((b"retry-after", b"1"),) if status == 503 else ()
    return PageResponse(
        status=status,
        headers=((b"content-type", b"application/json"), _NO_STORE, *later, *extra),
        body=msgspec.json.encode({"error": error}),
    )


def takes_gzip(accepts: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    for part in accepts.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
