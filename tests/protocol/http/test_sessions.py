"""Sessions: bounded in number, ended after a time without use, and what ends with them."""

from __future__ import annotations

import asyncio

import pytest

from handrail.protocol.http.sessions import KEPT_STREAMS, STANDING, HttpSession, Sessions
from handrail.protocol.server import Server
from handrail.protocol.wire import Request
from tests.protocol.http.wire import Clock
from tests.protocol.toy import toy_offer

IDLE_S = 100.0


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def server() -> Server:
    return Server(toy_offer())


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    ids = iter(f"s{number}" for number in range(10_000))
    return Sessions(most=3, idle_s=IDLE_S, new_id=lambda: next(ids), now_s=clock)


def kept(sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop) -> HttpSession:
    session = sessions.open(server, loop)
    assert session is not None
    sessions.keep(session)
    return session


def test_a_session_is_found_only_once_it_is_kept(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop
) -> None:
    session = sessions.open(server, loop)
    assert session is not None
    assert sessions.find(session.id) is None
    sessions.keep(session)
    assert sessions.find(session.id) is session
    assert sessions.find("another") is None


def test_a_session_ends_after_a_time_without_use(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop, clock: Clock
) -> None:
    session = kept(sessions, server, loop)
    clock.now_s += IDLE_S
    assert sessions.find(session.id) is session
    clock.now_s += IDLE_S + 0.001
    assert sessions.find(session.id) is None
    assert len(sessions) == 0
    assert session.standing.finished


def test_use_keeps_a_session_alive(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop, clock: Clock
) -> None:
    session = kept(sessions, server, loop)
    for _ in range(10):
        clock.now_s += IDLE_S * 0.9
        assert sessions.find(session.id) is session


def test_a_session_that_is_read_from_or_works_does_not_expire(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop, clock: Clock
) -> None:
    read, working = kept(sessions, server, loop), kept(sessions, server, loop)
    read.readers = 1
    working.running["x"] = server.open(working.connection, Request("x", "ping", {}), working.standing.emit)
    clock.now_s += 10 * IDLE_S
    assert sessions.find(read.id) is read
    assert sessions.find(working.id) is working
    read.readers = 0
    working.running.clear()
    clock.now_s += 2 * IDLE_S
    assert sessions.find(read.id) is None
    assert sessions.find(working.id) is None


def test_a_newcomer_takes_the_place_of_whoever_was_quiet_the_longest(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop, clock: Clock
) -> None:
    busy, used, quiet = (kept(sessions, server, loop) for _ in range(3))
    busy.readers = 1
    clock.now_s += 1
    assert sessions.find(used.id) is used
    newcomer = kept(sessions, server, loop)
    assert quiet.standing.finished
    assert [sessions.find(session.id) for session in (busy, quiet, used, newcomer)] == [busy, None, used, newcomer]


def test_a_handshake_that_fails_takes_nobodys_place(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop
) -> None:
    every = [kept(sessions, server, loop) for _ in range(3)]
    assert sessions.open(server, loop) is not None
    assert [sessions.find(session.id) for session in every] == every


def test_there_is_no_room_while_everybody_is_at_work(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop, clock: Clock
) -> None:
    every = [kept(sessions, server, loop) for _ in range(3)]
    for session in every[:2]:
        session.readers = 1
    every[2].running["x"] = server.open(every[2].connection, Request("x", "ping", {}), every[2].standing.emit)
    assert sessions.open(server, loop) is None
    every[2].running.clear()
    clock.now_s += IDLE_S + 1
    assert sessions.open(server, loop) is not None
    assert len(sessions) == 2


def test_an_ended_session_is_gone_and_its_work_is_told(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop
) -> None:
    session = kept(sessions, server, loop)
    session.connection.revision = "2025-11-25"
    exchange = server.open(session.connection, Request("x", "ping", {}), session.standing.emit)
    session.running["x"] = exchange
    server.subscribers.list_changed("toolsListChanged")
    assert len(session.standing.after(0)) == 1
    sessions.end(session)
    assert exchange.cancelled
    assert session.standing.finished
    assert sessions.find(session.id) is None
    server.subscribers.list_changed("toolsListChanged")
    assert len(session.standing.after(0)) == 1
    sessions.end(session)


def test_all_sessions_end_at_once(sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop) -> None:
    every = [kept(sessions, server, loop) for _ in range(3)]
    sessions.end_all()
    assert len(sessions) == 0
    assert all(session.standing.finished for session in every)


def test_only_the_newest_streams_of_a_session_can_be_resumed(
    sessions: Sessions, server: Server, loop: asyncio.AbstractEventLoop
) -> None:
    session = kept(sessions, server, loop)
    opened = [session.new_stream() for _ in range(KEPT_STREAMS + 10)]
    assert len({stream.name for stream in opened}) == len(opened)
    assert session.stream(opened[0].name) is None
    assert session.stream(opened[9].name) is None
    assert [session.stream(stream.name) for stream in opened[10:]] == opened[10:]
    assert session.stream(STANDING) is session.standing
    assert session.stream("") is None
