"""MCP over standard input and output: one message per line, replies in the order of the requests.

There are two threads. The reader parses lines and handles what must not wait behind a running call, such as
cancellation. The main thread is the *lane*: it serves requests one after the other, so order needs no bookkeeping.
Requests that wait by design (long polls) run beside the lane in threads of their own and are answered when their news
arrives. When the connection ends, requests still waiting are answered within the grace period. The only methods treated
specially here are `notifications/cancelled` and `initialize`, which cannot be cancelled.

Lines on file descriptors: reads newline-delimited messages of limited size, writes whole lines. No JSON.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

import msgspec

from handrail.protocol.exchange import Connection, Exchange
from handrail.protocol.replies import answer, cancelled
from handrail.protocol.revisions import BATCH_REVISION
from handrail.protocol.server import Server
from handrail.protocol.wire import (
    Batch,
    Malformed,
    Message,
    Request,
    RequestId,
    Response,
    RpcError,
    cancelled_id,
    encode,
    error_of,
    invalid_request,
    oversized,
    parse,
)

_CHUNK = 64 * 1024


class Line(msgspec.Struct, frozen=True):
    """One line without its newline. `cut` means it was longer than the limit and only its beginning was kept."""

    data: bytes
    cut: bool = False


class OutputLost(Exception):  # noqa: N818 - a fact about the world the transport must act on
    """Nobody is reading our output any longer."""


def read_lines(fd: int, max_bytes: int) -> Iterator[Line]:
    """Lines until end of input. Blank lines are skipped, and a last line without a newline counts. An overlong line is
    discarded as it streams past: it costs time but no memory."""
    pending = bytearray()
    overlong = False
    while chunk := os.read(fd, _CHUNK):
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            pending += piece
            if line := _finished(pending, overlong, max_bytes):
                yield line
            pending.clear()
            overlong = False
        if not overlong:
            pending += rest
            overlong = len(pending) > max_bytes
    if line := _finished(pending, overlong, max_bytes):
        yield line


def _finished(pending: bytearray, overlong: bool, max_bytes: int) -> Line | None:
    if overlong or len(pending) > max_bytes:
        return Line(bytes(pending[:_CHUNK]), cut=True)
    data = bytes(pending).strip()
    return Line(data) if data else None


class LineWriter:
    """Writes lines to a descriptor, whole and one at a time, from any thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._is_terminal = os.isatty(fd)

    def write(self, data: bytes) -> None:
        view = memoryview((_seen(data) if self._is_terminal else data) + b"\n")
        with self._lock:
            while view:
                try:
                    view = view[os.write(self._fd, view) :]
                except OSError as problem:
                    raise OutputLost(str(problem)) from problem


def _seen(data: bytes) -> bytes:
    """A line of JSON for somebody who tries a server by hand: the same value, with nothing in it that could steer their
    terminal."""
    import json  # noqa: PLC0415 - a client is no terminal

    return json.dumps(json.loads(data), separators=(",", ":")).replace("\x7f", "\\u007f").encode()


_LOOK_AGAIN_S = 0.05
_LEAVING = "the server is leaving"


class StdioLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one stdio connection."""

    message_bytes: int
    message_depth: int
    queued_bytes: int
    waiting_calls: int
    grace_s: float


class _Job:
    """One accepted message on its way through the lane."""

    __slots__ = ("_unanswered", "cancelled", "exchange", "message", "size")

    def __init__(self, message: Message, size: int) -> None:
        self.message = message
        self.size = size
        self.cancelled = False
        """True once the client no longer wants the reply."""
        self.exchange: Exchange | None = None
        self._unanswered = threading.Lock()

    def take_answer(self) -> bool:
        """True for the first caller only, which alone may send the answer."""
        return self._unanswered.acquire(blocking=False)

    def cancel(self) -> None:
        self.cancelled = True
        if self.exchange is not None:
            self.exchange.cancel()


def claim_standard_streams() -> tuple[int, int]:
    """Takes stdin and stdout for the protocol and hides them from everything else in the process.

    Afterwards descriptor 1 is stderr and descriptor 0 is empty, so neither a stray print, nor a C library, nor a child
    process can write into the wire or read from it.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return wire_in, wire_out


