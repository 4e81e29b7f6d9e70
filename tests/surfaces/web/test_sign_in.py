"""Signing in: codes work once and not for ever, guesses are slowed down, a revoked token ends what it began."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from handrail.surfaces.web.sign_in import (
    BELIEVED_S,
    CODES,
    LINK_CODE_S,
    SESSION_S,
    SESSIONS,
    START_CODE_S,
    WRONG_TRIES,
    WRONG_TRIES_S,
    PageSession,
    SignedInPerson,
    SignIn,
    SignInFailed,
)
from tests.protocol.http.wire import Clock


class Book:
    """People and their tokens."""

    def __init__(self) -> None:
        self.tokens = {
            "hr_bea": (SignedInPerson("Bea", "tok_1"), True),
            "hr_cy": (SignedInPerson("Cy", "tok_2"), False),
        }
        self.revoked: set[str] = set()
        self.marked = 0
        self.asked = 0
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while it is asked."""

    def has_form(self, text: str) -> bool:
        return text.startswith("hr_")

    def find(self, text: str) -> tuple[SignedInPerson, bool] | None:
        found = self.tokens.get(text)
        return None if found is None or found[0].token_id in self.revoked else found

    def still_decides(self, token_id: str) -> bool:
        self.asked += 1
        self.meanwhile()
        return token_id not in self.revoked

    def mark(self) -> object:
        return self.marked


class Desk:
    def __init__(self) -> None:
        self.clock, self.book = Clock(), Book()
        self.sign_in = SignIn(self.book, owner="ann", now_s=self.clock)

    def open(self, text: str) -> tuple[str, PageSession]:
        opened = self.sign_in.by_text(text)
        assert not isinstance(opened, SignInFailed), opened
        return opened.cookie, opened.session

    def refused(self, text: str) -> str:
        opened = self.sign_in.by_text(text)
        assert isinstance(opened, SignInFailed)
        return opened.code


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_code_signs_its_owner_in_once(desk: Desk) -> None:
    code = desk.sign_in.new_code(START_CODE_S)
    cookie, session = desk.open(code)
    assert session.person == SignedInPerson("ann")
    assert desk.sign_in.session(cookie) == session
    assert desk.refused(code) == "SIGN_IN_REFUSED"
    assert isinstance(desk.sign_in.by_code(code), SignInFailed)


