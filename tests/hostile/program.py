"""The real program as a person runs it: a process of its own, a project, and what it said."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEADLINE_S = 60
HOME = Path(tempfile.mkdtemp(prefix="handrail-user-"))
"""The folder of the one user who runs all these commands: a store is believed where its user's key is."""
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def handrail(project: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a project. It has nothing to read, and an end."""
    return subprocess.run(
        [sys.executable, "-m", "handrail", *argv, "--root", str(project)],
        cwd=project,
        env={**os.environ, "HOME": str(HOME)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def create(project: Path, name: str) -> None:
    """Records something: a workflow of this name."""
    given = (f"name={name}", "source_type=prompt", "source_content=x", "--toolsets", "workflow")
    done = handrail(project, "call", "workflow_create", *given)
    assert done.returncode == 0, done.stderr


def recorded(project: Path) -> str:
    """What is recorded: the names of all workflows, somewhere in a text."""
    done = handrail(project, "call", "workflow_list", "--toolsets", "workflow")
    assert done.returncode == 0, done.stderr
    return done.stdout
