"""The stdio transport as a process: order, cleanliness of the wire, and every way to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.peer import ServerProcess, toy_serve


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with toy_serve(tmp_path) as process:
        yield process


def call(name: str, request_id: int | str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def test_replies_come_in_the_order_of_the_requests(server: ServerProcess) -> None:
    server.initialize()
    for number in range(200):
        server.send(
            call("echo", number, text="x") if number % 3 else {"jsonrpc": "2.0", "id": number, "method": "nope"}
        )
    assert [server.reply()["id"] for _ in range(200)] == list(range(200))


def test_stray_output_never_reaches_the_wire_and_children_cannot_read_it(server: ServerProcess) -> None:
    server.initialize()
    server.send(call("print", 1))
    server.send(call("echo", 2, text="still here"))
    assert server.reply()["id"] == 1
    assert server.reply()["result"]["content"][0]["text"] == "still here"
    server.end_input()
    assert server.wait() == 0
    errors = server.errors()
    assert all(stray in errors for stray in ("a stray print", "a stray write", "a stray child"))


def test_a_handler_that_raises_is_answered_and_the_server_lives(server: ServerProcess) -> None:
    server.initialize()
    server.send(call("fail", 1))
    server.send(call("unsendable", 2))
    for request_id in (1, 2):
        reply = server.reply()
        assert (reply["id"], reply["error"]["code"]) == (request_id, -32603)
    assert server.ask("ping", request_id=3)["result"] == {}


def test_malformed_lines_are_answered_in_their_place(server: ServerProcess) -> None:
    server.initialize()
    server.send(b"{not json")
    server.send(call("echo", 1))
    server.send(b"")
    server.send(b"[]")
    server.send(b'{"jsonrpc":"2.0","id":2,"method":"m","params":{"x":"' + b"a" * 70_000 + b'"}}')
    server.send(call("echo", 3))
    got = [(reply["id"], reply.get("error", {}).get("code")) for reply in (server.reply() for _ in range(5))]
    assert got == [(None, -32700), (1, None), (None, -32600), (2, -32600), (3, None)]


def test_a_waiting_call_does_not_hold_up_the_others_and_can_be_cancelled(server: ServerProcess) -> None:
    server.initialize()
    server.send(call("wait", "waiting"))
    server.send(call("echo", "quick"))
    assert server.reply()["id"] == "quick"
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "waiting"}})
    assert server.ask("ping", request_id="after")["id"] == "after"


def test_a_queued_call_that_is_cancelled_gets_no_reply(server: ServerProcess) -> None:
    """In one write: the lane is still busy with the first call when the cancellation of the second is read."""
    server.initialize()
    slow = call("echo", "slow", text="x" * 60_000)
    lines = [msgspec.json.encode(slow)] * 40
    lines += [b'{"jsonrpc":"2.0","id":"b","method":"ping"}']
    lines += [b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}}']
    lines += [b'{"jsonrpc":"2.0","id":"last","method":"ping"}']
    server.send_soon(b"\n".join(lines))
    got = []
    while (reply := server.reply())["id"] != "last":
        got.append(reply["id"])
    assert got == ["slow"] * 40


def test_answers_and_cancellations_in_a_batch_are_heard(server: ServerProcess) -> None:
    server.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}})
    server.send(call("wait", "waiting"))
    server.send(b'[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"waiting"}}]')
    assert server.ask("ping", request_id="after")["id"] == "after"


def test_a_handler_that_exits_is_answered(server: ServerProcess) -> None:
    server.initialize()
    server.send(call("exit", 1))
    assert server.reply()["error"]["code"] == -32603
    assert server.ask("ping", request_id=2)["result"] == {}


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_batches_belong_to_one_revision(server: ServerProcess, revision: str) -> None:
    server.ask("initialize", {"protocolVersion": revision, "capabilities": {}})
    server.send(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},5]')
    server.send(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    line = server.line()
    if revision == "2025-03-26":
        assert line is not None
        assert line.startswith(
            b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600'
        )
    else:
        assert line is not None
        assert b'"code":-32600' in line
    assert server.reply()["id"] == 2


def test_end_of_input_answers_what_was_accepted_and_ends_with_0(server: ServerProcess) -> None:
    server.initialize()
    for number in range(50):
        server.send(call("echo", number))
    server.end_input()
    assert [server.reply()["id"] for _ in range(50)] == list(range(50))
    assert server.line() is None
    assert server.wait() == 0


def test_a_last_line_without_its_newline_counts(server: ServerProcess) -> None:
    server.initialize()
    assert server.process.stdin is not None
    server.process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
    server.end_input()
    assert server.reply()["id"] == 9
    assert server.wait() == 0


def test_shutdown_is_answered_with_null_and_ends_with_0(server: ServerProcess) -> None:
    server.initialize()
    server.send({"jsonrpc": "2.0", "id": 99, "method": "shutdown", "params": {}})
    assert server.reply() == {"jsonrpc": "2.0", "id": 99, "result": None}
    assert server.line() is None
    assert server.wait() == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_an_idle_server_with_0(server: ServerProcess, name: str) -> None:
    server.initialize()
    server.process.send_signal(getattr(signal, name))
    assert server.wait() == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_answers_a_call_that_waits(server: ServerProcess, name: str) -> None:
    server.initialize()
    server.send(call("wait", "waiting"))
    assert server.ask("ping", request_id="after")["id"] == "after"
    server.process.send_signal(getattr(signal, name))
    reply = server.reply()
    assert (reply["id"], reply["error"]["code"]) == ("waiting", -32800)
    assert server.line() is None
    assert server.wait() == 0


def test_sigterm_ends_a_server_that_is_stuck_in_a_call(server: ServerProcess) -> None:
    server.initialize()
    server.send(call("hang", 1))
    server.process.send_signal(signal.SIGTERM)
    assert server.wait() == 0


def test_output_that_nobody_reads_any_more_ends_the_server_with_1(server: ServerProcess) -> None:
    server.initialize()
    assert server.process.stdout is not None
    server.process.stdout.close()
    for _ in range(3):
        try:
            server.send(call("echo", 1, text="y" * 60_000))
        except BrokenPipeError:
            break
    assert server.wait() == 1


def test_a_client_that_sends_without_reading_is_served_once_it_reads(server: ServerProcess) -> None:
    server.initialize()
    for number in range(30):
        server.send(call("echo", number, text="z" * 30_000))  # 900 kB each way: far more than the pipes hold
    assert [server.reply()["id"] for _ in range(30)] == list(range(30))
