"""Which client calls, and what it is told at the start, at the end and after a compaction, in its own form."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from handrail.hooks import callers
from handrail.hooks.callers import CALLERS, as_json, caller
from handrail.hooks.event_input import parse
from tests.hooks.scene import Scene

CLAUDE = {"session_id": "s", "transcript_path": "/t", "cwd": "/x", "permission_mode": "default"}
COPILOT = {"session_id": "s", "timestamp": "2026-11-18T16:18:50.016Z", "cwd": "/x"}
CURSOR = {"conversation_id": "c", "generation_id": "g", "workspace_roots": ["/x"], "cursor_version": "2.1"}


@pytest.mark.parametrize(
    ("named", "given", "client"),
    [
        ("claude-code", {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"}, "claude-code"),
        ("claude-code", {**COPILOT, "hook_event_name": "SessionStart", "source": "new"}, "copilot"),
        ("claude-code", {**COPILOT, "hook_event_name": "Stop", "transcript_path": "/t"}, "copilot"),
        ("claude-code", {**CURSOR, "hook_event_name": "preToolUse"}, "cursor"),
        ("codex", {**CLAUDE, "hook_event_name": "PreToolUse", "turn_id": "1", "model": "m"}, "codex"),
        ("gemini", {**COPILOT, "hook_event_name": "SessionStart", "transcript_path": "/t"}, "gemini"),
        ("opencode", {"session_id": "s", "cwd": "/x"}, "opencode"),
        ("", {**CLAUDE, "hook_event_name": "PreToolUse", "turn_id": "1"}, "codex"),
        ("", {**COPILOT, "hook_event_name": "BeforeTool"}, "gemini"),
        ("", {"sessionId": "s", "timestamp": 1, "toolName": "edit", "toolArgs": {"path": "a"}}, "copilot"),
        ("", CURSOR, "cursor"),
        ("", CLAUDE, "claude-code"),
        ("", {}, "claude-code"),
    ],
)
def test_who_calls(named: str, given: dict[str, Any], client: str) -> None:
    assert caller(named, parse(json.dumps(given)), os.environ) == client


def test_gemini_is_known_by_its_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_SESSION_ID", "s")
    given = parse(json.dumps({**COPILOT, "hook_event_name": "SessionStart"}))
    assert caller("", given, os.environ) == "gemini"
    assert caller("claude-code", given, os.environ) == "copilot", "Gemini CLI does not run Claude Code's hooks"


def test_json_is_what_a_parser_reads() -> None:
    told = {"a": 'quoted " and \\ and \n and \u2028', "b": {"c": "<é𝄞>"}}
    assert json.loads(as_json(told)) == told
    assert json.loads(as_json({"lone": "\udc80"})) == {"lone": "?"}


def test_gemini_s_text_names_no_file() -> None:
    """It would read the file into the request, whoever chose the task's name."""
    assert "@" not in model_hears("gemini", callers.context("gemini", "SessionStart", "task @secret.txt").decode())
    assert model_hears("copilot", callers.context("copilot", "", "@a").decode()) == "@a", "others read none"


def model_hears(client: str, said: str) -> str:
    """The text that reaches a client's model of what a hook printed."""
    if client == "gemini":
        return str(json.loads(said)["hookSpecificOutput"]["additionalContext"])
    name = {"copilot": "additionalContext", "cursor": "additional_context"}.get(client)
    return str(json.loads(said)[name]) if name else said


def test_the_start_is_told_in_the_form_of_the_client_and_once(scene: Scene) -> None:
    scene.task()
    plain = scene.said("start")
    assert "wrap" in plain
    for client in CALLERS:
        said = scene.said("start", "--client", client, given={"hook_event_name": "SessionStart"})
        assert model_hears(client, said) == plain, "one text for all"
    # Copilot CLI runs the files of two clients.
    given = {"hook_event_name": "SessionStart", "timestamp": "2026-11-18T16:18:50.016Z"}
    assert "additionalContext" in scene.said("start", "--client", "claude-code", given=given)
    own = scene.repo / ".github" / "hooks" / "handrail.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"bash": "python -m handrail.hooks start --client copilot"}', encoding="utf-8")
    assert scene.said("start", "--client", "claude-code", given=given) == ""
    assert "additionalContext" in scene.said("start", "--client", "copilot", given=given)


def test_a_conversation_is_told_again_after_a_compaction_once(scene: Scene) -> None:
    scene.task()
    for client, event, extra in (
        ("copilot", "prompt", {"trigger": "auto"}),
        ("gemini", "prompt", {"trigger": "manual"}),
        ("cursor", "edited", {}),
    ):
        assert scene.said(event, "--client", client) == ""
        assert scene.said("precompact", "--client", client, given=extra) == ""
        assert scene.said(event, "--client", client, given={"session_id": "another"}) == ""
        assert "wrap" in scene.said(event, "--client", client, given={"hook_event_name": "E"})
        assert scene.said(event, "--client", client) == "", "once"
    scene.said("precompact", "--client", "gemini", given={"trigger": "auto"})
    assert scene.said("prompt", "--client", "gemini") == "", "it says so before every turn"
    scene.said("precompact", "--client", "claude-code")
    assert scene.said("prompt", "--client", "claude-code") == "", "it starts anew by itself"


def test_a_reminder_and_a_refusal_are_in_the_form_of_the_client() -> None:
    assert callers.reminder("cursor", "open") == b"", "it would not show it"
    assert json.loads(callers.reminder("gemini", "open")) == {"systemMessage": "open"}
    assert json.loads(callers.going_on("cursor", "why")) == {"followup_message": "why"}
    assert json.loads(callers.going_on("gemini", "why")) == {"decision": "deny", "reason": "why"}
    assert json.loads(callers.going_on("codex", "why")) == {"decision": "block", "reason": "why"}


def test_gemini_s_model_hears_a_warning_after_the_edit(scene: Scene) -> None:
    agent = scene.call("agent_register", name="Anna", runtime="custom")["id"]
    scene.call("reserve_paths", agent_id=agent, paths=["a.py"])
    given = {"tool_name": "write_file", "tool_input": {"file_path": str(scene.repo / "a.py")}}
    person = json.loads(scene.said("before", "--client", "gemini", given={**given, "hook_event_name": "BeforeTool"}))
    assert "a.py is kept by Anna" in person["systemMessage"]
    model = json.loads(scene.said("edited", "--client", "gemini", given={**given, "hook_event_name": "AfterTool"}))
    assert "a.py is kept by Anna" in model["hookSpecificOutput"]["additionalContext"]
