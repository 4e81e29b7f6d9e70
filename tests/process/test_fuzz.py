"""Hostile input: every request with an id gets exactly one reply, in order, and the server lives."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.process.fuzz import Expected, lines
from tests.process.peer import handrail_serve


def storm(folder: Path, seed: int, count: int) -> None:
    with handrail_serve(folder, "--set", "max_message_bytes=65536") as server:
        server.initialize()
        planned = list(lines(seed, count))

        def send_all() -> None:
            for raw, _ in planned:
                server.send(raw)
            server.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})

        sender = threading.Thread(target=send_all)
        sender.start()
        got: list[Any] = []
        while (reply := server.reply())["id"] != "last":
            assert ("result" in reply) != ("error" in reply)
            got.append(reply["id"])
        sender.join()
        assert got == wanted([expected for _, expected in planned]), f"seed {seed}"
        server.end_input()
        assert server.wait() == 0


def wanted(expected: list[Expected]) -> list[Any]:
    return [value if kind == "id" else None for kind, value in expected if kind != "none"]


def test_ten_thousand_hostile_lines_get_exactly_one_reply_each(tmp_path: Path) -> None:
    storm(tmp_path, seed=20261115, count=10_000)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(40))
def test_storms_of_other_seeds(tmp_path: Path, seed: int) -> None:
    storm(tmp_path, seed=seed, count=10_000)
