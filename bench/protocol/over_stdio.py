"""One server on a pair of pipes, from its start to the end of its calls. No rounds, no table."""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import time
from typing import Any

from bench.protocol.contestants import Contestant
from bench.protocol.conversation import (
    INITIALIZE,
    INITIALIZED,
    TIMED_CALL,
    NotEqual,
    head_of,
    notification,
    prove_equal,
    request,
)
from bench.protocol.processes import DEADLINE_MS, Launch, ProcessMeasure, ServerProcess
from bench.started import Stuck

WARM_UP_CALLS = 300


class PipeServer(ServerProcess):
    """A server spoken to in raw lines."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._in, self._out = (pipe.fileno() for pipe in self.pipes)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN | select.POLLHUP)
        self._pending = b""
        self._asked = 0

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        """One request and its reply."""
        self._asked += 1
        return self.exchange(self._asked, request(self._asked, method, params) + b"\n")

    def tell(self, method: str) -> None:
        os.write(self._in, notification(method) + b"\n")

    def prepared(self, count: int) -> list[tuple[int, bytes]]:
        """The next calls as lines: the client's work, kept out of the timing."""
        first, self._asked = self._asked + 1, self._asked + count
        numbers = range(first, first + count)
        return [(number, request(number, "tools/call", TIMED_CALL) + b"\n") for number in numbers]

    def exchange(self, request_id: int, line: bytes) -> bytes:
        """Sends one request and waits for its reply; what the server says in between is passed over."""
        os.write(self._in, line)
        while (head := head_of(reply := self._line())).id != request_id:
            continue
        if not head.is_success:
            raise NotEqual(f"refused: {reply.decode()}")
        return reply

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            if not self._poll.poll(DEADLINE_MS):
                raise Stuck(f"no answer within {DEADLINE_MS // 1000} s{self.last_words()}")
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise Stuck(f"the server ended{self.last_words()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _tell_to_end(self) -> None:
        self.pipes[0].close()


def prove(contestant: Contestant, launch: Launch) -> None:
    with PipeServer(launch) as server:
        server.ask("initialize", INITIALIZE)
        server.tell(INITIALIZED)
        prove_equal(server.ask)
        server.finish()


def measure(contestant: Contestant, launch: Launch, calls: int) -> ProcessMeasure:
    with PipeServer(launch) as server:
        server.ask("initialize", INITIALIZE)
        start_wall_ns = time.perf_counter_ns() - server.started_ns
        start_cpu_ns = server.cpu_ns()
        at_start = server.memory()
        server.tell(INITIALIZED)

        before = server.cpu_ns()
        server.ask("tools/call", TIMED_CALL)
        first_call_cpu_ns = server.cpu_ns() - before

        for number, line in server.prepared(WARM_UP_CALLS):
            server.exchange(number, line)
        lines = server.prepared(calls)
        latencies_ns = []
        before = server.cpu_ns()
        for number, line in lines:
            sent_ns = time.perf_counter_ns()
            server.exchange(number, line)
            latencies_ns.append(time.perf_counter_ns() - sent_ns)
        calls_cpu_ns = server.cpu_ns() - before
        at_end = server.memory()
        server.finish()

    return ProcessMeasure(
        start_cpu_ms=start_cpu_ns / 1e6,
        start_wall_ms=start_wall_ns / 1e6,
        start_rss_mb=at_start.rss_mb,
        start_pss_mb=at_start.pss_mb,
        first_call_cpu_ms=first_call_cpu_ns / 1e6,
        call_cpu_us=calls_cpu_ns / calls / 1e3,
        call_p50_us=statistics.median(latencies_ns) / 1e3,
        end_rss_mb=at_end.rss_mb,
    )
