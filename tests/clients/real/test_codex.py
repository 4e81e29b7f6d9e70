"""Codex at work with Handrail. It asks no server for prompts, and approves nothing: `codex exec` never asks."""

from __future__ import annotations

import pytest

from tests.clients.real.checks import EndChecks, HookChecks, WorkChecks
from tests.clients.real.clients import Codex
from tests.clients.real.conftest import NewSeat
from tests.clients.real.stories import TASK, walk

pytestmark = pytest.mark.clients

CLIENT = Codex()


class TestWork(WorkChecks):
    pass


class TestHooks(HookChecks):
    pass


class TestEnd(EndChecks):
    pass


def test_nothing_needs_approval_even_where_none_was_given(new_seat: NewSeat) -> None:
    """The tools' own annotations say that they reach nothing outside; no setting of the server's entry does."""
    seat = new_seat(CLIENT, *walk(), allowed=False)
    assert "approval" not in (seat.project / ".codex" / "config.toml").read_text()
    assert seat.run("Lay the rails.").code == 0
    (decision,) = seat.told("decisions")["decisions"]
    assert decision["task_name"] == TASK
