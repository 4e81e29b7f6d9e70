"""Who may come in at all: a table of hostile requests, and that the page's own pass."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.http.guard import LOOPBACK_NAMES
from handrail.surfaces.web.request_guard import DECISIVE, Door, cookie_of, taken_apart

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
DOOR = Door(port=8765)
NAMED = Door(port=8765, hosts=(*LOOPBACK_NAMES, "box.example", "desk.example:9000", "localhost:9001"))
WRITE = {"host": HOST, "origin": ORIGIN, "sec-fetch-site": "same-origin", "content-type": "application/json"}


def status(door: Door, method: str = "GET", **headers: str | None) -> int | None:
    given = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
    away = door.check(method, {name: value for name, value in given.items() if value is not None})
    return None if away is None else away.status


def write_status(**headers: str | None) -> int | None:
    return status(DOOR, "POST", **{**WRITE, **{name.replace("_", "-"): value for name, value in headers.items()}})


@pytest.mark.parametrize("host", [HOST, "localhost:8765", "LocalHost:8765", "[::1]:8765"])
def test_a_loopback_name_with_the_pages_own_port_comes_in(host: str) -> None:
    assert status(DOOR, host=host) is None
    assert status(DOOR, "HEAD", host=host) is None
    assert status(DOOR, host=host, origin=f"http://{host}") is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "127.0.0.1",
        "localhost",
        "[::1]",
        "localhost:",
        "localhost:80",
        "127.0.0.1:8766",
        "127.0.0.1:87650",
        "127.0.0.1:08765",
        "127.0.0.1:8765:8765",
        "evil.example",
        "evil.example:8765",
        "127.0.0.1:8765.evil.example",
        "localhost.evil.example:8765",
        "localhost.:8765",
        "evil@localhost:8765",
        "localhost:8765@evil.example",
        "localhost:8765/",
        "127.1:8765",
        "0.0.0.0:8765",
        "[::ffff:127.0.0.1]:8765",
        "::1:8765",
        "box.example",
    ],
)
def test_any_other_host_is_misdirected(host: str | None) -> None:
    assert status(DOOR, host=host) == 421
    assert status(DOOR, "POST", host=host) == 421


PIECES = ("localhost", "127.0.0.1", "[::1]", "evil.example", ":", "8765", "@", ".", "/", "]", "[", "²", " ", "%00")


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_only_exact_hosts_ever_pass(host: str) -> None:
    if status(DOOR, host=host) is None:
        assert re.fullmatch(r"(127\.0\.0\.1|localhost|\[::1\]):8765", host, flags=re.IGNORECASE)


def test_on_the_port_that_goes_without_saying_it_may_be_left_out() -> None:
    assert status(Door(port=80), host="localhost") is None
    assert status(Door(port=80), host="localhost:80") is None
    assert status(Door(port=80), host="localhost:8765") == 421


def test_a_host_that_was_allowed_by_name_comes_in_with_the_port_it_was_named_with_or_any() -> None:
    for host in ("box.example", "BOX.example:443", "box.example:1", "desk.example:9000", "localhost:9001"):
        assert status(NAMED, host=host) is None, host
    for host in ("desk.example", "desk.example:9001", "localhost:9000", "x.box.example", "box.example.evil.example"):
        assert status(NAMED, host=host) == 421, host


def test_behind_an_allowed_name_may_stand_something_that_speaks_tls() -> None:
    assert status(NAMED, host="box.example", origin="https://box.example") is None
    assert status(NAMED, host="box.example", origin="http://box.example") is None
    assert status(NAMED, host=HOST, origin=f"https://{HOST}") == 403


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "https://127.0.0.1:8765",
        "http://127.0.0.1",
        "http://127.0.0.1:3000",
        "http://localhost:8765",
        "http://127.0.0.1:8765/",
        "http://127.0.0.1:8765.evil.example",
        "http://127.0.0.1:8765@evil.example",
        "http://evil.example/http://127.0.0.1:8765",
        "file://127.0.0.1:8765",
        "chrome-extension://abcdef",
        "127.0.0.1:8765",
    ],
)
def test_a_foreign_origin_neither_looks_nor_changes(origin: str) -> None:
    assert status(DOOR, origin=origin) == 403
    assert write_status(origin=origin) == 403


def test_the_pages_own_change_comes_in() -> None:
    assert write_status() is None
    assert write_status(sec_fetch_site=None) is None  # a browser that does not send it still names its origin
    assert write_status(content_type="Application/JSON; charset=utf-8") is None


def test_a_change_without_an_origin_does_not_whoever_sends_it() -> None:
    assert write_status(origin=None) == 403
    assert write_status(origin=None, authorization="Bearer T") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "Same-Origin"])
def test_a_change_from_elsewhere_does_not_though_it_names_our_origin(site: str) -> None:
    assert write_status(sec_fetch_site=site) == 403


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain; application/json",
        "application/jsonx",
    ],
)
def test_what_a_form_could_send_is_not_taken(kind: str | None) -> None:
    assert write_status(content_type=kind) == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_not_taken(method: str) -> None:
    away = DOOR.check(method, WRITE)
    assert away is not None
    assert away.status == 405
    assert away.headers == ((b"allow", b"GET, HEAD, POST"),)


def test_a_link_from_another_site_opens_the_page() -> None:
    assert status(DOOR, sec_fetch_site="cross-site") is None


@pytest.mark.parametrize("name", DECISIVE)
def test_a_header_that_decides_must_not_come_twice(name: str) -> None:
    raw = [(b"accept", b"a"), (b"accept", b"b"), (name.encode(), b"x"), (name.title().encode(), b"y")]
    assert taken_apart(raw)[1] == name
    assert taken_apart(raw[:3]) == ({"accept": "b", name: "x"}, None)


@pytest.mark.parametrize(
    ("cookies", "value"),
    [
        ("handrail_1=a", "a"),
        ("x=1; handrail_1=a; y=2", "a"),
        ("handrail_1 = a ", "a"),
        ("handrail_1=a=b", "a=b"),
        ("handrail_11=a", ""),
        ("xhandrail_1=a", ""),
        ("handrail_1=a; handrail_1=b", ""),
        ("handrail_1", ""),
        ("", ""),
    ],
)
def test_a_cookie_is_found_by_its_exact_name_and_not_guessed_among_two(cookies: str, value: str) -> None:
    assert cookie_of({"cookie": cookies}, "handrail_1") == value
    assert cookie_of({}, "handrail_1") == ""


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("dest", ["image", "iframe", "script", "empty", "style"])
def test_nothing_of_another_page_looks_though_its_browser_sends_our_cookie(site: str, dest: str) -> None:
    assert status(DOOR, sec_fetch_site=site, sec_fetch_dest=dest) == 403
    assert status(DOOR, sec_fetch_site="same-origin", sec_fetch_dest=dest) is None
