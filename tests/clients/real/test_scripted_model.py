"""The scripted model itself: every API gives the script's turns, whole or streamed, and keeps what it was asked."""

from __future__ import annotations

from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from tests.clients.real.scripted_model import ASIDE, OVER, ScriptedModel, call, say

TOOL = "mcp__handrail__start_task"
WORKFLOW = "wf_0123456789abcdefghjkmnpqrs"
SCHEMA = {"type": "object"}

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": WORKFLOW}], "tools": [{"name": TOOL, "input_schema": SCHEMA}]},
    ),
    "responses": (
        "/v1/responses",
        {"input": [{"type": "message", "content": WORKFLOW}], "tools": [{"type": "function", "name": TOOL}]},
    ),
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": WORKFLOW}],
            "tools": [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}],
        },
    ),
    "generateContent": (
        "/v1beta/models/scripted:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": WORKFLOW}]}],
            "tools": [{"functionDeclarations": [{"name": TOOL, "parameters": SCHEMA}]}],
        },
    ),
}


def post(model: ScriptedModel, path: str, body: dict[str, Any]) -> str:
    with urlopen(Request(model.address + path, data=msgspec.json.encode(body), method="POST"), timeout=10) as answer:
        return str(answer.read(), "utf-8")


def streamed(api: str) -> tuple[str, dict[str, Any]]:
    path, body = ASKED[api]
    if api == "generateContent":
        return path.replace(":generate", ":streamGenerate"), body
    return path, {**body, "stream": True}


@pytest.mark.parametrize("api", ASKED)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_call_a_text_and_the_end(api: str, is_streamed: bool) -> None:
    path, body = streamed(api) if is_streamed else ASKED[api]
    with ScriptedModel(call("start_task", workflow_id="<workflow>", name="A rail"), say("Laid.")) as model:
        answers = [post(model, path, body) for _ in range(3)]
    assert TOOL in answers[0]
    assert WORKFLOW in answers[0], "the placeholder was not filled in"
    assert "Laid." in answers[1]
    assert OVER in answers[2]
    assert all(("data: " in answer) is is_streamed for answer in answers)
    assert [received.api for received in model.conversation()] == [api] * 3
    assert model.requests[0].tools == (TOOL,)
    assert WORKFLOW in model.requests[0].words


def test_a_request_without_handrails_tools_takes_no_turn() -> None:
    path, body = ASKED["chat"]
    with ScriptedModel(say("Mine.")) as model:
        assert ASIDE in post(model, path, {**body, "tools": []})
        assert "Mine." in post(model, path, body)
        assert len(model.conversation()) == 1
