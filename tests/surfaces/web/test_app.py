"""The page as an application, without a socket: routes, units of work, and every way of saying no."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from handrail.domain.crew.tokens import issue, listed
from handrail.http_wiring import build_endpoint, guard_of
from handrail.kernel.errors import (
    IllegalTransition,
    InvalidParams,
    NotAllowed,
    NothingToUndo,
    Refusal,
    StoreBusy,
    TaskNotFound,
    WorkflowClosed,
)
from handrail.kernel.ledger import Actor
from handrail.operation import Call, HttpAddress
from handrail.page_wiring import Deciders
from handrail.surfaces.web import app as module
from handrail.surfaces.web.app import OWN_PATHS, PROOF, PageApp, PageFacts, PageParts
from handrail.surfaces.web.feed import PageFeed
from handrail.surfaces.web.request_guard import Door
from handrail.surfaces.web.responses import GZIP_BYTES, Download, answer_of, refused, takes_gzip
from handrail.surfaces.web.route import PageRequest, PageRoute, read, write
from handrail.surfaces.web.routes import RouteTable
from handrail.surfaces.web.sign_in import START_CODE_S, SignIn
from handrail.surfaces.web.static_files import StaticFiles
from handrail.wiring import LookingLedger, has_store
from tests.protocol.http.wire import Clock
from tests.world import World

DEADLINE_S = 10.0
PORT = 8765
HOST = f"127.0.0.1:{PORT}"


class Said(NamedTuple):
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Site:
    """A page with routes of the test's own, over a project on disk."""

    def __init__(self, folder: Path, *routes: PageRoute) -> None:
        self.world = World(folder)
        handrail = self.world.handrail()
        settings, place = handrail.settings, self.world.place
        self.looking = LookingLedger(handrail.ledger, lambda: has_store(place, settings))
        self.sign_in = SignIn(Deciders(place, self.looking, "page"), owner="ann", now_s=Clock())
        static = folder / "static"
        static.mkdir()
        (static / "index.html").write_text("<!doctype html>", encoding="utf-8")
        page = PageParts(
            door=Door(port=PORT),
            sign_in=self.sign_in,
            feed=PageFeed(self.looking, lambda unit, events: {"position": events[-1].position}),
            table=RouteTable(routes, OWN_PATHS),
            reading=msgspec.structs.replace(handrail.call, ledger=self.looking),
            look=self.looking.look,
            writing=handrail.call,
            facts=PageFacts(version="1", project="/p/x", project_name="x", store="sqlite"),
            now_ms=lambda: 1_000,
            files=StaticFiles(static),
        )
        guard = guard_of(settings, "T", PORT)
        address = HttpAddress("127.0.0.1", PORT, "/mcp")
        self.app = PageApp(page, build_endpoint(place, settings, address, guard, ledger=handrail.ledger), "/mcp")
        opened = self.sign_in.by_code(self.sign_in.new_code(START_CODE_S))
        assert isinstance(opened, tuple)
        self.cookie = f"handrail_{PORT}={opened.cookie}"
        self.proof = opened.proof

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S):
                await scene()

        try:
            asyncio.run(main())
        finally:
            self.app.close()

    def ask(self, method: str, target: str, body: Any = None, **headers: str | None) -> Said:
        """One request of Ann's browser, to its answer."""
        said: list[Said] = []

        async def scene() -> None:
            said.append(await self.asked(method, target, body, **headers))

        self.play(scene)
        return said[0]

    async def asked(self, method: str, target: str, body: Any = None, **headers: str | None) -> Said:
        given: dict[str, str | None] = {"host": HOST, "cookie": self.cookie}
        if method == "POST":
            given |= {"origin": f"http://{HOST}", "content-type": "application/json", PROOF: self.proof}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value is not None],
        }
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else b""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Said(sent[0]["status"], found, b"".join(part.get("body", b"") for part in sent[1:]))


def echo(_: Call, asked: PageRequest) -> Any:
    return {"path": dict(asked.path), "query": dict(asked.query), "body": asked.body, "who": asked.visitor.name}


def test_a_cookie_alone_reads_and_changes_nothing(tmp_path: Path) -> None:
    """As every other port of this machine gets it from a browser that is signed in here."""
    for proof in (None, "", "another"):
        site = Site(tmp_path / str(proof or proof is None), read("/api/look", echo), write("/api/x", echo))
        said = site.ask("POST", "/api/x", {}, x_handrail_proof=proof)
        assert (said.status, said.code) == (403, "PROOF_MISSING")


# -- routes ------------------------------------------------------------------------------------------------------------


def test_a_handler_gets_the_parts_of_the_address_the_query_and_who_asks(tmp_path: Path) -> None:
    site = Site(tmp_path, read("/api/w/{workflow}/t/{task}", echo))
    said = site.ask("GET", "/api/w/wf 1/t/task_2?a=1&b=&c=%C3%A9")
    assert said.status == 200
    assert said.headers["content-type"] == "application/json"
    assert said.headers["cache-control"] == "no-store"
    assert said.json == {
        "path": {"workflow": "wf 1", "task": "task_2"},
        "query": {"a": "1", "b": "", "c": "é"},
        "body": None,
        "who": "ann",
    }


