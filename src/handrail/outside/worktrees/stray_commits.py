"""Commits that only a worktree's own reflog of HEAD still knows: made while HEAD was detached, then left.

They would be lost with the worktree. Commits that were on a branch and replaced there, for instance by an amendment,
are not among them: that branch's reflog has them.
"""

from __future__ import annotations

import os

from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.uncommitted import ref_of
from handrail.regular_files import open_regular

LOG_BYTES = 8 * 1024 * 1024


def stray_commits(git: Git, branch: str | None) -> list[str]:
    """The last commit of each line of such commits."""
    repository = git.repository
    seen = _commits_in_reflog(f"{repository.git_dir}/logs/HEAD")
    if branch is not None:
        seen -= _commits_in_reflog(f"{repository.common_dir}/logs/{ref_of(branch)}")
    there = git.run("cat-file", "--batch-check", given="".join(f"{oid}\n" for oid in sorted(seen)).encode())
    commits = [line.split()[0].decode() for line in there.splitlines() if line.split()[1:2] == [b"commit"]]
    if not commits:
        return []
    given = "".join(f"{commit}\n" for commit in commits).encode()
    held = ("--not", "--branches", "--tags", "--remotes", "--glob=refs/handrail/", "--not")
    listed = git.run("rev-list", "--parents", *held, "--stdin", given=given)
    lines = [line.split() for line in listed.decode().splitlines()]
    parents = {parent for _, *above in lines for parent in above}
    return [line[0] for line in lines if line[0] not in parents and line[0] in commits and not _is_head(git, line[0])]


def _is_head(git: Git, commit: str) -> bool:
    return git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1)) == commit


def _commits_in_reflog(file: str) -> set[str]:
    """Every commit that a reflog names."""
    try:
        with os.fdopen(open_regular(file), "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LOG_BYTES))
            lines = log.read(LOG_BYTES).split(b"\n")
    except OSError:
        return set()
    found = {word.decode("ascii", "replace") for line in lines for word in line.split(b" ", 2)[:2] if len(word) >= 40}
    return {oid for oid in found if oid.strip("0")}
