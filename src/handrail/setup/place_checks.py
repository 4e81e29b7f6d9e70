"""What Handrail depends on: git, and the address where `handrail up` would serve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from handrail.http_wiring import parse_address
from handrail.kernel.errors import Refusal
from handrail.outside.server_probe import who_listens
from handrail.outside.tracking.git_process import git_program
from handrail.outside.worktrees.git import MERGE_TREE, git_version
from handrail.settings import Settings, said_by_project
from handrail.setup.findings import Finding, Patient, broken, run_checks, well

PORT_S = 1.0
OLD_LOCK_MS = 10 * 60_000
"""A git that has held its index longer than this is no longer running."""


def check_git(patient: Patient) -> Iterator[Finding]:
    needed = ".".join(map(str, MERGE_TREE))
    is_repository = (patient.project / ".git").exists()
    if git_program() is None:
        what = "git is not there: no worktrees and merges, and changes are found by comparing files"
        wrong = broken if is_repository else run_checks
        yield wrong("git", what, f"install git {needed} or newer")
        return
    version = git_version()
    if version and version < MERGE_TREE:
        what = f"git {'.'.join(map(str, version))} is too old: conflicts are not foreseen and worktrees not merged"
        yield broken("git", what, f"install git {needed} or newer")
    elif is_repository:
        yield well("git", f"git {'.'.join(map(str, version))}")
    else:
        yield run_checks(
            "git", f"{patient.project} is no git repository", "git init, for patches, worktrees and merges"
        )
    yield from _left_lock(patient)


def _left_lock(patient: Patient) -> Iterator[Finding]:
    lock = patient.project / ".git" / "index.lock"
    try:
        age_ms = patient.now_ms - lock.stat().st_mtime_ns // 1_000_000
    except OSError:
        return
    if age_ms > OLD_LOCK_MS:
        what = f"{lock} was left {age_ms // 60_000} min ago by a git that was killed: nobody can commit"
        yield broken("lock", what, f"when no git runs here: rm {lock}")


def check_address(patient: Patient, settings: Settings) -> Iterator[Finding]:
    try:
        host, port = parse_address(settings.http)
    except Refusal as problem:
        yield broken("http", problem.message, problem.hint)
        return
    there = who_listens(host, port, timeout_s=PORT_S) if port else None
    if there == "other":
        chosen = "HANDRAIL_HTTP" in patient.environ or _is_chosen(patient.project, "http")
        what = f"{settings.http} is taken by another program"
        wrong = broken if chosen else run_checks  # no harm to anyone who never serves over HTTP
        yield wrong("http", what, "another one: handrail up --http 127.0.0.1:0, or set http")
    elif there == "handrail":
        yield well("http", f"{settings.http}: Handrail serves there")
    else:
        yield well("http", f"{settings.http}: free")


def _is_chosen(project: Path, name: str) -> bool:
    try:
        return said_by_project(project, name) is not None
    except Refusal:
        return False