def test_what_is_written_out_goes_before_what_is_named() -> None:
    table = RouteTable([read("/api/a/{x}", echo), read("/api/a/b", echo), write("/api/a/{x}", echo)])
    found = table.find("GET", "/api/a/b")
    assert found is not None
    assert found[0].pattern == "/api/a/b"
    assert table.find("GET", "/api/a/c") is not None
    for path in ("/api/a", "/api/a/", "/api/a/b/", "/api/a/b/c", "/API/a/b"):
        assert table.find("GET", path) is None, path
    assert table.methods("/api/a/c") == ["GET", "POST"]


def test_looking_makes_no_store_and_a_change_does_in_the_visitors_name(tmp_path: Path) -> None:
    def names(call: Call, _: PageRequest) -> Any:
        return [token.name for token in listed(call.work)]

    def make(call: Call, asked: PageRequest) -> Any:
        return issue(call.work, asked.body["name"], ("read",), "s").token.id

    site = Site(tmp_path, read("/api/names", names), write("/api/names", make))
    database = site.world.project / ".handrail" / "handrail.db"

    async def scene() -> None:
        assert (await site.asked("GET", "/api/names")).json == []
        assert not database.exists()
        assert (await site.asked("POST", "/api/names", {"name": "Bea"})).status == 200
        assert database.exists()
        assert (await site.asked("GET", "/api/names")).json == ["Bea"]

    site.play(scene)
    events = site.looking.open().feed()
    assert [(event.kind, event.actor, event.channel) for event in events] == [("token.created", "ann", "page")]


def test_a_handler_without_a_unit_opens_its_own(tmp_path: Path) -> None:
    def look(call: Call, _: PageRequest) -> Any:
        return call.unit is None

    assert Site(tmp_path, read("/api/look", look, stored=False)).ask("GET", "/api/look").json is True


def test_head_is_get_without_the_body(tmp_path: Path) -> None:
    site = Site(tmp_path, read("/api/look", echo))

    async def scene() -> None:
        whole, head = await site.asked("GET", "/api/look"), await site.asked("HEAD", "/api/look")
        assert head.body == b""
        assert head.headers == whole.headers
        assert head.headers["content-length"] == str(len(whole.body))
        assert (await site.asked("HEAD", "/api/feed")).status == 405

    site.play(scene)


# -- saying no ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (TaskNotFound("x"), 404),
        (IllegalTransition("x"), 409),
        (WorkflowClosed("x"), 409),
        (NotAllowed("x"), 403),
        (InvalidParams("x"), 400),
        (StoreBusy("x"), 503),
        (NothingToUndo("x"), 422),
    ],
)
def test_a_refusal_is_told_with_its_code_and_hint(refusal: Refusal, status: int) -> None:
    refusal.hint = "do that instead"
    answer = refused(refusal)
    error = msgspec.json.decode(answer.body)["error"]
    assert answer.status == status
    assert (error["code"], error["message"], error["hint"]) == (refusal.code, "x", "do that instead")


@pytest.mark.parametrize("stored", [True, False])
def test_a_mistake_of_ours_is_told_to_the_terminal_and_not_to_the_visitor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stored: bool
) -> None:
    def stumble(_: Call, __: PageRequest) -> Any:
        raise ValueError("secret details")

    said = Site(tmp_path, read("/api/x", stumble, stored=stored)).ask("GET", "/api/x")
    assert (said.status, said.code) == (500, "INTERNAL_ERROR")
    assert b"secret" not in said.body
    assert "secret details" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "target", "status", "code"),
    [
        ("GET", "/api/looc", 404, "NOT_FOUND"),
        ("GET", "/api/", 404, "NOT_FOUND"),
        ("GET", "/nothing", 404, "NOT_FOUND"),
        ("POST", "/", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/api/look", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/api/look", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/api/look\0", 400, "INVALID_PARAMS"),
        ("GET", "/api/look?a=%00", 400, "INVALID_PARAMS"),
        ("GET", "/api/look?" + "&".join(f"a{n}=" for n in range(100)), 400, "INVALID_PARAMS"),
    ],
)
def test_what_nobody_serves_is_refused(tmp_path: Path, method: str, target: str, status: int, code: str) -> None:
    said = Site(tmp_path, read("/api/look", echo)).ask(method, target, {} if method == "POST" else None)
    assert (said.status, said.code) == (status, code)
    assert "content-security-policy" in said.headers


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"{}", 200),
        (b"[]", 400),
        (b"null", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"a":"\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a":"' + b"x" * module.BODY_BYTES + b'"}', 413),
    ],
    ids=lambda value: str(value)[:20],
)
def test_only_an_object_is_taken(tmp_path: Path, body: bytes, status: int) -> None:
    assert Site(tmp_path, write("/api/x", echo)).ask("POST", "/api/x", body).status == status


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_S", 0.01)
    site = Site(tmp_path, write("/api/x", echo))
    sent: list[MutableMapping[str, Any]] = []

    async def scene() -> None:
        headers = {"host": HOST, "cookie": site.cookie, "origin": f"http://{HOST}", "content-type": "application/json"}
        proven = {**headers, PROOF: site.proof}
        raw = [(name.encode(), value.encode()) for name, value in proven.items()]
        scope = {"type": "http", "method": "POST", "path": "/api/x", "headers": raw}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await site.app(scope, asyncio.Event().wait, send)  # type: ignore[arg-type]

    site.play(scene)
    assert sent[0]["status"] == 408


