"""Whether git would track a file along with a project's other files. Only asks: nothing is written to git's rules."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.outside.tracking.git_process import Deadline, GitCall, GitFailed, git_program

GIT_S = 5


def git_would_commit(file: Path, project: Path) -> bool:
    """Whether a file is in a project under git and no rule ignores it. False if git cannot tell."""
    real = Path(os.path.realpath(file))  # Path.resolve would fail on circular links
    if git_program() is None or not real.is_relative_to(project.resolve()):
        return False
    try:
        call = GitCall(
            ("check-ignore", "--no-index", "-z", "--stdin"),
            folder=str(real.parent),
            deadline=Deadline(GIT_S),
            environment={"GIT_LITERAL_PATHSPECS": "0"},  # only this command refuses them
            given=b"./" + real.name.encode(errors="surrogateescape") + b"\0",
        )
        return not call.output(allowed=(0, 1))
    except (GitFailed, OSError):
        return False
