"""Claude Code at work with Handrail: besides, its slash commands, and no tools for resources that are not there."""

from __future__ import annotations

import pytest

from tests.clients.real.checks import EndChecks, HookChecks, PromptChecks, WorkChecks
from tests.clients.real.clients import ClaudeCode
from tests.clients.real.conftest import Walked

pytestmark = pytest.mark.clients

CLIENT = ClaudeCode()


class TestWork(WorkChecks):
    pass


class TestHooks(HookChecks):
    pass


class TestEnd(EndChecks):
    pass


class TestPrompts(PromptChecks):
    """It splits what follows an MCP prompt at blanks, so a command of the project is what takes whole requests."""

    plan = "/handrail-plan"
    opening = "Plan this: "
    resume = "/mcp__handrail__resume-task"


def test_no_tools_for_resources_are_added(walked: Walked) -> None:
    assert [name for name in walked.requests[0].tools if "McpResource" in name] == []