def test_of_many_who_use_one_code_at_once_one_gets_in(desk: Desk) -> None:
    code = desk.sign_in.new_code(START_CODE_S)
    got: list[bool] = []
    threads = [
        threading.Thread(target=lambda: got.append(not isinstance(desk.sign_in.by_code(code), SignInFailed)))
        for _ in range(WRONG_TRIES // 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got.count(True) == 1


def test_an_unused_code_runs_out(desk: Desk) -> None:
    early, late = desk.sign_in.new_code(LINK_CODE_S), desk.sign_in.new_code(START_CODE_S)
    desk.clock.now_s = LINK_CODE_S - 1
    in_time = desk.sign_in.new_code(LINK_CODE_S)
    desk.clock.now_s = LINK_CODE_S
    assert desk.refused(early) == "SIGN_IN_REFUSED"
    desk.open(in_time)
    desk.clock.now_s = START_CODE_S
    assert desk.refused(late) == "SIGN_IN_REFUSED"


def test_codes_and_cookies_are_long_and_never_the_same(desk: Desk) -> None:
    codes = {desk.sign_in.new_code(LINK_CODE_S) for _ in range(20)}
    assert len(codes) == 20
    assert all(len(code) == 32 for code in codes)
    cookie, _ = desk.open(codes.pop())
    assert cookie not in codes
    assert len(cookie) == 32


@pytest.mark.parametrize("cookie", ["", "x", "\u00e9", "0" * 32])
def test_an_unknown_cookie_is_nobodys(desk: Desk, cookie: str) -> None:
    desk.open(desk.sign_in.new_code(START_CODE_S))
    assert desk.sign_in.session(cookie) is None


def test_nothing_that_prints_it_tells_a_secret(desk: Desk) -> None:
    code = desk.sign_in.new_code(START_CODE_S)
    cookie, session = desk.open(desk.sign_in.new_code(START_CODE_S))
    kept = f"{vars(desk.sign_in)} {session}"
    assert code not in kept
    assert cookie not in kept


def test_a_session_ends_when_it_is_over_or_ended(desk: Desk) -> None:
    cookie, session = desk.open(desk.sign_in.new_code(START_CODE_S))
    other, _ = desk.open(desk.sign_in.new_code(START_CODE_S))
    desk.sign_in.end(session)
    assert desk.sign_in.session(cookie) is None
    assert not desk.sign_in.look_again(session)
    assert desk.sign_in.session(other) is not None
    desk.clock.now_s = SESSION_S
    assert desk.sign_in.session(other) is None


def test_the_link_for_another_device_is_for_the_same_person(desk: Desk) -> None:
    _, session = desk.open("hr_bea")
    cookie, other = desk.open(desk.sign_in.new_code(LINK_CODE_S, session.person))
    assert other.person == session.person
    desk.book.revoked.add("tok_1")
    assert not desk.sign_in.look_again(other)
    assert desk.sign_in.session(cookie) is None


def test_wrong_codes_are_slowed_down_and_later_taken_again(desk: Desk) -> None:
    code = desk.sign_in.new_code(START_CODE_S)
    for number in range(WRONG_TRIES):
        desk.clock.now_s = number / 10
        assert desk.refused(f"{'hr_' if number % 2 else ''}guess{number}") == "SIGN_IN_REFUSED"
    assert desk.refused("guess") == "TOO_MANY_TRIES"
    assert desk.refused("hr_bea") == "TOO_MANY_TRIES"
    desk.open(code)  # what is right opens all the same: wrong tries of a foreign page lock nobody out
    desk.clock.now_s = WRONG_TRIES_S
    assert desk.refused("guess") == "SIGN_IN_REFUSED"


def test_right_codes_do_not_count_as_tries(desk: Desk) -> None:
    for _ in range(2 * WRONG_TRIES):
        desk.open(desk.sign_in.new_code(LINK_CODE_S))


def test_a_token_that_may_decide_signs_its_person_in_as_often_as_they_like(desk: Desk) -> None:
    for _ in range(2):
        _, session = desk.open("hr_bea")
        assert session.person == SignedInPerson("Bea", "tok_1")
    assert desk.refused("hr_cy") == "SIGN_IN_REFUSED"
    assert desk.refused("hr_nobody") == "SIGN_IN_REFUSED"


def test_a_token_is_never_taken_from_an_address(desk: Desk) -> None:
    assert isinstance(desk.sign_in.by_code("hr_bea"), SignInFailed)


def test_a_session_by_token_is_looked_at_again_before_long_and_ends_with_its_token(desk: Desk) -> None:
    cookie, session = desk.open("hr_bea")
    assert not desk.sign_in.is_believed(session)
    assert desk.sign_in.look_again(session)
    assert desk.sign_in.is_believed(session)
    desk.clock.now_s = BELIEVED_S
    assert not desk.sign_in.is_believed(session)
    desk.book.revoked.add("tok_1")
    assert not desk.sign_in.look_again(session)
    assert desk.sign_in.session(cookie) is None
    assert desk.refused("hr_bea") == "SIGN_IN_REFUSED"


def test_a_revocation_on_this_machine_is_looked_at_at_once(desk: Desk) -> None:
    _, session = desk.open("hr_bea")
    desk.sign_in.look_again(session)
    desk.book.marked += 1
    assert not desk.sign_in.is_believed(session)


def test_who_came_by_the_terminals_code_is_asked_about_nowhere(desk: Desk) -> None:
    _, session = desk.open(desk.sign_in.new_code(START_CODE_S))
    desk.book.marked += 1
    assert desk.sign_in.is_believed(session)
    assert desk.sign_in.look_again(session)
    assert desk.book.asked == 0


def test_a_session_that_ended_while_it_was_looked_at_stays_ended(desk: Desk) -> None:
    _, session = desk.open("hr_bea")

    desk.book.meanwhile = lambda: desk.sign_in.end(session)
    assert not desk.sign_in.look_again(session)
    assert not desk.sign_in.is_believed(session)


def test_codes_and_sessions_do_not_grow_without_end(desk: Desk) -> None:
    first = desk.sign_in.new_code(START_CODE_S)
    for _ in range(CODES):
        newest = desk.sign_in.new_code(START_CODE_S)
    assert desk.refused(first) == "SIGN_IN_REFUSED"
    oldest, _ = desk.open(newest)
    for _ in range(SESSIONS):
        last, _ = desk.open("hr_bea")
    assert desk.sign_in.session(oldest) is None
    assert desk.sign_in.session(last) is not None


def test_a_session_is_proven_by_what_only_its_own_page_was_told(desk: Desk) -> None:
    one, other = (desk.sign_in.by_code(desk.sign_in.new_code(LINK_CODE_S)) for _ in range(2))
    assert not isinstance(one, SignInFailed)
    assert not isinstance(other, SignInFailed)
    assert desk.sign_in.proves(one.session, one.proof)
    for wrong in ("", other.proof, one.cookie):
        assert not desk.sign_in.proves(one.session, wrong)
