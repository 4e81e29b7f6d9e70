"""The page with a real `handrail up` on a terminal: who gets in, what they may do, and news of other processes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.surfaces.web.routes import ROUTES
from tests.process.http_peer import DEADLINE_S, Open, Peer
from tests.process.page_peer import Browser, Terminal, up_on_a_terminal
from tests.store.server import running, schema_of_its_own

SESSION = "/api/session"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="module")
def terminal(folder: Path) -> Iterator[Terminal]:
    with up_on_a_terminal(folder) as running:
        yield running


@pytest.fixture(scope="module")
def ann(terminal: Terminal) -> Iterator[Browser]:
    """Who has followed the link of the start."""
    with Browser(terminal.url) as browser:
        assert browser.sign_in(terminal.link) == 303
        yield browser


@pytest.fixture
def stranger(terminal: Terminal) -> Iterator[Browser]:
    with Browser(terminal.url) as browser:
        yield browser


def handrail(folder: Path, *argv: str) -> Any:
    """Another process at the same store, with a person at its terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "handrail", *argv, "--json"],
        cwd=folder,
        stdin=theirs,
        env={**os.environ, "HOME": str(folder), "LOGNAME": "ben"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return msgspec.json.decode(done.stdout)


def plan(folder: Path, name: str, *store: str) -> str:
    made = handrail(
        folder,
        "call",
        "workflow_create",
        f"name={name}",
        "source_type=prompt",
        "source_content=x",
        "--toolsets",
        "workflow",
        *store,
    )
    return str(made["id"])


def event(stream: Open) -> tuple[str, str | None, Any]:
    """The next event of a stream: its kind, its id, what it says."""
    kind, place, data = "message", None, None
    while line := stream._response.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            place = value
        elif name == "data":
            data = msgspec.json.decode(value)
        elif not name and data is not None:
            return kind, place, data
    raise AssertionError("the stream ended")


# -- signing in --------------------------------------------------------------------------------------------------------


def test_the_link_comes_last_where_eyes_rest_and_works_once(
    terminal: Terminal, ann: Browser, stranger: Browser
) -> None:
    assert terminal.said.index("Paste one of these") < terminal.said.index(terminal.link)
    assert ann.get(SESSION)["name"] == "ann"
    with stranger.open("GET", terminal.link.removeprefix(terminal.url)) as again:
        assert again.status == 403
        assert "set-cookie" not in again.headers
    assert stranger.status("GET", SESSION) == 401


def test_the_link_leads_on_to_an_address_without_the_code(folder: Path) -> None:
    with up_on_a_terminal(folder) as other, Browser(other.url) as browser:
        with browser.open("GET", f"{other.link.removeprefix(other.url)}&theme=dark") as opened:
            assert opened.status == 303
            assert opened.headers["location"].partition("#")[0] == "/?theme=dark"
            assert opened.headers["cache-control"] == "no-store"
            cookie = opened.headers["set-cookie"]
        port = other.url.rpartition(":")[2]
        assert cookie.startswith(f"handrail_{port}=")
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert browser.get(SESSION)["decides"] is True


def test_without_a_terminal_no_link_is_printed(folder: Path) -> None:
    for options in ((), ("--json",)):
        command = [sys.executable, "-m", "handrail", "up", "--http", "127.0.0.1:0", *options]
        environment = {**os.environ, "HOME": str(folder), "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.terminate()
            said = first + process.stdout.read()
            assert process.wait(DEADLINE_S) == 0
        assert "/mcp" in said
        assert "?token=" not in said
        assert ("--rights decide" in said) == (not options)


def test_who_is_signed_in_makes_a_link_for_another_device(ann: Browser, stranger: Browser) -> None:
    status, made = ann.post("/api/links", {})
    assert status == 200
    assert made["expires_at"] > 0
    assert stranger.sign_in(made["url"]) == 303
    assert stranger.get(SESSION)["name"] == "ann"
    assert stranger.post("/api/session/end", {})[0] == 200
    assert stranger.status("GET", SESSION) == 401
    assert ann.status("GET", SESSION) == 200


def test_a_persons_token_signs_them_in_until_it_is_revoked(folder: Path, ann: Browser, stranger: Browser) -> None:
    token = handrail(folder, "token", "create", "Bea", "--rights", "decide")["token"]
    status, session = stranger.post(SESSION, {"token": token})
    assert (status, session["name"], session["decides"]) == (200, "Bea", True)
    with stranger.open("GET", "/api/feed") as feed:
        assert event(feed)[0] == "hello"
        handrail(folder, "token", "revoke", "Bea")
        assert stranger.status("GET", SESSION) == 401
        while feed._response.readline():  # the stream ends too; a reader that waits for ever fails by its deadline
            continue
    assert stranger.post(SESSION, {"token": token})[0] == 403


def test_a_token_without_that_right_does_not_sign_in(folder: Path, stranger: Browser) -> None:
    token = handrail(folder, "token", "create", "Cy", "--rights", "read,write")["token"]
    status, answer = stranger.post(SESSION, {"token": token})
    assert (status, answer["error"]["code"]) == (403, "SIGN_IN_REFUSED")
    assert stranger.post(SESSION, {"token": "T"})[0] == 403


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_nobody_reads_without_signing_in(stranger: Browser) -> None:
    for path in (SESSION, "/api/home", "/api/needs", "/api/feed"):
        with stranger.open("GET", path) as answer:
            assert answer.status == 401
            assert answer.json()["error"]["code"] == "SIGN_IN"


def test_a_bearer_reads_and_changes_nothing(stranger: Browser, ann: Browser) -> None:
    own = {"Authorization": "Bearer T"}
    assert stranger.get(SESSION, **own)["decides"] is False
    assert stranger.status("GET", "/api/home", **own) == 200
    assert stranger.status("POST", "/api/links", {}, **own) == 403
    assert stranger.status("POST", SESSION, {"token": "T"}, **own) == 403
    assert stranger.status("GET", SESSION, Authorization="Bearer wrong") == 401
    assert ann.status("POST", "/api/links", {}, **own) == 403  # a cookie beside it does not help


def test_another_host_or_origin_is_turned_away(ann: Browser) -> None:
    port = ann.url.rpartition(":")[2]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost"):
        for path in ("/", SESSION):
            assert ann.status("GET", path, Host=host) == 421, host
    assert ann.status("GET", SESSION, Host=f"localhost:{port}") == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", f"http://localhost:{port}"):
        assert ann.status("POST", "/api/links", {}, Origin=origin) == 403, origin
        assert ann.status("GET", SESSION, Origin=origin) == 403, origin
    assert ann.status("POST", "/api/links", {}, Origin=None) == 403
    assert ann.status("POST", "/api/links", {}, Sec_Fetch_Site="same-site") == 403
    assert ann.status("POST", "/api/links", {}, Content_Type="text/plain") == 415


def test_the_tools_beside_the_page_answer_to_the_exact_port_too(terminal: Terminal) -> None:
    with Peer(f"{terminal.url}/mcp", "T") as peer:
        assert peer.stateless("tools/list").status == 200
        assert peer.stateless("tools/list", headers={"Host": "localhost:1"}).status == 403
        assert peer.stateless("tools/list", headers={"Origin": "http://localhost:1"}).status == 403


def test_a_body_that_is_too_large_or_no_object_is_refused(ann: Browser) -> None:
    assert ann.post("/api/links", b'"' + b"x" * 1024 * 1024 + b'"')[0] == 413
    assert ann.post("/api/links", b"[1]")[0] == 400
    assert ann.post("/api/links", b"{")[0] == 400


def test_what_is_not_there_is_told_with_what_may_be_meant(ann: Browser) -> None:
    with ann.open("GET", "/api/sesion") as answer:
        assert answer.status == 404
        assert "did you mean /api/session" in answer.json()["error"]["message"]
    assert ann.status("GET", "/api/tasks/none") == 404
    assert ann.status("POST", "/api/home", {}) == 405
    assert ann.status("DELETE", "/api/home") == 405
    for path in ("/../pyproject.toml", "/static/../app.py", "/static/%2e%2e/app.py", "/app.py", "//", "/static/"):
        assert ann.status("GET", path) == 404, path


def test_every_answer_carries_the_safeguards(ann: Browser) -> None:
    for method, path in (("GET", "/"), ("GET", SESSION), ("GET", "/nothing"), ("HEAD", "/"), ("GET", "/api/feed")):
        with ann.open(method, path) as answer:
            assert "default-src 'none'" in answer.headers["content-security-policy"], path
            assert "trusted-types 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["x-frame-options"] == "DENY"


# -- what is served ----------------------------------------------------------------------------------------------------


def test_the_page_is_shown_to_everybody_and_not_sent_twice(stranger: Browser) -> None:
    with stranger.open("GET", "/") as page:
        assert page.status == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        etag = page.headers["etag"]
        assert page.body()
    assert stranger.status("GET", "/", If_None_Match=etag) == 304
    with stranger.open("HEAD", "/") as head:
        assert head.status == 200
        assert int(head.headers["content-length"]) > 0
        assert head.body() == b""


def test_looking_makes_no_store_and_what_is_made_later_is_seen(tmp_path: Path) -> None:
    with up_on_a_terminal(tmp_path) as running, Browser(running.url) as browser:
        assert browser.sign_in(running.link) == 303
        assert browser.get("/api/home")["workflows"] == []
        with browser.open("GET", "/api/feed") as feed:
            assert event(feed)[::2] == ("hello", {"position": 0})
            assert not (tmp_path / ".handrail" / "handrail.db").exists()
            made = plan(tmp_path, "First")
            assert made in [row["id"] for row in event(feed)[2]["workflows"]]
        assert [row["id"] for row in browser.get("/api/home")["workflows"]] == [made]


def test_a_report_is_a_file_to_keep(folder: Path, ann: Browser) -> None:
    made = plan(folder, "Kept")
    for ending, kind in (("html", "text/html"), ("md", "text/markdown")):
        with ann.open("GET", f"/api/workflows/{made}/report.{ending}") as answer:
            assert answer.status == 200
            assert answer.headers["content-type"].startswith(kind)
            assert answer.headers["content-disposition"] == f'attachment; filename="report-{made}.{ending}"'
            assert b"Kept" in answer.body()


def test_every_address_that_only_looks_answers_where_nothing_is_stored(tmp_path: Path) -> None:
    with up_on_a_terminal(tmp_path) as running, Browser(running.url) as browser:
        browser.sign_in(running.link)
        for route in ROUTES:
            if route.method == "GET":
                named = "{" in route.pattern
                path = re.sub(r"\{[^}]+\}", "none", route.pattern)
                assert browser.status("GET", path) == (404 if named else 200), path
        assert not (tmp_path / ".handrail" / "handrail.db").exists()
        assert "Traceback" not in running.said


# -- the feed ----------------------------------------------------------------------------------------------------------


def test_what_another_process_writes_is_told_and_can_be_resumed(folder: Path, ann: Browser) -> None:
    with ann.open("GET", "/api/feed") as feed:
        assert feed.is_events
        kind, _, hello = event(feed)
        assert kind == "hello"
        made = plan(folder, "Told")
        kind, place, news = event(feed)
        assert kind == "message"
        assert made in [row["id"] for row in news["workflows"]]
        assert int(place or 0) == news["position"] > hello["position"]
    with ann.open("GET", "/api/feed", Last_Event_ID=str(hello["position"])) as again:
        assert event(again)[0] == "hello"
        assert made in [row["id"] for row in event(again)[2]["workflows"]]


def test_who_claims_to_be_ahead_loads_everything_anew(ann: Browser) -> None:
    with ann.open("GET", "/api/feed?after=999999") as feed:
        assert event(feed)[0] == "hello"
        assert event(feed)[0] == "reset"
    assert ann.status("GET", "/api/feed?after=x") == 400


def test_signing_out_ends_the_stream(ann: Browser, stranger: Browser) -> None:
    assert stranger.sign_in(ann.post("/api/links", {})[1]["url"]) == 303
    with stranger.open("GET", "/api/feed") as feed:
        assert event(feed)[0] == "hello"
        stranger.post("/api/session/end", {})
        while feed._response.readline():
            continue


def test_ctrl_c_ends_it_while_a_page_is_open(tmp_path: Path) -> None:
    with up_on_a_terminal(tmp_path) as running, Browser(running.url) as browser:
        browser.sign_in(running.link)
        with browser.open("GET", "/api/feed") as feed:
            assert event(feed)[0] == "hello"
            assert running.interrupt() == 0
            while feed._response.readline():
                continue
        assert "Traceback" not in running.said


def test_on_postgresql_it_is_the_same(tmp_path: Path) -> None:
    with (
        running() as address,
        schema_of_its_own(address, f"page_{os.getpid()}") as store,
        up_on_a_terminal(tmp_path, "--db", store) as terminal,
        Browser(terminal.url) as browser,
    ):
        assert browser.sign_in(terminal.link) == 303
        assert browser.get(SESSION)["store"] == "postgresql"
        with browser.open("GET", "/api/feed") as feed:
            assert event(feed)[0] == "hello"
            made = plan(tmp_path, "Shared", "--db", store)
            assert made in [row["id"] for row in event(feed)[2]["workflows"]]
            assert terminal.interrupt() == 0
        assert store not in terminal.said
        assert "Traceback" not in terminal.said


def test_who_starts_it_is_asked_once_who_may_decide(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    config = project / ".handrail" / "config.toml"
    with up_on_a_terminal(project, home=home, typed=b"\n") as first:
        assert "may only a person answer them" in first.said
        assert first.said.index("One question") < first.said.index("may only a person answer them")
        assert "init.json" in (project / ".handrail" / ".gitignore").read_text()
        assert 'approvals = "human"' in config.read_text()
        with Browser(first.url) as browser:
            browser.sign_in(first.link)
            assert browser.get(SESSION)["approvals"] == "human"
        first.interrupt()
    with up_on_a_terminal(project, home=home) as second:
        assert "may only a person" not in second.said
        second.interrupt()
