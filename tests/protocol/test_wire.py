"""Lines to messages and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocol.wire import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    Batch,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    encode,
    oversized,
    parse,
    salvage_id,
)


def read(text: str | bytes) -> Message:
    return parse(text.encode() if isinstance(text, str) else text, max_depth=128)


def test_a_request_keeps_its_id_method_and_params() -> None:
    assert read('{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}') == Request("a", "m", {"x": 1})


def test_params_may_be_left_out() -> None:
    assert read('{"jsonrpc":"2.0","id":1,"method":"m"}') == Request(1, "m", {})
    assert read('{"jsonrpc":"2.0","method":"m"}') == Notification("m", {})


def test_an_answer_of_the_client_is_a_response() -> None:
    assert read('{"jsonrpc":"2.0","id":"s1","result":{"ok":true}}') == Response("s1", {"ok": True}, None)
    assert read('{"jsonrpc":"2.0","id":"s1","error":{"code":1}}') == Response("s1", None, {"code": 1})


@pytest.mark.parametrize(
    ("text", "code", "request_id"),
    [
        ("{", PARSE_ERROR, None),
        ('{"jsonrpc":"2.0","id":7,"method":', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', PARSE_ERROR, None),
        ("[1]]", PARSE_ERROR, None),
        ("42", INVALID_REQUEST, None),
        ('"text"', INVALID_REQUEST, None),
        ("{}", INVALID_REQUEST, None),
        ('{"jsonrpc":"1.0","id":7,"method":"m"}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":7,"method":5}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":null,"method":"m"}', INVALID_REQUEST, None),
        ('{"jsonrpc":"2.0","id":true,"method":"m"}', INVALID_REQUEST, None),
        ('{"jsonrpc":"2.0","id":1.5,"method":"m"}', INVALID_REQUEST, None),
        ('{"jsonrpc":"2.0","id":{},"method":"m"}', INVALID_REQUEST, None),
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":[1]}', INVALID_PARAMS, 7),
    ],
)
def test_what_is_no_message_is_answered(text: str | bytes, code: int, request_id: object) -> None:
    message = read(text)
    assert isinstance(message, Malformed)
    assert (message.error.code, message.id) == (code, request_id)
    assert message.error.data is not None
    assert message.error.data["details"]


@pytest.mark.parametrize("depth", [129, 1000, 200_000])
def test_a_message_that_is_too_deep_keeps_its_id(depth: int) -> None:
    text = '{"jsonrpc":"2.0","id":"deep","method":"m","params":{"x":' + "[" * depth + "]" * depth + "}}"
    message = read(text)
    assert isinstance(message, Malformed)
    assert (message.error.code, message.id) == (INVALID_REQUEST, "deep")


def test_a_wide_message_is_not_a_deep_one() -> None:
    params = {"rows": [[number] for number in range(5000)]}
    assert read(encode({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params})) == Request(1, "m", params)


def test_the_deepest_message_that_is_read_has_the_limit_as_its_depth() -> None:
    def nested(levels: int) -> str:  # the message itself is the first level, params the second
        return '{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":' + "[" * (levels - 2) + "]" * (levels - 2) + "}}"

    assert isinstance(read(nested(128)), Request)
    assert isinstance(read(nested(129)), Malformed)


def test_an_oversized_message_keeps_its_id() -> None:
    head = b'{"jsonrpc":"2.0","method":"m","params":{"id":"inner","x":"' + b"a" * 100 + b'"},"id":77,"y":"'
    message = oversized(head, 4096)
    assert (message.id, message.error.code) == (77, INVALID_REQUEST)
    assert "4096" in str(message.error.data)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"id":5,"x":[', 5),
        (b'{"x":{"id":1},"id":"two"', "two"),
        (b'{"x":"\\"id\\":3","id":4', 4),
        (b'{"x":"id","y":"', None),
        (b'[{"id":5}', None),
        (b'{"id":null', None),
        (b'{"id":true', None),
        (b'{"id":{', None),
        (b'{"id":{"a":1', None),
        (b'{"id":["a"],"id":3', 3),
        (b'{"x":{"id":{}},"id":7', 7),
        (b'{"x":[{"id":[]}],"y":[', None),
        (b"", None),
    ],
)
def test_an_id_is_salvaged_only_from_the_top_level(head: bytes, expected: object) -> None:
    assert salvage_id(head) == expected


def test_a_batch_holds_each_of_its_messages() -> None:
    message = read('[{"jsonrpc":"2.0","id":1,"method":"m"},3]')
    assert isinstance(message, Batch)
    assert isinstance(message.messages[0], Request)
    assert isinstance(message.messages[1], Malformed)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=200) | json_values.map(msgspec.json.encode))
def test_no_bytes_make_the_parser_raise(line: bytes) -> None:
    parse(line, max_depth=16)


@given(json_values)
def test_a_line_never_holds_a_newline(value: Any) -> None:
    assert b"\n" not in encode({"jsonrpc": "2.0", "id": 1, "result": value})


def test_a_text_that_is_not_unicode_is_still_sent() -> None:
    assert encode({"file": "name-\udcff.yaml"}) == b'{"file":"name-?.yaml"}'


def test_half_an_emoji_does_not_cost_a_request_its_id() -> None:
    message = read(b'{"jsonrpc":"2.0","id":9,"method":"m","params":{"output":"cut \\ud83d"}}')
    assert message == Request(9, "m", {"output": "cut ?"})
    assert isinstance(read(b'{"jsonrpc":"2.0","id":9,"method":"m\\u0041'), Malformed)
    assert isinstance(read(b'{"jsonrpc":"2.0","id":9,"method":"\\u0041","params":{"x":NaN}}'), Malformed)