class StdioTransport:
    """Serves one client on a pair of descriptors until input ends, `shutdown` is called, or a signal arrives."""

    def __init__(self, server: Server, *, wire_in: int, wire_out: int, limits: StdioLimits) -> None:
        self._server = server
        self._wire_in = wire_in
        self._writer = LineWriter(wire_out)
        self._limits = limits
        self._connection = Connection(self._send)
        self._lane: SimpleQueue[_Job | None] = SimpleQueue()
        self._jobs: dict[RequestId, _Job] = {}
        self._accepted_bytes = 0  # written by the reader only
        self._served_bytes = 0  # written by the lane only
        self._caught_up = threading.Event()
        self._waiting: dict[threading.Thread, _Job] = {}
        self._stopping = False
        self._output_lost = False

    def run(self) -> int:
        """Serves until the end and returns the exit code: 0 after an orderly end, 1 if output was lost or the server
        cannot continue."""
        self._server.subscribers.attach(self._connection)
        threading.Thread(target=self._read_messages, name="handrail-reader", daemon=True).start()
        try:
            self._serve_lane()
            self._turn_away_the_rest()
            self._end_waiting_calls()
            for listener in tuple(self._connection.listeners.values()):
                self._writer.write(self._server.farewell(listener.exchange))
        except OutputLost:
            self._output_lost = True
        self._server.subscribers.detach(self._connection)
        return 1 if self._output_lost or self._connection.failed else 0

    def stop(self) -> None:
        """Stops soon: the running call may finish within the grace period. Safe in a signal handler."""
        self._stopping = True
        self._lane.put(None)
        # Not threading.Thread: its start takes a lock that the interrupted main thread may be holding.
        _thread.start_new_thread(self._leave_after_grace, ())

    def _leave_after_grace(self) -> None:
        threading.Event().wait(self._limits.grace_s)
        os._exit(0)

    # -- reader thread ----------------------------------------------------------------------------------------------

    def _read_messages(self) -> None:
        try:
            for line in read_lines(self._wire_in, self._limits.message_bytes):
                if line.cut:
                    message: Message = oversized(line.data, self._limits.message_bytes)
                else:
                    message = parse(line.data, max_depth=self._limits.message_depth)
                self._accept(message, len(line.data))
        except OSError as problem:
            _log(f"input failed: {problem}")
        finally:
            self._connection.close()  # the client can send no more answers
            self._lane.put(None)

    def _accept(self, message: Message, size: int) -> None:
        if (unwanted := cancelled_id(message)) is not None:
            self._cancel(unwanted)
            return
        if isinstance(message, Response):
            self._connection.settle(message)
            return
        if isinstance(message, Batch):
            self._handle_at_once(message)
        job = _Job(message, size)
        if isinstance(message, Request):
            self._jobs[message.id] = job
        self._accepted_bytes += size
        self._lane.put(job)
        # Reading pauses while too much is queued, except while a handler waits for an answer that has yet to be read.
        while self._accepted_bytes - self._served_bytes > self._limits.queued_bytes and not self._connection.is_asking:
            self._caught_up.wait(_LOOK_AGAIN_S)
            self._caught_up.clear()

    def _handle_at_once(self, batch: Batch) -> None:
        """Handles the parts of a batch that must not wait behind a running call: answers and cancellations."""
        for message in batch.messages:
            if isinstance(message, Response):
                self._connection.settle(message)
            elif (unwanted := cancelled_id(message)) is not None:
                self._cancel(unwanted)

    def _cancel(self, request_id: RequestId) -> None:
        job = self._jobs.get(request_id)
        if job is not None and not (isinstance(job.message, Request) and job.message.method == "initialize"):
            job.cancel()
        self._connection.listeners.pop(request_id, None)

    # -- lane -------------------------------------------------------------------------------------------------------

    def _serve_lane(self) -> None:
        while not self._stopping and (job := self._lane.get()) is not None:
            message = job.message
            if isinstance(message, Request) and self._waits(message) and self._has_room_to_wait():
                self._serve_beside(job, message)
            else:
                self._serve_in_lane(job)
            self._served_bytes += job.size
            self._caught_up.set()
            if self._connection.closing or self._connection.failed:
                return

    def _serve_in_lane(self, job: _Job) -> None:
        message = job.message
        if isinstance(message, Request):
            self._reply(self._answer(job, message))
        elif isinstance(message, Malformed):
            self._reply(encode(error_of(message.id, message.error)))
        elif isinstance(message, Batch):
            self._reply(self._answer_batch(message))

    def _waits(self, request: Request) -> bool:
        return self._server.waits(self._connection, request)

    def _has_room_to_wait(self) -> bool:
        self._waiting = {thread: job for thread, job in self._waiting.items() if thread.is_alive()}
        return len(self._waiting) < self._limits.waiting_calls

    def _serve_beside(self, job: _Job, request: Request) -> None:
        def wait() -> None:
            try:
                reply = self._answer(job, request)
                if job.take_answer():
                    self._reply(reply)
            except OutputLost:
                self._output_lost = True
                self._lane.put(None)

        thread = threading.Thread(target=wait, name=f"handrail-wait-{request.method}", daemon=True)
        self._waiting[thread] = job
        thread.start()

    def _turn_away_the_rest(self) -> None:
        """Turns away what was accepted after the message that ended the lane."""
        while True:
            try:
                job = self._lane.get_nowait()
            except Empty:
                return
            if job is None or job.cancelled:
                continue
            for message in job.message.messages if isinstance(job.message, Batch) else (job.message,):
                if isinstance(message, Request):
                    self._reply(cancelled(message.id, details=_LEAVING))

    def _end_waiting_calls(self) -> None:
        """At the end of input, waiting calls get half the grace period to finish. Then they are cancelled and get the
        other half to react. Any still running after that are answered on their behalf."""
        half = self._limits.grace_s / 2
        if not (self._stopping or self._connection.closing):
            self._join_waiting(half)
        for job in self._waiting.values():
            if job.exchange is not None:
                job.exchange.cancel()
        self._join_waiting(half)
        for job in self._waiting.values():
            if isinstance(job.message, Request) and not job.cancelled and job.take_answer():
                self._reply(cancelled(job.message.id, details=_LEAVING))

    def _join_waiting(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        for thread in self._waiting:
            thread.join(max(0.0, deadline - time.monotonic()))

    # -- answers ----------------------------------------------------------------------------------------------------

    def _answer(self, job: _Job, request: Request) -> bytes | None:
        """The encoded reply, or None if the protocol wants none."""
        try:
            exchange = job.exchange = self._server.open(self._connection, request, self._send)
            exchange.cancelled = job.cancelled
            answered = answer(self._server, exchange)
        except RpcError as error:
            return encode(error_of(request.id, error))
        else:
            given_up = answered.data is None and not answered.held and not job.cancelled
            return cancelled(request.id, details=_LEAVING) if given_up else answered.data
        finally:
            if self._jobs.get(request.id) is job:
                del self._jobs[request.id]

    def _answer_batch(self, batch: Batch) -> bytes | None:
        if self._connection.revision != BATCH_REVISION or not batch.messages:
            reason = (
                "a batch must not be empty"
                if self._connection.revision == BATCH_REVISION
                else f"a message must be a single JSON object; only revision {BATCH_REVISION} has batches"
            )
            return encode(error_of(None, invalid_request(reason)))
        replies: list[bytes] = []
        for message in batch.messages:
            if isinstance(message, Malformed):
                replies.append(encode(error_of(message.id, message.error)))
            elif isinstance(message, Request) and (reply := self._answer(_Job(message, 0), message)) is not None:
                replies.append(reply)
        return b"[" + b",".join(replies) + b"]" if replies else None

    def _reply(self, reply: bytes | None) -> None:
        if reply is not None:
            self._writer.write(reply)

    def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(encode(message))


def serve_stdio(server: Server, limits: StdioLimits) -> int:
    """Serves the process's own standard streams and returns the exit code."""
    wire_in, wire_out = claim_standard_streams()
    transport = StdioTransport(server, wire_in=wire_in, wire_out=wire_out, limits=limits)
    leave: Callable[[int, FrameType | None], None] = lambda _signal, _frame: transport.stop()  # noqa: E731
    for name in ("SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), leave)
    return transport.run()


def _log(text: str) -> None:
    print(f"handrail: {text}", file=sys.stderr)  # noqa: T201 - stderr is the log
