"""`./run clients`: installs the real clients, then runs their tests where there is no network but loopback.

Without Node it says so in one line and ends; where no skips are allowed (CI) that is a failure. Arguments go to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients.real.install import MissingClientsError, install

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent
LOOPBACK = "tests.clients.real.loopback"


def alone() -> list[str]:
    """What comes before a command so that it sees loopback alone; nothing where the system does not allow that."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    prefix = [unshare, "--map-root-user", "--net", sys.executable, "-m", LOOPBACK]
    tried = subprocess.run([*prefix, "true"], cwd=ROOT, capture_output=True, check=False)
    return prefix if tried.returncode == 0 else []


def main(arguments: list[str]) -> int:
    try:
        install()
    except MissingClientsError as error:
        sys.stdout.write(f"skipped: {error}\n")
        return 1 if os.environ.get("HANDRAIL_NO_SKIPS") == "1" else 0
    before = alone()
    if not before:
        sys.stdout.write("no network namespace can be made here: the clients' traffic is not kept to loopback\n")
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-q", "-m", "clients"]
    return subprocess.run([*before, *pytest, str(HERE), *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
