"""One server on HTTP, from its start through the calls of one client and of sixteen. No rounds, no table."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import time
from collections.abc import Iterator

import msgspec

from bench.protocol.contestants import Contestant
from bench.protocol.conversation import TIMED_CALL, prove_equal
from bench.protocol.http_client import Client, drive
from bench.protocol.processes import DEADLINE_MS, Launch, ProcessMeasure, ServerProcess
from bench.started import Stuck

WARM_UP_CALLS = 304
CROWD = 16
_ANNOUNCED = "serving http"
_LOOK_EVERY_MS = 2


class HttpMeasure(ProcessMeasure, frozen=True, kw_only=True):
    """The same with what many clients at once took."""

    call_p99_us: float
    calls_per_s: float
    crowd_cpu_us: float
    crowd_p50_us: float
    crowd_p99_us: float
    crowd_calls_per_s: float


class _Load(msgspec.Struct, frozen=True):
    """What one stretch of timed calls took."""

    cpu_us: float
    p50_us: float
    p99_us: float
    calls_per_s: float


class HttpServer(ServerProcess):
    """A server that says on standard error where it listens, and ends on SIGTERM."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.url = self._announced_url()

    def _announced_url(self) -> str:
        for _ in range(DEADLINE_MS // _LOOK_EVERY_MS):
            for line in self._log.read_text(errors="replace").splitlines(keepends=True):
                if _ANNOUNCED in line and line.endswith("\n"):
                    return line.split()[-1]
            if self._process.poll() is not None:
                raise Stuck(f"the server ended{self.last_words()}")
            time.sleep(_LOOK_EVERY_MS / 1000)
        raise Stuck(f"not up within {DEADLINE_MS // 1000} s{self.last_words()}")

    def _tell_to_end(self) -> None:
        self._process.terminate()


@contextlib.contextmanager
def clients_of(server: HttpServer, contestant: Contestant, count: int) -> Iterator[list[Client]]:
    """So many connected clients, ready to call."""
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = Client(server.url, contestant)
            stack.callback(client.close)
            client.open()
            clients.append(client)
        try:
            yield clients
        except Stuck as problem:
            raise Stuck(f"{problem}{server.last_words()}") from None


def prove(contestant: Contestant, launch: Launch) -> None:
    with HttpServer(launch) as server:
        with clients_of(server, contestant, 1) as (client,):
            prove_equal(client.ask)
        server.finish()


def measure(contestant: Contestant, launch: Launch, calls: int) -> HttpMeasure:
    with HttpServer(launch) as server:
        with clients_of(server, contestant, 1) as (client,):
            start_wall_ns = time.perf_counter_ns() - server.started_ns
            start_cpu_ns = server.cpu_ns()
            at_start = server.memory()
            client.ask("tools/call", TIMED_CALL)
            first_call_cpu_ns = server.cpu_ns() - start_cpu_ns
            alone = _timed(server, [client], calls)
        with clients_of(server, contestant, CROWD) as clients:
            crowd = _timed(server, clients, calls)
            at_end = server.memory()
        server.finish()

    return HttpMeasure(
        start_cpu_ms=start_cpu_ns / 1e6,
        start_wall_ms=start_wall_ns / 1e6,
        start_rss_mb=at_start.rss_mb,
        start_pss_mb=at_start.pss_mb,
        first_call_cpu_ms=first_call_cpu_ns / 1e6,
        call_cpu_us=alone.cpu_us,
        call_p50_us=alone.p50_us,
        call_p99_us=alone.p99_us,
        calls_per_s=alone.calls_per_s,
        crowd_cpu_us=crowd.cpu_us,
        crowd_p50_us=crowd.p50_us,
        crowd_p99_us=crowd.p99_us,
        crowd_calls_per_s=crowd.calls_per_s,
        end_rss_mb=at_end.rss_mb,
    )


def _timed(server: HttpServer, clients: list[Client], calls: int) -> _Load:
    """A warm-up, then the calls that count, shared out among the clients."""
    drive(clients, _prepared(clients, WARM_UP_CALLS))
    requests = _prepared(clients, calls)
    cpu_before, wall_before = server.cpu_ns(), time.perf_counter_ns()
    latencies_ns = drive(clients, requests)
    wall_ns, cpu_ns = time.perf_counter_ns() - wall_before, server.cpu_ns() - cpu_before
    return _Load(
        cpu_us=cpu_ns / len(latencies_ns) / 1e3,
        p50_us=statistics.median(latencies_ns) / 1e3,
        p99_us=statistics.quantiles(latencies_ns, n=100)[98] / 1e3,
        calls_per_s=len(latencies_ns) / wall_ns * 1e9,
    )


def _prepared(clients: list[Client], calls: int) -> list[list[bytes]]:
    """Every client's share of the calls, encoded before the clock runs."""
    share = max(1, calls // len(clients))
    return [[client.encoded("tools/call", TIMED_CALL) for _ in range(share)] for client in clients]
