"""Where a server may listen, and with which rules."""

from __future__ import annotations

import socket

import pytest

from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard
from handrail.protocol.http.running import binding_problem, listening_socket

NAMED = (*LOOPBACK_NAMES, "box.example")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "::1"])
@pytest.mark.parametrize("guard", [Guard(), Guard(token="T"), Guard(hosts=NAMED)])
def test_loopback_needs_nothing(host: str, guard: Guard) -> None:
    assert binding_problem(host, guard) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.168.1.5", "box.example", "", "127.0.0.1.evil.example"])
def test_other_machines_need_a_token_and_a_name(host: str) -> None:
    assert "token" in (binding_problem(host, Guard(hosts=NAMED)) or "")
    assert "name the host" in (binding_problem(host, Guard(token="T")) or "")
    assert binding_problem(host, Guard(hosts=NAMED, token="T")) is None


def test_an_empty_token_is_no_token() -> None:
    assert binding_problem("0.0.0.0", Guard(hosts=NAMED, token="")) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_port_0_takes_a_free_one(host: str) -> None:
    with listening_socket(host, 0) as one, listening_socket(host, 0) as other:
        assert 0 < one.getsockname()[1] != other.getsockname()[1] > 0


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        listening_socket("127.0.0.1", taken.getsockname()[1])
