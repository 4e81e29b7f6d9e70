"""Headers of 2026-07-28 held against the body."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.http.headers import HEADER_MISMATCH, check_headers, decoded
from handrail.protocol.revisions import META_VERSION
from handrail.protocol.wire import INVALID_PARAMS, Request, RpcError, parse
from tests.protocol.toy import STATELESS_META

VERSION = "2026-07-28"
TOOL = {
    "name": "search",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
            "deep": {"type": "boolean", "x-mcp-header": "Deep"},
            "inner": {"type": "object", "properties": {"tag": {"type": "string", "x-mcp-header": "Tag"}}},
            "plain": {"type": "string"},
        },
    },
}


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def call(method: str = "tools/call", **params: Any) -> Request:
    return Request(1, method, {**params, "_meta": STATELESS_META})


def plain_headers(request: Request, **more: str | None) -> dict[str, str]:
    headers: dict[str, str | None] = {"mcp-protocol-version": VERSION, "mcp-method": request.method}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    return {name: value for name, value in headers.items() if value is not None}


def refused(headers: dict[str, str], request: Request, tool: Any = None, repeated: str | None = None) -> bool:
    try:
        check_headers(headers, repeated, request, tool)
    except RpcError as error:
        return error.code == HEADER_MISMATCH and error.data is not None
    return False


NAMED = [
    ("tools/call", "name", "search"),
    ("prompts/get", "name", "greet"),
    ("resources/read", "uri", "toy://a"),
    ("tasks/get", "taskId", "t1"),
    ("tasks/update", "taskId", "t1"),
    ("tasks/cancel", "taskId", "t1"),
]


@pytest.mark.parametrize(("method", "key", "value"), NAMED)
def test_headers_that_repeat_the_body_pass(method: str, key: str, value: str) -> None:
    request = call(method, **{key: value})
    assert not refused(plain_headers(request, mcp_name=value), request)


@pytest.mark.parametrize(("method", "key", "value"), NAMED)
@pytest.mark.parametrize("name", [None, "", "other", "SEARCH", " ", "=?base64??="])
def test_the_name_must_be_the_bodys(method: str, key: str, value: str, name: str | None) -> None:
    request = call(method, **{key: value})
    assert refused(plain_headers(request, mcp_name=name), request)


def test_a_method_that_names_nothing_needs_no_name() -> None:
    request = call("tools/list")
    assert not refused(plain_headers(request), request)


@pytest.mark.parametrize("method", [None, "", "tools/list", "TOOLS/CALL", "tools/call2"])
def test_the_method_must_be_the_bodys(method: str | None) -> None:
    request = call(name="search")
    assert refused(plain_headers(request, mcp_method=method, mcp_name="search"), request)


@pytest.mark.parametrize("version", [None, "", "2025-11-25", "2026-07-28 ", "2026-07-29"])
def test_the_version_must_be_the_bodys(version: str | None) -> None:
    request = call("tools/list")
    assert refused(plain_headers(request, mcp_protocol_version=version), request)


@pytest.mark.parametrize("meta", [None, [], "x", {}, {"io.modelcontextprotocol/protocolVersion": 5}])
def test_a_header_version_needs_the_same_one_in_the_body(meta: Any) -> None:
    request = Request(1, "tools/list", {"_meta": meta})
    with pytest.raises(RpcError) as wrong:
        check_headers(plain_headers(request), None, request, None)
    missing = not isinstance(meta, dict) or not meta
    assert wrong.value.code == (INVALID_PARAMS if missing else HEADER_MISMATCH)


def test_a_repeated_header_is_refused_whatever_it_says() -> None:
    request = call("tools/list")
    assert refused(plain_headers(request), request, repeated="mcp-method")


def test_a_name_may_come_in_its_base64_form() -> None:
    request = call("resources/read", uri="toy://ä b")
    assert not refused(plain_headers(request, mcp_name=encoded("toy://ä b")), request)
    assert refused(plain_headers(request, mcp_name=encoded("toy://other")), request)


@given(st.text())
def test_every_text_survives_its_base64_form(text: str) -> None:
    assert decoded(encoded(text)) == text


@pytest.mark.parametrize(
    "value",
    ["=?base64?!!?=", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?/w==?=", "=?base64? YQ==?=", "=?base64?Y?="],
)
def test_a_malformed_base64_form_says_nothing(value: str) -> None:
    assert decoded(value) is None


@pytest.mark.parametrize("value", ["plain", "=?base64?YQ==", "YQ==?=", "=?BASE64?YQ==?=", "=?base64"])
def test_what_only_looks_like_the_base64_form_is_plain(value: str) -> None:
    assert decoded(value) == value


ARGUMENTS = [
    ({"region": "eu"}, {"mcp-param-region": "eu"}),
    ({"region": "Köln"}, {"mcp-param-region": encoded("Köln")}),
    ({"region": ""}, {"mcp-param-region": ""}),
    ({"limit": 5}, {"mcp-param-limit": "5"}),
    ({"limit": -5}, {"mcp-param-limit": "-5"}),
    ({"limit": 2**53 - 1}, {"mcp-param-limit": str(2**53 - 1)}),
    ({"limit": 5.0}, {"mcp-param-limit": "5"}),
    ({"deep": True}, {"mcp-param-deep": "true"}),
    ({"deep": False}, {"mcp-param-deep": "false"}),
    ({"inner": {"tag": "x"}}, {"mcp-param-tag": "x"}),
    ({"region": None}, {}),
    ({"plain": "anything"}, {}),
    ({}, {}),
]


@pytest.mark.parametrize(("arguments", "headers"), ARGUMENTS)
def test_marked_arguments_that_agree_with_their_headers_pass(
    arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    request = call(name="search", arguments=arguments)
    assert not refused({**plain_headers(request, mcp_name="search"), **headers}, request, TOOL)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"mcp-param-region": "us"}),
        ({"region": "eu"}, {"mcp-param-region": "EU"}),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?!!?="}),
        ({"region": None}, {"mcp-param-region": "eu"}),
        ({}, {"mcp-param-region": "eu"}),
        ({"limit": 5}, {"mcp-param-limit": "6"}),
        ({"limit": 5}, {"mcp-param-limit": "five"}),
        ({"limit": 5}, {"mcp-param-limit": ""}),
        ({"limit": []}, {"mcp-param-limit": "5"}),
        ({"limit": "x"}, {"mcp-param-limit": "5"}),
        ({"deep": True}, {"mcp-param-deep": "True"}),
        ({"deep": True}, {"mcp-param-deep": "1"}),
        ({"deep": True}, {"mcp-param-deep": "false"}),
        ({"inner": {"tag": "x"}}, {"mcp-param-tag": "y"}),
        ({"inner": {"tag": "x"}}, {}),
        ({"inner": []}, {"mcp-param-tag": "y"}),
        ({"inner": "text"}, {"mcp-param-tag": "y"}),
    ],
)
def test_marked_arguments_that_disagree_with_their_headers_are_refused(
    arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    request = call(name="search", arguments=arguments)
    assert refused({**plain_headers(request, mcp_name="search"), **headers}, request, TOOL)


@pytest.mark.parametrize("arguments", [None, [], "text", 5])
def test_arguments_that_are_no_object_carry_nothing(arguments: Any) -> None:
    request = call(name="search", arguments=arguments)
    assert not refused(plain_headers(request, mcp_name="search"), request, TOOL)
    assert refused(plain_headers(request, mcp_name="search", mcp_param_region="eu"), request, TOOL)


def test_a_number_too_large_for_a_float_is_a_mismatch_and_no_crash() -> None:
    params = b'{"name":"search","arguments":{"limit":1%s},"_meta":{"%s":"%s"}}'
    params = params % (b"0" * 400, META_VERSION.encode(), VERSION.encode())
    request = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params, max_depth=128)
    assert isinstance(request, Request)
    assert refused(plain_headers(request, mcp_name="search", mcp_param_limit="5"), request, TOOL)


def test_large_integers_are_compared_in_full() -> None:
    request = call(name="search", arguments={"limit": 2**53 + 1})
    assert refused(plain_headers(request, mcp_name="search", mcp_param_limit=str(2**53)), request, TOOL)


def test_a_tool_without_a_schema_marks_nothing() -> None:
    request = call(name="search", arguments={"region": "eu"})
    assert not refused(plain_headers(request, mcp_name="search"), request, {"name": "search"})
