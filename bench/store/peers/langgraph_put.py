"""LangGraph's SQLite checkpointer: `python -m bench.store.peers.langgraph_put FILE`. A step is one `put` of a small
checkpoint, as a graph makes after each of its steps; each is committed."""

from __future__ import annotations

import sqlite3
import sys
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver

from bench.store.slices import Step, grow_log, serve


def main(path: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        grower = sqlite3.connect(path, isolation_level=None)
        grow_log(lambda text: grower.execute(text).fetchall())
        grower.close()
        last: dict[str, Any] = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
        number = 0

        def prepare(lane: int, count: int) -> Step:
            nonlocal number
            waiting = []
            for _ in range(count):
                number += 1
                checkpoint = empty_checkpoint()
                checkpoint["id"] = str(uuid6(clock_seq=number))
                checkpoint["channel_values"] = {"task": "x" * 200}
                waiting.append((checkpoint, {"source": "loop", "step": number, "parents": {}}))
            left = iter(waiting)

            def step() -> None:
                nonlocal last
                checkpoint, metadata = next(left)
                last = saver.put(last, checkpoint, metadata, {})

            return step

        serve(prepare)


main(sys.argv[1])