def test_more_than_can_be_worked_at_is_sent_away_and_a_stuck_handler_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Call, __: PageRequest) -> Any:
        begun.set()
        return go_on.wait(DEADLINE_S)

    site = Site(tmp_path, read("/api/wait", wait, stored=False))

    async def scene() -> None:
        first = asyncio.create_task(site.asked("GET", "/api/wait"))
        await asyncio.to_thread(begun.wait, DEADLINE_S)
        assert site.app.is_stuck()
        assert (await site.asked("GET", "/api/wait")).status == 503
        signing_in = await site.asked("POST", "/api/session", {"token": "any"}, cookie=None)
        assert (signing_in.status, signing_in.code) == (503, "BUSY")
        go_on.set()
        assert (await first).json is True
        assert not site.app.is_stuck()

    site.play(scene)


# -- who asks ----------------------------------------------------------------------------------------------------------


def test_a_bearer_reads_under_its_own_name_and_never_decides(tmp_path: Path) -> None:
    def who(_: Call, asked: PageRequest) -> Any:
        return [asked.visitor.name, asked.visitor.decides]

    site = Site(tmp_path, read("/api/who", who), write("/api/who", who))
    ledger, actor = site.world.handrail().ledger, Actor("ann", "test")
    reader = ledger.run(actor, lambda unit: issue(unit, "Cy", ("read",), "s").text)
    decider = ledger.run(actor, lambda unit: issue(unit, "Bea", ("decide",), "s").text)

    async def scene() -> None:
        assert (await site.asked("GET", "/api/who")).json == ["ann", True]
        assert (await site.asked("GET", "/api/who", cookie=None)).code == "SIGN_IN"
        assert (await site.asked("GET", "/api/who", cookie=None, authorization="Bearer T")).json == ["agent", False]
        assert (await site.asked("GET", "/api/who", authorization=f"Bearer {reader}")).json == ["Cy", False]
        assert (await site.asked("GET", "/api/who", authorization="Bearer no")).status == 401
        assert (await site.asked("GET", "/api/who", authorization=f"Bearer {decider}")).status == 403
        for token in ("T", reader, decider):
            said = await site.asked("POST", "/api/who", {}, authorization=f"Bearer {token}")
            assert (said.status, said.code) == (403, "NOT_ALLOWED")

    site.play(scene)


def test_the_session_says_where_one_is(tmp_path: Path) -> None:
    said = Site(tmp_path).ask("GET", "/api/session")
    assert said.json == {
        "name": "ann",
        "decides": True,
        "version": "1",
        "approvals": "agent",
        "project": "/p/x",
        "project_name": "x",
        "store": "sqlite",
    }


def test_a_link_that_was_used_leads_who_is_signed_in_on_and_shows_others_the_form(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def scene() -> None:
        code = site.sign_in.new_code(60)
        assert (await site.asked("HEAD", f"/?token={code}", cookie=None)).status == 200
        first = await site.asked(
            "GET", f"/?token={code}&theme=dark", cookie=None
        )  # looking at its head used nothing up
        assert first.status == 303
        assert first.headers["location"].startswith("/?theme=dark#proof=")
        again = await site.asked("GET", f"/?token={code}")
        assert (again.status, again.headers["location"]) == (303, "/")
        assert "set-cookie" not in again.headers
        other = await site.asked("GET", f"/?token={code}", cookie=None)
        assert (other.status, other.body) == (403, b"<!doctype html>")
        assert other.headers["cache-control"] == "no-store"

    site.play(scene)


def test_a_header_that_decides_twice_is_refused(tmp_path: Path) -> None:
    assert Site(tmp_path).ask("GET", "/api/session", Cookie="x=1").status == 400


# -- answers -----------------------------------------------------------------------------------------------------------


def test_only_a_large_answer_is_packed_and_only_for_who_takes_that() -> None:
    small, large = "x" * 100, "x" * GZIP_BYTES
    packed = answer_of(large, "br, gzip;q=0.5")
    assert (b"content-encoding", b"gzip") in packed.headers
    assert gzip.decompress(packed.body) == answer_of(large).body
    for result, accepts in ((small, "gzip"), (large, ""), (large, "br"), (large, "gzip;q=0")):
        assert (b"content-encoding", b"gzip") not in answer_of(result, accepts).headers
    assert takes_gzip("GZIP")


def test_a_download_is_kept_and_never_shown_as_a_page() -> None:
    answer = answer_of(Download(name='a"\r\nb/ü.html', kind="text/html; charset=utf-8", data=b"<p>"))
    headers = dict(answer.headers)
    assert headers[b"content-disposition"] == b'attachment; filename="a---b--.html"'
    assert answer.body == b"<p>"
