"""The page as an ASGI application around the MCP endpoint: `/mcp` goes there untouched, the rest is answered here.

The event loop moves bytes and reads memory; anything that uses the store, git or a file runs on a few worker threads.
`request_guard.py` decides which requests are let in, `sign_in.py` who sent them, `routes.py` what they may ask for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec

from handrail.kernel.errors import InvalidParams, Refusal
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.protocol.http.connections import welcome
from handrail.protocol.http.endpoint import HttpEndpoint, Receive, Scope, Send
from handrail.protocol.http.guard import Rejection
from handrail.protocol.http.reply import TOO_LARGE, Reply
from handrail.surfaces.web.feed import GUEST_STREAMS, STREAMS, FeedListener, PageFeed, pump
from handrail.surfaces.web.request_guard import SAFE, Door, cookie_of, taken_apart
from handrail.surfaces.web.responses import Headers, PageResponse, answer_of, broken, failed, refused
from handrail.surfaces.web.route import PageRequest, PageRoute, Visitor
from handrail.surfaces.web.routes import RouteTable
from handrail.surfaces.web.sign_in import LINK_CODE_S, SESSION_S, PageSession, SignIn, SignInFailed
from handrail.surfaces.web.static_files import SAFEGUARDS, StaticFiles, is_unchanged

ResultT = TypeVar("ResultT")

BODY_BYTES = 1024 * 1024
BODY_S = 30.0
QUERY_FIELDS = 64
WORKERS, GUEST_WORKERS = 8, 2
"""Threads for people who are signed in, and for tokens: agents that poll all day must not keep a person waiting."""
AT_ONCE, GUESTS_AT_ONCE = 64, 16
"""Requests of each kind that may be running or waiting for a worker; more are turned away."""
SESSION, SESSION_END, LINKS, FEED = "/api/session", "/api/session/end", "/api/links", "/api/feed"
OWN_PATHS = (SESSION, SESSION_END, LINKS, FEED)
PROOF = "x-handrail-proof"
"""The header that proves, on every change, that the sender is the page that was signed in."""
AGENT = "agent"
"""The name for visitors with the server's own token, which any agent here may have."""


class PageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the server, the same for every visitor."""

    version: str
    project: str
    project_name: str
    store: str


class Guest(NamedTuple):
    """Who is asking, and the session they are signed in with; None for a bearer token."""

    visitor: Visitor
    session: PageSession | None


class HttpRequest(NamedTuple):
    """One request before its body is read."""

    method: str
    """HEAD is treated as GET; only the body is not sent."""
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    reply: Reply
    scope: Scope
    """What the server says of the request and its connection."""


class PageParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one page."""

    door: Door
    sign_in: SignIn
    feed: PageFeed
    table: RouteTable
    reading: Call
    """What read-only handlers get: reading does not create a store."""
    look: Callable[[Actor, Callable[[Any], Any]], Any]
    """Runs a handler's read of the store without keeping writers waiting."""
    writing: Call
    facts: PageFacts
    now_ms: Callable[[], int]
    files: StaticFiles


