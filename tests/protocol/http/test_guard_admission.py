"""Who is let in by a lookup: what it found holds for a moment, what was taken back does not, and floods cost little."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from handrail.protocol.http.guard import (
    BELIEVED_S,
    KNOWN,
    STRANGERS,
    THREADS,
    Admission,
    Guard,
    LookupFailed,
    Principal,
    Rejection,
)
from tests.protocol.http.wire import Clock

DEADLINE_S = 10.0
ANN = Principal(id="1", name="ann")


class Book:
    """A lookup that counts, and waits where a test wants it to."""

    def __init__(self, **tokens: Principal) -> None:
        self.tokens = dict(tokens)
        self.asked: list[str] = []
        self.noted = 0
        self.failing: str | None = None
        self.open = threading.Event()
        self.open.set()
        self.arrived = threading.Semaphore(0)
        self.threads: set[int] = set()

    def has_form(self, token: str) -> bool:
        return bool(token) and token.isascii()

    def find(self, token: str) -> Principal | None:
        self.threads.add(threading.get_ident())
        self.asked.append(token)
        found = self.tokens.get(token)  # read before the gate: an answer can be old by the time it comes
        self.arrived.release()
        assert self.open.wait(DEADLINE_S)
        if self.failing is not None:
            raise LookupFailed(self.failing)
        return found

    def mark(self) -> object:
        return self.noted


class Door:
    """An admission over a book and a clock."""

    def __init__(self, **tokens: Principal) -> None:
        self.book, self.clock = Book(**tokens), Clock(100.0)
        self.admission = Admission(Guard(token="own", lookup=self.book), now_s=self.clock)

    async def admit(self, token: str | None, **headers: str) -> Principal | Rejection | None:
        bearer = {"authorization": f"Bearer {token}"} if token is not None else {}
        return await self.admission.admit({"host": "localhost", **bearer, **headers})

    async def status(self, token: str | None, **headers: str) -> int:
        admitted = await self.admit(token, **headers)
        return admitted.status if isinstance(admitted, Rejection) else 200

    async def arrival(self) -> None:
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, self.book.arrived.acquire, True, DEADLINE_S)


def played(door: Door, play: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(3 * DEADLINE_S):
            await play()

    try:
        asyncio.run(main())
    finally:
        door.book.open.set()
        door.admission.close()


def test_the_servers_own_token_is_nobodys_in_particular_and_asks_nobody() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        assert await door.admit("own") is None
        assert door.book.asked == []

    played(door, play)


def test_a_known_token_is_let_in_as_whom_it_stands_for() -> None:
    door = Door(a=ANN, b=Principal(id="2", name="bot", rights=("read",), agent_id="agent_1"))

    async def play() -> None:
        assert await door.admit("a") == ANN
        bot = await door.admit("b")
        assert isinstance(bot, Principal)
        assert (bot.name, bot.may_write, bot.agent_id) == ("bot", False, "agent_1")

    played(door, play)


def test_what_is_no_token_by_its_form_is_not_even_looked_up() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        assert await door.status("\u00e9") == 401
        assert door.book.asked == []

    played(door, play)


@pytest.mark.parametrize("token", [None, "", "x"])
def test_nobody_else_is_let_in(token: str | None) -> None:
    door = Door(a=ANN)

    async def play() -> None:
        refused = await door.admit(token)
        assert isinstance(refused, Rejection)
        assert refused.status == 401
        assert refused.headers[0][0] == b"www-authenticate"
        assert (b"invalid_token" in refused.headers[0][1]) is (token == "x")

    played(door, play)


def test_a_foreign_host_or_page_is_refused_before_any_token_is_looked_at() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        assert await door.status("a", host="evil.example") == 403
        assert await door.status("a", origin="http://evil.example") == 403
        assert door.book.asked == []

    played(door, play)


def test_a_principal_that_is_barred_is_told_why() -> None:
    door = Door(a=Principal(id="1", name="ann", rights=("sign",), barred="it signs ann in elsewhere"))

    async def play() -> None:
        for _ in range(2):
            refused = await door.admit("a")
            assert refused == Rejection(403, "it signs ann in elsewhere")

    played(door, play)


def test_what_was_found_holds_for_two_seconds_from_when_it_was_asked() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        assert BELIEVED_S <= 2.0
        assert await door.status("a") == 200
        del door.book.tokens["a"]
        door.clock.now_s += BELIEVED_S - 0.01
        assert await door.status("a") == 200
        assert door.book.asked == ["a"]
        door.clock.now_s += 0.01
        assert await door.status("a") == 401
        door.clock.now_s -= BELIEVED_S  # nothing of it is left, whatever the clock says
        assert await door.status("a") == 401

    played(door, play)


def test_a_revocation_noted_on_this_machine_holds_at_once() -> None:
    door = Door(a=ANN, b=ANN)

    async def play() -> None:
        assert (await door.status("a"), await door.status("b")) == (200, 200)
        del door.book.tokens["a"]
        door.book.noted += 1
        assert (await door.status("a"), await door.status("b")) == (401, 200)

    played(door, play)


def test_an_answer_that_was_on_its_way_when_the_token_was_revoked_lets_nobody_else_in() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        door.book.open.clear()
        early = asyncio.create_task(door.status("a"))
        await door.arrival()
        del door.book.tokens["a"]
        door.book.noted += 1
        late = asyncio.create_task(door.status("a"))
        await door.arrival()
        door.book.open.set()
        assert (await early, await late) == (200, 401)
        assert await door.status("a") == 401

    played(door, play)


def test_that_a_token_is_unknown_is_not_remembered() -> None:
    door = Door()

    async def play() -> None:
        assert await door.status("a") == 401
        door.book.tokens["a"] = ANN
        assert await door.status("a") == 200

    played(door, play)


def test_many_who_come_with_one_token_at_once_are_one_question() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        door.book.open.clear()
        crowd = [asyncio.create_task(door.status("a")) for _ in range(3 * STRANGERS)]
        await door.arrival()
        door.book.open.set()
        assert set(await asyncio.gather(*crowd)) == {200}
        assert door.book.asked == ["a"]

    played(door, play)


def test_a_flood_of_wrong_tokens_is_sent_away_and_keeps_out_nobody_who_was_here_before() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        assert await door.status("a") == 200
        door.book.open.clear()
        flood = [asyncio.create_task(door.status(f"wrong-{number}")) for number in range(5 * STRANGERS)]
        await asyncio.sleep(0)
        turned_away = sum(task.done() and task.result() == 503 for task in flood)
        assert turned_away == 4 * STRANGERS
        for _ in range(THREADS + 1):
            await door.arrival()
        door.clock.now_s += 2 * BELIEVED_S  # ann has to be asked for again
        ann = asyncio.create_task(door.status("a"))
        await door.arrival()
        assert door.book.asked[-1] == "a"
        door.book.open.set()
        assert await ann == 200
        assert {await task for task in flood} == {401, 503}
        assert len(door.book.threads) <= 2 * THREADS
        assert not door.admission.is_asking()
        assert await door.status("wrong") == 401

    played(door, play)


def test_a_lookup_that_fails_is_told_and_the_next_may_succeed() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        door.book.failing = "the store cannot be reached"
        refused = await door.admit("a")
        assert isinstance(refused, Rejection)
        assert (refused.status, refused.reason) == (503, "the store cannot be reached")
        door.book.failing = None
        assert await door.status("a") == 200

    played(door, play)


def test_the_event_loop_goes_on_while_a_lookup_takes_long() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        door.book.open.clear()
        slow = asyncio.create_task(door.status("a"))
        await door.arrival()
        assert door.admission.is_asking()
        assert await door.status("own") == 200
        door.book.open.set()
        assert await slow == 200
        assert not door.admission.is_asking()

    played(door, play)


def test_a_caller_that_goes_away_does_not_take_the_answer_from_the_others() -> None:
    door = Door(a=ANN)

    async def play() -> None:
        door.book.open.clear()
        leaving, staying = (asyncio.create_task(door.status("a")) for _ in range(2))
        await door.arrival()
        leaving.cancel()
        door.book.open.set()
        assert await staying == 200

    played(door, play)


def test_only_so_many_are_remembered() -> None:
    tokens = {f"t{number}": Principal(id=str(number), name="x") for number in range(KNOWN + 5)}
    door = Door(**tokens)

    async def play() -> None:
        for token in tokens:
            assert await door.status(token) == 200
        assert len(door.admission._known) == KNOWN
        assert await door.status("t0") == 200

    played(door, play)
