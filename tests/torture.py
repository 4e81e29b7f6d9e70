"""`./run torture [--minutes N]`: the long versions. Without a limit, everything once; with one, as much as fits.

Runs the tests marked `torture`, then the property tests with many more examples. A failure names its seed. It is also a
plugin of the pytest that it starts, which notes every failure at once: a run whose time is up before pytest could tell
of one has failed all the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.__main__ import environment as kept_compiled

HERE = Path(__file__).parent.parent
NOTES = "HANDRAIL_TORTURE_FAILED"
"""The variable that names the file in which failures are noted."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes a failure, in the process that hears of all of them."""
    notes = os.environ.get(NOTES)
    if notes is not None and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(notes).open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{report.nodeid} ({report.when})\n{report.longreprtext}\n\n")


def run(minutes_left: float | None, environment: dict[str, str], *arguments: str) -> int:
    """One pytest run, ended when its time is up: what had not failed by then has passed as far as it came."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "failed"
        command = [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "tests.torture", *arguments]
        try:
            timeout = None if minutes_left is None else max(1.0, minutes_left * 60)
            return subprocess.run(
                command,
                cwd=HERE,
                env={**kept_compiled(), **environment, NOTES: str(notes)},
                timeout=timeout,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            failed = notes.read_text(encoding="utf-8") if notes.exists() else ""
            sys.stdout.write("torture: time is up\n" + (f"failed by then:\n\n{failed}" if failed else ""))
            return 1 if failed else 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=None, help="stop after about this many minutes")
    minutes = options.parse_args().minutes
    started = time.monotonic()

    def left() -> float | None:
        return None if minutes is None else minutes - (time.monotonic() - started) / 60

    half = None if minutes is None else minutes / 2
    failed = run(half, {} if minutes is None else {"HANDRAIL_CREW_TASKS": "300"}, "-m", "torture", "-x")
    if failed:
        return failed
    remaining = left()
    return run(remaining, {"HANDRAIL_HYPOTHESIS": "torture"}, "-m", "hypothesis", "-x")


if __name__ == "__main__":
    sys.exit(main())
