"""`./run torture [--minutes N]`: the long versions. Without a limit, everything once; with one, as much as fits.

Runs the tests marked `torture`, then the property tests with many more examples. A failure names its seed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.__main__ import environment as kept_compiled

HERE = Path(__file__).parent.parent


def run(minutes_left: float | None, environment: dict[str, str], *arguments: str) -> int:
    """One pytest run, ended when its time is up: what had not failed by then has passed as far as it came."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "-q", *arguments]
    try:
        timeout = None if minutes_left is None else max(1.0, minutes_left * 60)
        return subprocess.run(
            command, cwd=HERE, env={**kept_compiled(), **environment}, timeout=timeout, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        sys.stdout.write("torture: time is up\n")
        return 0


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