class _Workers:
    """A few threads, and how much work they have."""

    def __init__(self, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="handrail-page")
        self._most = most
        self._counting = threading.Lock()
        self.running = 0
        """Running, or waiting for a thread."""

    @property
    def is_crowded(self) -> bool:
        return self.running >= self._most

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Runs `work`, which may take long, and returns its result. Raises what it raises."""

        def counted() -> ResultT:
            try:
                return work()
            finally:
                self._count(-1)

        self._count(1)
        try:
            doing = self._pool.submit(counted)
        except RuntimeError:  # the process is stopping
            self._count(-1)
            raise
        return await asyncio.wrap_future(doing)

    def _count(self, step: int) -> None:
        with self._counting:
            self.running += step

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class PageApp:
    """One page and the tools beside it."""

    def __init__(self, page: PageParts, endpoint: HttpEndpoint, mcp_path: str) -> None:
        self._page = page
        self._door, self._feed, self._table = page.door, page.feed, page.table
        self.sign_in = page.sign_in
        self._endpoint = endpoint
        self._mcp_path = mcp_path
        self._cookie = f"handrail_{page.door.port}"  # cookies are shared between ports, so the name includes the port
        self._workers = _Workers(WORKERS, AT_ONCE)
        self._guest_workers = _Workers(GUEST_WORKERS, GUESTS_AT_ONCE)

    # -- the process ------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == self._mcp_path or path.startswith(f"{self._mcp_path}/"):
            await self._endpoint(scope, receive, send)
            return
        reply = Reply(receive, send)
        answer = await self._answer(scope, reply)
        if answer is not None:
            length = (b"content-length", str(len(answer.body)).encode())
            body = b"" if scope["method"] == "HEAD" else answer.body
            await reply.whole(answer.status, (*answer.headers, *SAFEGUARDS, length), body)

    def drain(self) -> None:
        self._feed.drain()
        self._endpoint.drain()

    def is_stuck(self) -> bool:
        return self._workers.running > 0 or self._guest_workers.running > 0 or self._endpoint.is_stuck()

    def close(self) -> None:
        self._feed.close()
        self._workers.close()
        self._guest_workers.close()
        self._endpoint.close()

    # -- what is asked ----------------------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, reply: Reply) -> PageResponse | None:
        """The answer; None if it was a stream, which has already been sent."""
        headers, repeated = taken_apart(scope["headers"])
        if repeated is not None:
            return failed(400, "REPEATED_HEADER", f"the header {repeated} must not come twice")
        away = self._door.check(scope["method"], headers)
        if away is not None:
            return failed(away.status, away.code, away.message, away.hint, extra=away.headers)
        query = _query_of(scope)
        if query is None or "\0" in scope["path"]:
            return failed(400, "INVALID_PARAMS", "the address cannot be read", "use text only in the address")
        method = "GET" if scope["method"] in SAFE else scope["method"]
        request = HttpRequest(method, scope["path"], query, headers, reply, scope)
        if not request.path.startswith("/api/"):
            return self._file(request, is_head=scope["method"] == "HEAD")
        if request.path == FEED and scope["method"] == "HEAD":
            return failed(405, "METHOD_NOT_ALLOWED", "a feed is read with GET", extra=((b"allow", b"GET"),))
        try:
            return await self._answer_api(request)
        except Refusal as refusal:
            return refused(refusal)
        except Exception as bug:  # noqa: BLE001 - nobody is left without an answer
            return broken(request.path, bug)

    def _file(self, request: HttpRequest, *, is_head: bool) -> PageResponse:
        """The page itself, for everybody: it contains nothing that is not in the package."""
        if request.method != "GET":
            return failed(405, "METHOD_NOT_ALLOWED", "files are read with GET", extra=((b"allow", b"GET, HEAD"),))
        if request.path == "/" and "token" in request.query and not is_head:
            return self._by_link(request)
        file = self._page.files.find(request.path)
        if file is None:
            return failed(404, "NOT_FOUND", "there is no such page", "the page is at /, its data at /api/…")
        headers: Headers = ((b"etag", file.etag.encode()), (b"cache-control", b"no-cache"))
        if is_unchanged(file, request.headers.get("if-none-match", "")):
            return PageResponse(status=304, headers=headers)
        return PageResponse(headers=((b"content-type", file.kind.encode()), *headers), body=file.data)

    def _by_link(self, request: HttpRequest) -> PageResponse:
        """Exchanges a link's code for a cookie, and redirects to the address without it."""
        rest = {name: value for name, value in request.query.items() if name != "token"}
        clean = f"/?{urlencode(rest)}" if rest else "/"
        no_store = (b"cache-control", b"no-store")
        opened = self.sign_in.by_code(request.query["token"])
        if not isinstance(opened, SignInFailed):
            proven = f"{clean}#proof={opened.proof}"  # a fragment is sent to no server; our script reads it
            return PageResponse(
                status=303, headers=((b"location", proven.encode()), self._cookie_for(opened.cookie), no_store)
            )
        if self._session(request) is not None:  # the link was used in this browser before: already signed in
            return PageResponse(status=303, headers=((b"location", clean.encode()), no_store))
        page = self._page.files.find("/")
        if page is None:
            return failed(opened.status, opened.code, opened.message, opened.hint)
        # The page does the rest: it notices that nobody is signed in, and has a form for another code.
        return PageResponse(
            status=opened.status, headers=((b"content-type", page.kind.encode()), no_store), body=page.data
        )

    async def _answer_api(self, request: HttpRequest) -> PageResponse | None:
        """Answers a request to /api."""
        if request.path == SESSION and request.method == "POST":
            return await self._sign_in(request)
        guest = await self._guest(request)
        if isinstance(guest, PageResponse):
            return guest
        welcome(request.scope)
        if request.method == "POST" and guest.session is None:
            return failed(
                403,
                "NOT_ALLOWED",
                "a bearer token reads; what changes something is done by a person who is signed in",
                "open the page, sign in, and do it there",
            )
        if request.method == "POST" and not self._proves(request, guest):
            return failed(
                403,
                "PROOF_MISSING",
                "this browser is signed in, but the page that asks is not the one that was",
                "sign in again, in the page itself",
            )
        match request.method, request.path:
            case "GET", "/api/session":
                return answer_of(self._session_document(guest.visitor))
            case "POST", "/api/session/end":
                return await self._sign_out(request, guest)
            case "POST", "/api/links":
                return await self._make_link(request, guest)
            case "GET", "/api/feed":
                return await self._stream_news(request, guest)
        return await self._run_route(request, guest)

    async def _run_route(self, request: HttpRequest, guest: Guest) -> PageResponse:
        found = self._table.find(request.method, request.path)
        if found is None:
            allowed = self._table.methods(request.path)
            if allowed:
                extra = ((b"allow", ", ".join(allowed).encode()),)
                return failed(405, "METHOD_NOT_ALLOWED", f"this takes {', '.join(allowed)}", extra=extra)
            return failed(404, "NOT_FOUND", self._table.hint(request.path), "the page itself is at /")
        workers = self._workers if guest.session is not None else self._guest_workers
        if workers.is_crowded:
            return _busy()
        body = await _body_of(request) if request.method == "POST" else None
        if isinstance(body, PageResponse):
            return body
        route, named = found
        asked = PageRequest(visitor=guest.visitor, path=named, query=request.query, body=body)
        accepts = request.headers.get("accept-encoding", "")
        return await workers.run(lambda: self._handle(route, asked, accepts))

    def _handle(self, route: PageRoute, asked: PageRequest, accepts: str) -> PageResponse:
        """Runs a handler. On a worker thread."""
        writes = route.method != "GET"
        call = self._page.writing if writes else self._page.reading
        try:
            if not route.stored:
                return answer_of(route.handler(call, asked), accepts)

            actor = asked.visitor.actor

            def work(unit: Any) -> Any:
                return route.handler(msgspec.structs.replace(call, unit=unit), asked)

            found = call.ledger.run(actor, work, writing=True) if writes else self._page.look(actor, work)
            return answer_of(found, accepts)
        except Refusal as refusal:
            return refused(refusal)
        except Exception as bug:  # noqa: BLE001 - nobody is left without an answer
            return broken(route.pattern, bug)

    # -- who asks ---------------------------------------------------------------------------------------------------

    async def _guest(self, request: HttpRequest) -> Guest | PageResponse:
        """Who asks, or the answer that refuses them. A request with a bearer token is never a person's."""
        if "authorization" in request.headers:
            admitted = await self._endpoint.admit(request.headers)
            if isinstance(admitted, Rejection):
                code = "SIGN_IN" if admitted.status == 401 else "NOT_ALLOWED"
                return failed(admitted.status, code, admitted.reason, extra=admitted.headers)
            name = admitted.name if admitted is not None else AGENT
            return Guest(Visitor(name=name, decides=False), None)
        session = self._session(request)
        if session is None or not await self._is_welcome(session):
            return failed(
                401,
                "SIGN_IN",
                "nobody is signed in here",
                "open the link that `handrail up` shows on its terminal, or sign in with a token of: "
                "handrail token create NAME --rights decide",
            )
        return Guest(Visitor(name=session.person.name, decides=True), session)

    def _proves(self, request: HttpRequest, guest: Guest) -> bool:
        return guest.session is not None and self.sign_in.proves(guest.session, request.headers.get(PROOF, ""))

    def _session(self, request: HttpRequest) -> PageSession | None:
        return self.sign_in.session(cookie_of(request.headers, self._cookie))

    async def _is_welcome(self, session: PageSession) -> bool:
        if not self.sign_in.is_open(session):
            return False
        if self.sign_in.is_believed(session):
            return True
        return await self._workers.run(lambda: self.sign_in.look_again(session))

    def _session_document(self, visitor: Visitor) -> dict[str, Any]:
        facts: dict[str, Any] = msgspec.to_builtins(self._page.facts)
        approvals = "human" if self._page.reading.humans_decide else "agent"  # it may have changed since the start
        return {"name": visitor.name, "decides": visitor.decides, "approvals": approvals, **facts}

    async def _sign_in(self, request: HttpRequest) -> PageResponse:
        if "authorization" in request.headers:
            return failed(403, "NOT_ALLOWED", "an agent's token does not sign in", "leave out Authorization")
        body = await _body_of(request)
        if isinstance(body, PageResponse):
            return body
        text = body.get("token")
        if not isinstance(text, str) or not text.strip():
            raise InvalidParams("token is missing", hint='send {"token": "…"}: a code from the terminal, or a token')
        if self._workers.is_crowded:  # anybody may ask this, and a lookup in the store takes a thread
            return _busy()
        opened = await self._workers.run(lambda: self.sign_in.by_text(text.strip()))
        if isinstance(opened, SignInFailed):
            return failed(opened.status, opened.code, opened.message, opened.hint)
        visitor = Visitor(name=opened.session.person.name, decides=True)
        document = {**self._session_document(visitor), "proof": opened.proof}
        return answer_of(document, extra=(self._cookie_for(opened.cookie),))

    async def _sign_out(self, request: HttpRequest, guest: Guest) -> PageResponse:
        body = await _body_of(request)
        if isinstance(body, PageResponse):
            return body
        assert guest.session is not None
        self.sign_in.end(guest.session)
        return answer_of({"signed_out": True}, extra=(self._cookie_for("", lasting_s=0),))

    async def _make_link(self, request: HttpRequest, guest: Guest) -> PageResponse:
        body = await _body_of(request)
        if isinstance(body, PageResponse):
            return body
        assert guest.session is not None
        code = self.sign_in.new_code(LINK_CODE_S, guest.session.person)
        expires_at = self._page.now_ms() + int(LINK_CODE_S * 1000)
        return answer_of({"url": f"{request.headers['origin']}/?token={code}", "expires_at": expires_at})

    def _cookie_for(self, value: str, lasting_s: float = SESSION_S) -> tuple[bytes, bytes]:
        text = f"{self._cookie}={value}; Path=/; Max-Age={int(lasting_s)}; HttpOnly; SameSite=Lax"
        return b"set-cookie", text.encode()

    # -- the feed ---------------------------------------------------------------------------------------------------

    async def _stream_news(self, request: HttpRequest, guest: Guest) -> PageResponse | None:
        listener = FeedListener(asyncio.get_running_loop())
        after = _position_of(request)
        most = STREAMS if guest.session is not None else GUEST_STREAMS
        if not await self._workers.run(lambda: self._feed.join(listener, after, most)):
            why = "the server is leaving" if self._feed.draining else f"{most} pages are open already"
            return failed(503, "BUSY", why, "close a page that nobody looks at", extra=((b"retry-after", b"5"),))
        await pump(self._feed, listener, request.reply, SAFEGUARDS, self._welcome_of(request, guest))
        return None

    def _welcome_of(self, request: HttpRequest, guest: Guest) -> Callable[[], Awaitable[bool]]:
        """Whether a stream's visitor may continue reading. If the store cannot be asked, they may not."""

        async def is_welcome() -> bool:
            if guest.session is None:
                return not isinstance(await self._endpoint.admit(request.headers), Rejection)
            try:
                return await self._is_welcome(guest.session)
            except Refusal:
                return False

        return is_welcome


