"""The long runs: a failure counts even if their time is up before pytest tells of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import pytest

from tests import torture


def report(outcome: Literal["passed", "failed"]) -> pytest.TestReport:
    return pytest.TestReport("tests/x.py::test_y", ("tests/x.py", 1, "test_y"), {}, outcome, "it broke", "call")


def test_a_failure_is_noted_at_once_and_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "failed"
    monkeypatch.setenv(torture.NOTES, str(notes))
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    torture.pytest_runtest_logreport(report("failed"))
    assert not notes.exists(), "the process that started the workers hears of it too"
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    torture.pytest_runtest_logreport(report("passed"))
    assert not notes.exists()
    torture.pytest_runtest_logreport(report("failed"))
    assert notes.read_text() == "tests/x.py::test_y (call)\nit broke\n\n"


def test_a_run_whose_time_is_up_fails_if_a_test_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def late(*_: object, env: dict[str, str], timeout: float, **__: object) -> None:
        if env.get("FAILS"):
            Path(env[torture.NOTES]).write_text("tests/x.py::test_y (call)\n")
        raise subprocess.TimeoutExpired("pytest", timeout)

    monkeypatch.setattr(subprocess, "run", late)
    assert torture.run(1.0, {}) == 0
    assert torture.run(1.0, {"FAILS": "yes"}) == 1
    assert "test_y" in capsys.readouterr().out
