"""Copilot CLI at work with Handrail. Headless it takes a slash command for words, so no prompt is tried."""

from __future__ import annotations

import pytest

from tests.clients.real.checks import EndChecks, HookChecks, WorkChecks
from tests.clients.real.clients import Copilot

pytestmark = pytest.mark.clients

CLIENT = Copilot()


class TestWork(WorkChecks):
    pass


class TestHooks(HookChecks):
    pass


class TestEnd(EndChecks):
    pass
