"""The case matrix: each case on a real repository, held against what was expected and against the bytes on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.domain.journal.entry import Changes
from handrail.domain.journal.paths import path_bytes
from handrail.outside.tracking.git_tracker import GitTracker
from tests.outside.tracking import blinding_cases, cases, history_cases, ignore_cases, special_cases
from tests.outside.tracking.cases import Case, Expected
from tests.outside.tracking.playground import Playground, contents_of, environment, file_at, in_sight, net_change

CASES = [*cases.CASES, *history_cases.CASES, *special_cases.CASES, *blinding_cases.CASES, *ignore_cases.CASES]


def finished(work: cases.Work) -> Expected:
    try:
        next(work)
    except StopIteration as end:
        expected = end.value
        assert isinstance(expected, Expected)
        return expected
    raise AssertionError("a case yields once")


def own(found: Changes, change: str) -> set[bytes]:
    return {path_bytes(file.path) for file in found.own if file.change == change}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_task_is_told_exactly_what_it_changed(
    case: Case, repo: Playground, tracker: GitTracker, tmp_path: Path
) -> None:
    work = case(repo)
    next(work)
    git_before = contents_of(repo.top / ".git")
    before = tracker.snapshot(str(repo.top))
    assert contents_of(repo.top / ".git") == git_before
    seen_before = in_sight(repo.top)
    copy = tmp_path / "copy"
    shutil.copytree(repo.top, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "pipe", "socket"))
    keep_only(copy, set(seen_before))
    expected = finished(work)
    git_before = contents_of(repo.top / ".git")
    after = tracker.snapshot(str(repo.top), like=before)
    found = tracker.changes(before, after)
    patch = b"".join(tracker.patch(before, after))
    assert contents_of(repo.top / ".git") == git_before
    assert (own(found, "added"), own(found, "modified"), own(found, "deleted")) == expected[:3], found
    assert not found.partial, found.warnings
    if expected.external is not None:
        assert {path_bytes(file.path): file.cause for file in found.external} == expected.external
    origins = {path_bytes(file.path): file.origin for file in found.own}
    assert {path: origins[path] for path in expected.origins} == expected.origins
    if expected.renamed is not None:
        assert {(path_bytes(name.from_path), path_bytes(name.to_path)) for name in found.renamed} == expected.renamed
    if expected.commits is not None:
        assert len(found.commits) == expected.commits
    if expected.is_literal:
        net = net_change(seen_before, in_sight(repo.top))
        told = {path_bytes(file.path) for file in found.own} | {path_bytes(file.path) for file in found.external}
        assert {path for path in told if path in net or not (repo.top / ".gitmodules").exists()} == set(net)
        if expected.external == {}:
            assert net == {path_bytes(file.path): file.change for file in found.own if path_bytes(file.path) in net}
            assert applied(copy, patch, set(net)) == {path: file_at(repo.path(path)) for path in net}


def keep_only(folder: Path, names: set[bytes]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if not path.is_dir() or path.is_symlink():
            name = os.fsencode(path)[len(os.fsencode(folder)) + 1 :]
            if name not in names:
                path.unlink()


def applied(copy: Path, patch: bytes, paths: set[bytes]) -> dict[bytes, object]:
    """The files of a copy after the patch."""
    if patch:
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        done = subprocess.run(command, cwd=copy, input=patch, capture_output=True, check=False, env=environment())
        assert done.returncode == 0, done.stderr
    return {path: file_at(copy / os.fsdecode(path)) for path in paths}
