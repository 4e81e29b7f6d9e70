"""How soon a waiting agent has a message: from the call that sends it in one process to the reply in another."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence

import msgspec

from bench.crew.burst import percentile
from bench.crew.contestants import BODY, Place
from bench.crew.lines import DEADLINE_S, Line, Reply, ask
from bench.crew.ours import HandrailCrew, registered
from bench.started import Stuck

WAIT_MS = 25_000
SETTLE_S, SPREAD_S = 0.3, 0.5
"""Until who waits looks as seldom as it ever does; and then some, another each time, so that no rhythm of looking is
met or missed."""


class Delivery(msgspec.Struct, frozen=True):
    """One round: how long the sender waited for its own reply, and the reader for the message."""

    sent_ms: list[float]
    delivered_ms: list[float]

    @property
    def ratio(self) -> float:
        """The reader's time in times of the sender's."""
        return percentile(self.delivered_ms, 0.5) / percentile(self.sent_ms, 0.5)


def delivery(contestant: HandrailCrew, place: Place, count: int) -> Delivery:
    """Two processes: one sends, one waits."""
    lines = contestant.start(place, 2, 2)
    try:
        return _delivered(lines, count)
    finally:
        for line in lines:
            line.end()


def _delivered(lines: Sequence[Line], count: int) -> Delivery:
    sender, reader = lines
    me = registered(sender, "sender", 1)["id"]
    you = registered(reader, "reader", 2)["id"]
    letter = {"sender_id": me, "recipient_id": you, "message_type": "notification", "body": BODY * 2}
    sent_ms, delivered_ms = [], []
    for number in range(10, 10 + 4 * count, 4):
        settle_s = SETTLE_S + SPREAD_S * (number * 0.618 % 1)
        reader.call(number, "message_list", {"agent_id": you, "wait_ms": WAIT_MS})
        time.sleep(settle_s)
        began_ns = time.perf_counter_ns()
        sender.call(number + 1, "message_send", letter)
        times, replies = _both(began_ns, sender, reader)
        sent_ms.append(times[sender])
        delivered_ms.append(times[reader])
        got = (replies[reader].structured or {}).get("messages", ())
        sent = (replies[sender].structured or {}).get("id")
        if [message["id"] for message in got] != [sent]:
            raise Stuck(f"the waiting call did not bring {sent}: {replies[reader].text[:200]}")
        ask(reader, number + 2, "message_mark_read", {"message_ids": [sent], "agent_id": you})
    return Delivery(sent_ms, delivered_ms)


def _both(began_ns: int, sender: Line, reader: Line) -> tuple[dict[Line, float], dict[Line, Reply]]:
    times: dict[Line, float] = {}
    replies: dict[Line, Reply] = {}
    while len(times) < 2:
        ready = select.select([line for line in (sender, reader) if line not in times], [], [], DEADLINE_S)[0]
        if not ready:
            raise Stuck(f"no answer within {DEADLINE_S:.0f} s")
        for line in ready:
            now_ns = time.perf_counter_ns()
            for _, reply in line.replies():
                times[line], replies[line] = (now_ns - began_ns) / 1e6, reply
    return times, replies