def _busy() -> PageResponse:
    return failed(503, "BUSY", "too much is being asked at once", "try again soon")


def _query_of(scope: Scope) -> dict[str, str] | None:
    """The query parameters; None if they cannot be read."""
    try:
        pairs = parse_qsl(
            scope.get("query_string", b"").decode("latin-1"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=QUERY_FIELDS,
        )
    except ValueError:
        return None
    return None if any("\0" in part for pair in pairs for part in pair) else dict(pairs)


def _position_of(request: HttpRequest) -> int | None:
    """The position after which a stream continues: the browser's last event id, otherwise the one in the address."""
    text = request.headers.get("last-event-id") or request.query.get("after") or ""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidParams("after is not a position", hint="a position is a number, such as /api/home tells")
    return int(text)


async def _body_of(request: HttpRequest) -> dict[str, Any] | PageResponse:
    """The posted body, or the answer that refuses it."""
    body = await request.reply.body(BODY_BYTES, BODY_S)
    if isinstance(body, int):
        close: Headers = ((b"connection", b"close"),)
        if body == TOO_LARGE:
            return failed(body, "TOO_LARGE", f"the body is larger than {BODY_BYTES} bytes", extra=close)
        return failed(body, "TOO_SLOW", f"the body did not come whole within {BODY_S:g} s", extra=close)
    try:
        decoded = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        decoded = None
    if not isinstance(decoded, dict):
        raise InvalidParams("the body is not a JSON object", hint="send {} where there is nothing to say")
    return decoded
