"""What an HTTP server refuses: strangers, wrong headers and bodies, slow senders, wrong addresses; and its views."""

from __future__ import annotations

import contextlib
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from tests.process.http_peer import (
    ACCEPT,
    DEADLINE_S,
    STATELESS,
    Gate,
    HttpProcess,
    Peer,
    gates,
    handrail_http,
    request_of,
    toy_http,
)

TOKEN = "correct-horse"
PING = request_of("ping")


@pytest.fixture(scope="module")
def handrail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with handrail_http(tmp_path_factory.mktemp("handrail"), "--dynamic", token=TOKEN) as process:
        yield process
        assert "Traceback" not in process.end()


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    """A toy server that waits for nobody."""
    with toy_http(tmp_path_factory.mktemp("hasty"), body_s=0.3, ping_s=0.1) as process:
        yield process
        assert "Traceback" not in process.end()


@pytest.fixture
def peer(handrail: HttpProcess) -> Iterator[Peer]:
    with Peer(handrail.url, TOKEN) as peer:
        yield peer


@pytest.fixture
def toy(hasty: HttpProcess) -> Iterator[Peer]:
    with Peer(hasty.url) as peer:
        yield peer


@pytest.fixture
def gate() -> Iterator[Gate]:
    yield from gates()


def raw_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and everything that came, to the end of the connection."""
    connection.settimeout(DEADLINE_S)
    data = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(data.split(b" ", 2)[1]), data


def head(method: str = "POST", path: str = "/mcp", *extra: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Accept: {ACCEPT}"]
    return ("\r\n".join([*lines, *extra]) + "\r\n\r\n").encode()


# -- who may speak ----------------------------------------------------------------------------------------------------


def test_the_right_token_and_host_are_served(peer: Peer) -> None:
    assert peer.session().ask("ping").status == 200
    assert peer.stateless("server/discover").status == 200


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT", "OPTIONS"])
def test_without_the_token_there_is_no_service(peer: Peer, method: str, authorization: str | None) -> None:
    body = request_of("initialize", protocolVersion="2025-11-25", capabilities={}) if method == "POST" else None
    with peer.open(method, body, Authorization=authorization) as response:
        assert (response.status, response.error()["message"]) == (401, "Unauthorized")
        assert "Authorization: Bearer" in response.error()["data"]["details"]
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize("path", ["/", "/mcp/readonly", "/mcp/x/guide", "/nothing"])
def test_no_path_is_open_to_strangers(peer: Peer, path: str) -> None:
    assert peer.at(path).status("POST", PING, Authorization=None) == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example", "", "0.0.0.0"])
def test_a_foreign_host_is_refused(peer: Peer, host: str) -> None:
    with peer.open("POST", PING, Host=host) as response:
        assert (response.status, response.error()["message"]) == (403, "Forbidden")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost.evil.example", "http://localhost:1"]
)
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_a_foreign_origin_is_refused(peer: Peer, method: str, origin: str) -> None:
    with peer.open(method, PING if method == "POST" else None, Origin=origin) as response:
        assert response.status == 403
        assert "access-control-allow-origin" not in response.headers


def test_the_servers_own_origin_is_served(peer: Peer) -> None:
    origin = f"http://{peer.host}:{peer.port}"
    assert (
        peer.status("POST", request_of("initialize", protocolVersion="2025-11-25", capabilities={}), Origin=origin)
        == 200
    )


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_a_header_that_decides_who_may_speak_must_not_come_twice(peer: Peer, name: str) -> None:
    own = f"127.0.0.1:{peer.port}"
    first, second = ("evil.example", own) if name == "Host" else ("http://evil.example", f"http://{own}")
    lines = ["POST /mcp HTTP/1.1", f"{name}: {first}", f"{name}: {second}", "Content-Type: application/json"]
    lines += [] if name == "Host" else [f"Host: {own}"]
    lines += [f"Accept: {ACCEPT}", f"Authorization: Bearer {TOKEN}", "Content-Length: 2", "Connection: close"]
    with peer.socket() as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n{}").encode())
        status, data = raw_answer(connection)
    assert status in (400, 403)
    assert b"jsonrpc must be" not in data  # the body was read, so somebody was let in


# -- what may be sent -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_a_body_that_is_not_json_is_refused(toy: Peer, content_type: str | None) -> None:
    with toy.open("POST", PING, **{"Content-Type": content_type}) as response:
        assert response.status == 415
        assert "Content-Type: application/json" in response.error()["data"]["details"]


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_taken_in_every_spelling(toy: Peer, content_type: str) -> None:
    assert toy.status("POST", PING, **{"Content-Type": content_type}) == 400  # read, and then a session is missing


@pytest.mark.parametrize("accept", [None, "", "application/json", "text/event-stream", "text/html"])
def test_a_client_that_cannot_read_every_answer_is_refused(toy: Peer, accept: str | None) -> None:
    with toy.open("POST", PING, Accept=accept) as response:
        assert response.status == 406
        assert f"Accept: {ACCEPT}" in response.error()["data"]["details"]


def test_a_client_that_reads_no_events_has_no_standing_channel(toy: Peer) -> None:
    session = toy.session()
    for accept in ("application/json", "text/html", ""):
        response = session.open("GET", Accept=accept)
        assert response.status == 406
        assert "Accept: text/event-stream" in response.error()["data"]["details"]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods_are_not_allowed(toy: Peer, method: str) -> None:
    with toy.open(method) as response:
        assert response.status == 405
        assert response.headers["allow"] == "GET, POST, DELETE"
        if method != "HEAD":  # which has no body
            assert response.error()["message"] == "Method Not Allowed"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_the_stateless_era_has_only_post(toy: Peer, method: str) -> None:
    with toy.open(method, **{"Mcp-Protocol-Version": STATELESS}) as response:
        assert response.status == 405
        assert response.headers["allow"] == "POST"
        assert "POST" in response.error()["data"]["details"]


@pytest.mark.parametrize("path", ["/", "/mc", "/mcp2", "/mcp/other", "/MCP", "/mcp?", "//mcp"])
def test_other_paths_are_not_found(toy: Peer, path: str) -> None:
    with toy.at(path).open("POST", PING) as response:
        if path == "/mcp?":
            assert response.status == 400
        else:
            assert (response.status, response.error()["message"]) == (404, "Not Found")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"null", -32600),
        (b"{}", -32600),
        (b"[" * 100 + b"]" * 100, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ],
)
def test_a_body_that_is_no_message_is_a_bad_request(toy: Peer, body: bytes, code: int) -> None:
    with toy.open("POST", body) as response:
        assert response.status == 400
        answer = response.json()
    assert (answer["id"], answer["error"]["code"]) == (None, code)


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_over_the_limit_is_refused(toy: Peer, chunked: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"a" * 65536 + b'"}}'
    if chunked:
        sent = head("POST", "/mcp", "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        sent = head("POST", "/mcp", f"Content-Length: {len(body)}") + body
    with toy.socket() as connection:
        connection.sendall(sent)
        status, data = raw_answer(connection)
        assert (status, b"larger than 65536 bytes" in data) == (413, True)


@pytest.mark.parametrize("sent", [b"", b"{"])
def test_a_body_that_does_not_come_is_not_waited_for(toy: Peer, sent: bytes) -> None:
    with toy.socket() as connection:
        connection.sendall(head("POST", "/mcp", "Content-Length: 100") + sent)
        status, data = raw_answer(connection)
        assert (status, b"within 0.3 s" in data) == (408, True)
    assert toy.stateless("tools/list").status == 200


def test_a_stranger_with_a_slow_body_is_refused_before_it_comes(peer: Peer) -> None:
    with peer.socket() as connection:
        opening = head("POST", "/mcp", "Content-Length: 100000000")
        connection.sendall(opening.replace(b"localhost", f"localhost:{peer.port}".encode()) + b"{")
        connection.settimeout(DEADLINE_S)
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")


HEADERS = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "search"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": None},
        {"Mcp-Name": "echo"},
        {"Mcp-Name": None},
        {"Mcp-Name": "=?base64?!?="},
        {"Mcp-Protocol-Version": "2025-11-25"},
        {"Mcp-Protocol-Version": None},
        {"Mcp-Protocol-Version": "2031-01-01"},
        {"Mcp-Param-Region": "us"},
        {"Mcp-Param-Region": None},
        {"Mcp-Param-Limit": "6"},
    ],
)
def test_headers_that_contradict_the_body_are_refused(toy: Peer, wrong: dict[str, str | None]) -> None:
    right: dict[str, str | None] = {"Mcp-Param-Region": "eu", "Mcp-Param-Limit": "5"}
    arguments = {"region": "eu", "limit": 5}
    call = {"name": "search", "arguments": arguments}
    assert toy.stateless("tools/call", headers=right, **call).status == 200  # type: ignore[arg-type]
    refused = toy.stateless("tools/call", "h", headers={**right, **wrong}, **call)  # type: ignore[arg-type]
    assert refused.status == 400
    answer = refused.json()
    assert (answer["id"], answer["error"]["code"]) == ("h", -32020)


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "mcp-param-region"])
def test_a_header_of_the_protocol_must_not_come_twice(toy: Peer, name: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    raw = msgspec.json.encode(request_of("tools/call", name="search", arguments={"region": "eu"}, _meta=meta))
    given = {**HEADERS, "mcp-param-region": "eu"}
    lines = [f"{known}: {value}" for known, value in given.items()]
    for extra, status in ((), 200), ((f"{name}: {given[name]}",), 400):
        with toy.socket() as connection:
            sent = head("POST", "/mcp", *lines, *extra, f"Content-Length: {len(raw)}", "Connection: close") + raw
            connection.sendall(sent)
            assert raw_answer(connection)[0] == status


def test_a_number_too_large_in_a_marked_argument_is_answered(toy: Peer) -> None:
    refused = toy.stateless(
        "tools/call", 4, headers={"Mcp-Param-Limit": "5"}, name="search", arguments={"limit": 10**400}
    )
    assert refused.status == 400
    assert refused.json()["id"] == 4


def test_a_call_that_takes_long_becomes_a_stream_that_says_it_is_still_there(toy: Peer, gate: Gate) -> None:
    response = toy.stateless("tools/call", "q", name="quiet", arguments={"gate": gate.port})
    assert response.is_events
    gate.open()
    assert response.message()["result"]["content"][0]["text"] == "through"


# -- views ------------------------------------------------------------------------------------------------------------

GUIDE = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]
INTROSPECTION = ["mcp_info", "mcp_capabilities"]
DYNAMIC = ["toolset_list", "toolset_enable"]


def tools_at(peer: Peer, path: str) -> list[str]:
    listed = peer.at(path).stateless("tools/list").json()
    return [tool["name"] for tool in listed["result"]["tools"]]


def test_a_path_chooses_the_tools(peer: Peer) -> None:
    whole = tools_at(peer, "/mcp")
    assert set(whole) >= {*GUIDE, *INTROSPECTION, *DYNAMIC}
    assert tools_at(peer, "/mcp/") == whole
    assert [name for name in tools_at(peer, "/mcp/x/guide") if name not in DYNAMIC] == GUIDE
    assert set(tools_at(peer, "/mcp/x/introspection,guide")) - set(DYNAMIC) == {*GUIDE, *INTROSPECTION}
    assert set(tools_at(peer, "/mcp/x/guide%2Cintrospection")) - set(DYNAMIC) == {*GUIDE, *INTROSPECTION}


@pytest.mark.parametrize("path", ["/mcp/readonly", "/mcp/readonly/x/guide,introspection"])
def test_the_readonly_paths_have_no_tool_that_changes_anything(peer: Peer, path: str) -> None:
    assert "toolset_enable" in tools_at(peer, "/mcp")
    view = peer.at(path)
    listed = view.session().ask("tools/list").json()["result"]["tools"]
    assert all(tool["annotations"]["readOnlyHint"] is True for tool in listed)
    assert {tool["name"] for tool in listed} >= {*GUIDE, *INTROSPECTION, "toolset_list"}
    for method in ("tools/call", "toolset_enable"):
        params: dict[str, Any] = {"name": "toolset_enable", "arguments": {}} if method == "tools/call" else {}
        message = view.session().ask(method, **params).json()["error"]["message"]
        assert f"{path} is read-only: call it at {path.replace('/readonly', '')}" in message


def test_a_server_knows_where_it_is_reached(peer: Peer) -> None:
    for path in ("/mcp", "/mcp/readonly", "/mcp/x/introspection"):
        info = peer.at(path).call("mcp_info")["structuredContent"]
        assert msgspec.json.encode(path) in msgspec.json.encode(info)
        assert str(peer.port) in msgspec.json.encode(info).decode()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/mcp/x",
        "/mcp/x/",
        "/mcp/x/nope",
        "/mcp/x/guide/more",
        "/mcp/nope",
        "/mcp/readonly/nope",
        "/mcp/x/guide,nope",
        "/mcpx",
        "/x/guide",
        "/readonly",
        "/mcp/x/%2e%2e",
        "/mcp/../mcp",
        "/mcpreadonly",
        "/mcpx/guide",
    ],
)
def test_paths_that_name_no_view_are_not_found(peer: Peer, path: str) -> None:
    with peer.at(path).open("POST", PING) as response:
        assert response.status == 404
        assert "/mcp" in response.error()["data"]["details"] or "toolset" in response.error()["data"]["details"]


def test_a_path_with_a_wrong_toolset_gets_the_nearest(peer: Peer) -> None:
    with peer.at("/mcp/x/guid").open("POST", PING) as response:
        assert response.status == 404
        assert "did you mean guide?" in response.error()["data"]["details"]


def test_a_handshake_on_a_view_stays_on_it(peer: Peer) -> None:
    session = peer.at("/mcp/x/guide").session()
    listed = session.ask("tools/list").json()["result"]["tools"]
    assert [tool["name"] for tool in listed if tool["name"] not in DYNAMIC] == GUIDE


# -- where it serves --------------------------------------------------------------------------------------------------


def refused_start(folder: Path, *options: str) -> str:
    """What `handrail serve` says when it does not start. It must not."""
    done = subprocess.run(
        [sys.executable, "-m", "handrail", "serve", *options],
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("options", [(), ("--token", "T"), ("--token", "T", "--set", "allow_hosts=localhost")])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_other_machines_are_not_served_without_a_host_name(tmp_path: Path, host: str, options: tuple[str, ...]) -> None:
    assert "other machines" in refused_start(tmp_path, "--http", f"{host}:0", *options)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_named(tmp_path: Path, address: str) -> None:
    assert "HOST:PORT" in refused_start(tmp_path, "--http", address)


def test_a_port_that_is_taken_is_told_with_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused_start(tmp_path, "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "cannot be used" in said
    assert "127.0.0.1:0" in said


def test_other_machines_are_served_once_the_host_has_a_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handrail", "serve", "--http", "0.0.0.0:0", "--token", "T"]
    options = ["--set", "allow_hosts=box.example"]
    with HttpProcess([*command, *options], cwd=tmp_path, env={"HOME": str(tmp_path)}) as process:
        with Peer(process.url.replace("0.0.0.0", "127.0.0.1"), "T") as peer:
            assert peer.status("POST", PING, Host="box.example") == 400
            assert peer.status("POST", PING, Host="other.example") == 403
            assert peer.status("POST", PING, Host="box.example", Authorization=None) == 401
        process.end()


def test_without_a_token_the_users_own_is_needed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "handrail", "serve", "--http", "127.0.0.1:0"]
    with HttpProcess(command, cwd=tmp_path, env={"HOME": str(tmp_path)}) as process:
        file = tmp_path / ".handrail" / "token"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with Peer(process.url, file.read_text().strip()) as peer:
            assert peer.status("POST", PING, Authorization=None) == 401
            assert peer.session().ask("ping").status == 200
        process.end()


@contextlib.contextmanager
def up(folder: Path, *options: str) -> Iterator[IO[bytes]]:
    """What `handrail up` prints, while it serves; it must end in good order."""
    command = [sys.executable, "-m", "handrail", "up", "--http", "127.0.0.1:0", *options]
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
            process.terminate()
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()  # or a failed test would wait for it for ever


def test_up_prints_an_address_and_a_token_that_work(tmp_path: Path) -> None:
    with up(tmp_path, "--json", "--profile", "workflowlookup") as printed:
        told = msgspec.json.decode(printed.readline())
        assert told["toolsets"] == ["guide"]
        with Peer(told["url"], told["token"]) as peer:
            assert peer.session().ask("ping").status == 200


def test_up_says_what_is_on(tmp_path: Path) -> None:
    with up(tmp_path, "--toolsets", "introspection,guide", "--enable-tx") as printed:
        told = b"".join(printed.readline() for _ in range(6)).decode()
    assert "On: introspection, guide, tx (11 tools). Others" in told


def test_a_selection_that_cannot_be_served_takes_no_port(tmp_path: Path) -> None:
    assert "did you mean guide?" in refused_start(tmp_path, "--http", "127.0.0.1:0", "--toolsets", "gide")
