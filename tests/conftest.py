"""What all tests share: hypothesis profiles, the rule about skips, and a home folder nobody lives in."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Who starts tests in the background may have Ctrl-C ignored, and every process that tests start would inherit that."""

PERSONAL = (
    *("APPDATA", "CLAUDE_PROJECT_DIR", "COMPUTERNAME", "SHELL", "WORKFLOW_STORAGE_PATH", "XDG_CONFIG_HOME", "ZDOTDIR"),
    *("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM"),
    *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"),
)
"""What Handrail, click or git read of the environment and what differs between people, terminals and build machines.
Gone before the first fixture runs: a test that needs one sets it. test_tidy.py finds a name that is missing here."""
for _name in PERSONAL:
    os.environ.pop(_name, None)

settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True)
settings.register_profile(
    "torture",
    max_examples=5000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HANDRAIL_HYPOTHESIS", "quick"))

ON_REQUEST = ("torture", "clients")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long versions and the real clients run only when asked for by name: `-m torture`, `-m clients`."""
    if config.getoption("-m"):
        return
    chosen = [item for item in items if not any(item.get_closest_marker(name) for name in ON_REQUEST)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where skips are not allowed (CI), a skip fails the run."""
    if os.environ.get("HANDRAIL_NO_SKIPS") != "1":
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and reporter.stats.get("skipped") and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the guides, settings or environment of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith("HANDRAIL_")]:
        monkeypatch.delenv(name)
    return home


_ended = 0


def pytest_runtest_logfinish() -> None:
    """Every hundred tests the stores that some of them left open are closed: each keeps a few files."""
    global _ended  # noqa: PLW0603 - counted over the whole run
    _ended += 1
    if _ended % 100 == 0:
        gc.collect()
