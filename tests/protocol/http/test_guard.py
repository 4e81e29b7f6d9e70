"""Who may speak: exact host names, origins of our own, the bearer token."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.protocol.http.guard import LOOPBACK_NAMES, Guard, Principal, bearer_of

HOST = "localhost:8765"


def status(guard: Guard, **headers: str) -> int | None:
    rejection = guard.check(headers)
    return None if rejection is None else rejection.status


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8765", "localhost", "localhost:1", "LOCALHOST:80", "LocalHost", "[::1]", "[::1]:8765"],
)
def test_a_loopback_name_is_served_with_and_without_a_port(host: str) -> None:
    assert status(Guard(), host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1.evil.example:8765",
        "localhost.evil.example",
        "localhost.",
        "xlocalhost",
        "localhost:80@evil.example",
        "evil@localhost",
        "localhost@evil.example:80",
        "localhost:80:80",
        "localhost:port",
        "localhost/",
        "localhost evil.example",
        "127.1",
        "0.0.0.0",
        "2130706433",
        "::1",
        "[::1",
        "[::1]evil.example",
        "[::1].evil.example:80",
        "[::1]:80@evil.example",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:0:0:1]",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    assert status(Guard(), host=host) == 403


def test_a_request_without_a_host_is_refused() -> None:
    assert status(Guard()) == 403


PIECES = ("localhost", "127.0.0.1", "[::1]", "evil.example", ":", "80", "@", ".", "/", "]", "[", "²", " ", "#", "%00")


@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.text(st.characters(max_codepoint=255))))
@example("localhost:²")
def test_only_exact_names_ever_pass(host: str) -> None:
    if status(Guard(), host=host) is None:
        assert re.fullmatch(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]*)?", host, flags=re.IGNORECASE | re.ASCII)


def test_a_host_that_was_allowed_by_name_is_served_and_its_neighbours_are_not() -> None:
    guard = Guard(hosts=(*LOOPBACK_NAMES, "box.example"))
    assert status(guard, host="box.example:443") is None
    assert status(guard, host="BOX.example") is None
    assert status(guard, host="other.box.example") == 403
    assert status(guard, host="box.example.evil.example") == 403


@pytest.mark.parametrize("name", LOOPBACK_NAMES)
def test_where_the_port_is_known_a_loopback_name_goes_with_it_alone(name: str) -> None:
    """Another port of this machine is another program, and a page of its own must not drive our tools."""
    guard = Guard(port=8765)
    assert status(guard, host=f"{name}:8765") is None
    for port in ("", ":", ":80", ":8766", ":08765", ":87650"):
        assert status(guard, host=f"{name}{port}") == 403, port
    assert status(guard, host=f"{name}:8765", origin=f"http://{name}:3000") == 403
    assert status(Guard(port=80), host=name) is None


def test_a_name_may_be_allowed_with_the_port_that_leads_here() -> None:
    guard = Guard(hosts=(*LOOPBACK_NAMES, "localhost:9000", "box.example:443", "desk.example"), port=8765)
    for host in ("localhost:9000", "localhost:8765", "BOX.example:443", "desk.example", "desk.example:1"):
        assert status(guard, host=host) is None, host
    for host in ("localhost:9001", "127.0.0.1:9000", "box.example", "box.example:80", "[::1]"):
        assert status(guard, host=host) == 403, host


@pytest.mark.parametrize("origin", ["http://localhost:8765", "https://localhost:8765", "http://LOCALHOST:8765"])
def test_the_servers_own_origin_is_served(origin: str) -> None:
    assert status(Guard(), host=HOST, origin=origin) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "http://localhost",
        "http://localhost:9999",
        "http://127.0.0.1:8765",
        "http://localhost:8765.evil.example",
        "http://localhost:8765@evil.example",
        "http://localhost:8765/",
        "http://evil.example/http://localhost:8765",
        "file://localhost:8765",
        "ws://localhost:8765",
        "chrome-extension://abcdef",
        "localhost:8765",
    ],
)
def test_a_foreign_origin_is_refused_even_with_the_token(origin: str) -> None:
    guard = Guard(token="secret")
    assert status(guard, host=HOST, origin=origin, authorization="Bearer secret") == 403


def test_an_origin_that_was_allowed_is_served_exactly_as_written() -> None:
    guard = Guard(origins=("https://page.example",))
    assert status(guard, host=HOST, origin="https://page.example") is None
    assert status(guard, host=HOST, origin="http://page.example") == 403
    assert status(guard, host=HOST, origin="https://page.example:8443") == 403


def test_an_allowed_origin_does_not_open_a_foreign_host() -> None:
    guard = Guard(origins=("https://page.example",))
    assert status(guard, host="page.example", origin="https://page.example") == 403


@pytest.mark.parametrize("given_token", ["Bearer secret", "bearer secret", "BEARER secret", "Bearer secret "])
def test_the_token_is_taken_in_every_spelling_http_allows(given_token: str) -> None:
    assert status(Guard(token="secret"), host=HOST, authorization=given_token) is None


@pytest.mark.parametrize(
    "given_token",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer secre",
        "Bearer secrets",
        "Bearer SECRET",
        "Bearer secret secret",
        "Bearer secret, Bearer wrong",
        "Bearersecret",
        "Basic secret",
        "Basic c2VjcmV0",
        "secret",
        "Bearer \u00e9\u00ff",
        'Bearer "secret"',
    ],
)
def test_anything_but_the_token_is_refused_with_a_challenge(given_token: str) -> None:
    rejection = Guard(token="secret").check({"host": HOST, "authorization": given_token})
    assert rejection is not None
    assert rejection.status == 401
    assert rejection.headers == ((b"www-authenticate", b'Bearer realm="handrail"'),)


def test_no_token_at_all_is_refused() -> None:
    assert status(Guard(token="secret"), host=HOST) == 401


def test_a_foreign_host_is_not_told_about_tokens() -> None:
    assert status(Guard(token="secret"), host="evil.example") == 403


def test_an_empty_token_lets_nobody_in() -> None:
    assert status(Guard(token=""), host=HOST, authorization="Bearer") == 401


class NobodyKnown:
    """A lookup; the guard itself never asks it."""

    def has_form(self, token: str) -> bool:
        raise AssertionError("the guard looks nothing up")

    def find(self, token: str) -> Principal | None:
        raise AssertionError("the guard looks nothing up")

    def mark(self) -> object:
        return None


def test_with_a_lookup_the_servers_own_token_still_passes_and_others_wait_for_the_lookup() -> None:
    guard = Guard(token="secret", lookup=NobodyKnown())
    assert status(guard, host=HOST, authorization="Bearer secret") is None
    assert status(guard, host=HOST, authorization="Bearer other") == 401
    assert status(guard, host=HOST) == 401
    assert status(guard, host="evil.example", authorization="Bearer secret") == 403


def test_a_lookup_alone_asks_for_a_token_too() -> None:
    assert status(Guard(lookup=NobodyKnown()), host=HOST) == 401
    assert status(Guard(lookup=NobodyKnown()), host=HOST, authorization="Bearer x") == 401


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer a.b", "a.b"), ("bearer  a ", "a"), ("Basic a", ""), ("Bearer", ""), ("", ""), ("Bearera", "")],
)
def test_a_bearer_token_is_what_follows_the_scheme(header: str, token: str) -> None:
    assert bearer_of({"authorization": header}) == token
    assert bearer_of({}) == ""


def test_a_principal_writes_only_with_that_right() -> None:
    assert Principal(id="1", name="a").may_write
    assert not Principal(id="1", name="a", rights=("read",)).may_write
