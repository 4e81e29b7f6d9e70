"""Many agents that write at once: each asks, waits for its answer and asks again, until time is up. Knows no server."""

from __future__ import annotations

import selectors
import statistics
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec

from bench.crew.lines import DEADLINE_S, Line, Reply
from bench.started import Stuck


class Ask(msgspec.Struct, frozen=True):
    """One write: the tool's call, and the mark by which it is known again."""

    mark: str
    tool: str
    arguments: Mapping[str, Any]


Script = Generator[Ask, Reply, None]
"""What one agent does: it gives its next write for the answer to the last. Runs until it is closed."""
IsAcknowledged = Callable[[Ask, Reply], bool]


class Written(msgspec.Struct, frozen=True):
    """A write that was acknowledged, and when it was under way."""

    ask: Ask
    reply: Reply
    began_ns: int
    done_ns: int

    @property
    def took_ms(self) -> float:
        return (self.done_ns - self.began_ns) / 1e6


class Burst(msgspec.Struct, frozen=True):
    """What all agents together wrote."""

    written: list[Written]
    refused: Counter[str]
    took_s: float

    @property
    def per_s(self) -> float:
        return len(self.written) / self.took_s


class _Agent:
    """One agent in the middle of its script."""

    def __init__(self, line: Line, script: Script) -> None:
        self.line = line
        self.script = script
        self.ask = next(script)
        self.began_ns = 0


def burst(
    lines: Sequence[Line], scripts: Sequence[Script], is_acknowledged: IsAcknowledged, *, seconds: float, most: int
) -> Burst:
    """Drives every script over its line for so long, or so many writes each, and waits for the last answers."""
    crowd = _Crowd(lines, scripts, is_acknowledged)
    try:
        return crowd.run(int(seconds * 1e9), most * len(scripts))
    finally:
        crowd.close()


class _Crowd:
    def __init__(self, lines: Sequence[Line], scripts: Sequence[Script], is_acknowledged: IsAcknowledged) -> None:
        self._agents = [_Agent(lines[number % len(lines)], script) for number, script in enumerate(scripts)]
        self._is_acknowledged = is_acknowledged
        self._asking: dict[int, _Agent] = {}
        self._number = 1_000_000  # above whatever was asked before
        self._written: list[Written] = []
        self._refused: Counter[str] = Counter()
        self._selector = selectors.DefaultSelector()
        for line in {id(line): line for line in lines}.values():
            self._selector.register(line, selectors.EVENT_READ)

    def run(self, for_ns: int, most: int) -> Burst:
        began_ns = time.perf_counter_ns()
        for agent in self._agents:
            self._go_on(agent)
        while self._asking:
            ready = self._selector.select(DEADLINE_S)
            if not ready:
                raise Stuck(f"{len(self._asking)} calls without an answer for {DEADLINE_S:.0f} s")
            for key, _ in ready:
                told = self._heard(key.fileobj)
                now_ns = time.perf_counter_ns()
                goes_on = now_ns - began_ns < for_ns and len(self._written) + len(self._asking) <= most
                for number, reply in told:
                    self._answered(number, reply, now_ns, goes_on=goes_on)
        return Burst(self._written, self._refused, (time.perf_counter_ns() - began_ns) / 1e9)

    def _heard(self, line: Any) -> list[tuple[int, Reply]]:
        """What came on a line. Who has nothing left to ask may be cut off."""
        try:
            replies: list[tuple[int, Reply]] = line.replies()
        except Stuck:
            if any(agent.line is line for agent in self._asking.values()):
                raise
            self._selector.unregister(line)
            return []
        return replies

    def _go_on(self, agent: _Agent) -> None:
        self._number += 1
        self._asking[self._number] = agent
        agent.began_ns = time.perf_counter_ns()
        agent.line.call(self._number, agent.ask.tool, agent.ask.arguments)

    def _answered(self, number: int, reply: Reply, now_ns: int, *, goes_on: bool) -> None:
        agent = self._asking.pop(number, None)
        if agent is None:
            return
        if self._is_acknowledged(agent.ask, reply):
            self._written.append(Written(agent.ask, reply, agent.began_ns, now_ns))
        else:
            self._refused[reply.text[:100]] += 1
        following = agent.script.send(reply)
        if goes_on:
            agent.ask = following
            self._go_on(agent)

    def close(self) -> None:
        self._selector.close()
        for agent in self._agents:
            agent.script.close()


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all do not exceed; 0 where there is none."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1]
