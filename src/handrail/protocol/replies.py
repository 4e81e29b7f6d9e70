"""Turns an open exchange into the bytes of its one answer. Shared by the transports; every request is answered, no
matter what its handler does."""

from __future__ import annotations

import sys

import msgspec

from handrail.protocol.client_requests import RequestCancelled
from handrail.protocol.exchange import Exchange
from handrail.protocol.server import HeldStream, Server
from handrail.protocol.wire import INTERNAL_ERROR, RequestId, RpcError, encode, error_of, result_of

REQUEST_CANCELLED = -32800


def cancelled(request_id: RequestId, **data: str) -> bytes:
    """The reply, if one is due, to a request that ended before its work did."""
    return encode(error_of(request_id, RpcError(REQUEST_CANCELLED, "Request cancelled", data or None)))


class EncodedReply(msgspec.Struct, frozen=True):
    """What is sent back: `data`, or None for a request that was cancelled or stays open."""

    data: bytes | None = None
    error_code: int | None = None
    held: bool = False


def answer(server: Server, exchange: Exchange) -> EncodedReply:
    """Serves the request. Nothing a handler raises gets out."""
    try:
        exchange.raise_if_cancelled()
        result = server.serve(exchange)
        if isinstance(result, HeldStream):
            return EncodedReply(held=True)
        if exchange.cancelled:
            return EncodedReply()
        return EncodedReply(encode(result_of(exchange.request_id, result)))
    except RequestCancelled:
        return EncodedReply()
    except RpcError as error:
        return refusal(exchange, error)
    except (Exception, SystemExit) as bug:  # noqa: BLE001 - the last line of defence: nobody is left without an answer
        return refusal(exchange, _internal_error(exchange.method, bug))


def refusal(exchange: Exchange, error: RpcError) -> EncodedReply:
    return EncodedReply(encode(error_of(exchange.request_id, error)), error.code)


def _internal_error(method: str, bug: BaseException) -> RpcError:
    import traceback  # noqa: PLC0415 - only when something is broken; keeps start-up light

    traceback.print_exception(bug, file=sys.stderr)
    return RpcError(INTERNAL_ERROR, "Internal error", {"details": f"{type(bug).__name__} while serving {method}"})
