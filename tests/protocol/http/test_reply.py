"""What one reply travels on: order, bounds, resuming, the reply as the last event."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from handrail.protocol.http.reply import KEPT_BYTES, Stream, event_of, position_of, priming_event


@pytest.fixture
def stream(loop: asyncio.AbstractEventLoop) -> Stream:
    return Stream(loop, "7")


def notes(stream: Stream, after: int = 0) -> list[int]:
    return [msgspec.json.decode(data)["n"] for _, data in stream.after(after)]


def test_events_are_numbered_in_the_order_they_came(stream: Stream) -> None:
    for number in range(5):
        stream.emit({"n": number})
    assert [number for number, _ in stream.after(0)] == [1, 2, 3, 4, 5]
    assert notes(stream) == [0, 1, 2, 3, 4]


def test_a_reader_that_comes_back_gets_only_what_it_missed(stream: Stream) -> None:
    for number in range(5):
        stream.emit({"n": number})
    assert notes(stream, after=3) == [3, 4]
    assert notes(stream, after=5) == []
    assert notes(stream, after=999) == []


def test_the_reply_is_the_last_event_and_comes_once(stream: Stream) -> None:
    stream.emit({"n": 1})
    stream.finish(b'{"n":2}')
    stream.seal_reply()
    stream.seal_reply()
    assert notes(stream) == [1, 2]
    assert stream.finished
    assert stream.reply is None


def test_a_reply_alone_is_no_event_until_somebody_reads_events(stream: Stream) -> None:
    stream.finish(b'{"n":1}', 404)
    assert (stream.emitted, stream.reply, stream.status) == (False, b'{"n":1}', 404)
    stream.seal_reply()
    assert notes(stream) == [1]


def test_what_is_kept_is_bounded_and_the_oldest_go_first(stream: Stream) -> None:
    text = "x" * 1000
    for number in range(5000):
        stream.emit({"n": number, "text": text})
    kept = stream.after(0)
    assert sum(len(data) for _, data in kept) <= KEPT_BYTES
    assert len(kept) > 900
    assert kept[-1][0] == 5000
    assert [number for number, _ in kept] == list(range(kept[0][0], 5001))


def test_the_reply_is_kept_however_large(stream: Stream) -> None:
    stream.emit({"n": 1})
    stream.finish(b'{"n":2,"text":"' + b"x" * (2 * KEPT_BYTES) + b'"}')
    stream.seal_reply()
    assert notes(stream) == [2]
    assert stream.after(0)[0][0] == 2


def test_messages_of_several_threads_all_arrive(stream: Stream) -> None:
    def emit() -> None:
        for number in range(200):
            stream.emit({"n": number})

    threads = [threading.Thread(target=emit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for number, _ in stream.after(0)] == list(range(1, 1601))
    assert sorted(notes(stream)) == sorted(list(range(200)) * 8)


@pytest.mark.parametrize("how", ["emit", "hold", "finish", "kick"])
def test_whatever_happens_wakes_the_reader(how: str) -> None:
    async def read() -> None:
        stream = Stream(asyncio.get_running_loop())
        act = {
            "emit": lambda: stream.emit({"n": 1}),
            "hold": lambda: stream.hold(b"{}"),
            "finish": lambda: stream.finish(b"{}"),
            "kick": stream.kick,
        }[how]
        threading.Thread(target=act).start()
        async with asyncio.timeout(10):
            await stream.wake.wait()

    asyncio.run(read())


def test_a_handler_that_outlives_the_loop_can_still_speak(stream: Stream, loop: asyncio.AbstractEventLoop) -> None:
    loop.close()
    stream.emit({"n": 1})
    stream.finish(b"{}")
    assert stream.finished


def test_an_event_names_its_place_only_where_one_can_come_back(stream: Stream) -> None:
    assert event_of(stream, 3, b"{}", resumable=True) == b"id: 7-3\nevent: message\ndata: {}\n\n"
    assert event_of(stream, 3, b"{}", resumable=False) == b"event: message\ndata: {}\n\n"
    assert priming_event(stream, 500) == b"id: 7-0\nretry: 500\ndata: \n\n"


@pytest.mark.parametrize(
    ("event_id", "place"),
    [
        ("7-3", ("7", 3)),
        ("0-0", ("0", 0)),
        ("a-b-12", ("a-b", 12)),
        ("-5", ("", 5)),
        ("", None),
        ("7", None),
        ("7-", None),
        ("7-x", None),
        ("7--3", ("7-", 3)),
        ("7-3.5", None),
        ("7-²", None),
        ("7-" + "9" * 12, None),
    ],
)
def test_a_place_is_read_back_or_not_ours(event_id: str, place: tuple[str, int] | None) -> None:
    assert position_of(event_id) == place
