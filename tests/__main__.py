"""`./run test`: style, types and import rules, then every test. With arguments: only pytest, with those arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

CHECKS: tuple[tuple[str, list[str]], ...] = (
    ("style", [str(BIN / "ruff"), "check", "-q", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "-q", "."]),
    ("types", [str(BIN / "mypy"), "--no-error-summary"]),
    ("imports", [str(BIN / "lint-imports"), "--no-cache"]),
)


def environment() -> dict[str, str]:
    """Thousands of processes are started: each would compile everything anew where nobody may keep what is compiled."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main(arguments: list[str]) -> int:
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-q"]
    if arguments:
        return subprocess.run([*pytest, *arguments], cwd=HERE, env=environment(), check=False).returncode
    failed = []
    for name, command in CHECKS:
        done = subprocess.run(
            command, cwd=HERE, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        sys.stdout.write(f"{name}: {'ok' if done.returncode == 0 else done.stdout}\n")
        sys.stdout.flush()
        if done.returncode != 0:
            failed.append(name)
    tests = subprocess.run(pytest, cwd=HERE, env=environment(), check=False).returncode
    if failed:
        sys.stdout.write(f"failed: {', '.join(failed)}\n")
    return 1 if failed else tests


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
