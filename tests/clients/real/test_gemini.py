"""Gemini CLI at work with Handrail."""

from __future__ import annotations

import pytest

from tests.clients.real.checks import EndChecks, HookChecks, PromptChecks, WorkChecks
from tests.clients.real.clients import Gemini

pytestmark = pytest.mark.clients

CLIENT = Gemini()


class TestWork(WorkChecks):
    pass


class TestHooks(HookChecks):
    pass


class TestEnd(EndChecks):
    pass


class TestPrompts(PromptChecks):
    plan = "/plan-this"
    resume = "/resume-task"
