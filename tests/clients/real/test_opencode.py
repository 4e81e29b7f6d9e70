"""OpenCode at work with Handrail. It asks for a prompt with `$1` for an argument and fills in the words afterwards."""

from __future__ import annotations

import pytest

from tests.clients.real.checks import EndChecks, HookChecks, PromptChecks, WorkChecks
from tests.clients.real.clients import OpenCode

pytestmark = pytest.mark.clients

CLIENT = OpenCode()


class TestWork(WorkChecks):
    pass


class TestHooks(HookChecks):
    pass


class TestEnd(EndChecks):
    pass


class TestPrompts(PromptChecks):
    plan = "/handrail:plan-this"
    resume = "/handrail:resume-task"
