"""What ignore rules began to hide: how it is told beside the list of files, what older snapshots know of rules, and
what happens at the limits. Which files are listed is in the matrix."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from handrail.domain.journal.entry import Changes
from handrail.domain.journal.ports import Snapshot
from handrail.outside.tracking import out_of_sight
from handrail.outside.tracking.directory import DirectoryTracker
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.cases import settle
from tests.outside.tracking.playground import Playground


def told(found: Changes) -> dict[str, str]:
    return {change.path: change.change for change in found.own}


def end(tracker: GitTracker, before: Snapshot) -> Changes:
    return tracker.changes(before, tracker.snapshot(before.root, like=before))


def test_folders_of_tools_are_named_and_counted(repo: Playground, tracker: GitTracker) -> None:
    before = tracker.snapshot(str(repo.top))
    repo.write(".venv/.gitignore", "*\n")
    for number in range(3):
        repo.write(f".venv/lib/{number}.py")
    repo.write(".git/info/exclude", "*.pyc\n")
    repo.write("src/x.pyc")
    found = end(tracker, before)
    assert (told(found), found.partial) == ({}, False)
    assert ".venv (4), src/x.pyc (1)" in " ".join(found.warnings)


def test_what_a_tool_s_folder_showed_is_told_file_by_file(repo: Playground, tracker: GitTracker) -> None:
    repo.write(".venv/lib/seen.py")
    before = tracker.snapshot(str(repo.top))
    repo.write(".venv/.gitignore", "*\n")
    repo.append(".venv/lib/seen.py")
    assert told(end(tracker, before)) == {".venv/lib/seen.py": "modified"}


@pytest.mark.parametrize("limit", ["MOST_LISTED", "MOST_ENTRIES"])
def test_more_than_can_be_listed_is_partial(
    repo: Playground, tracker: GitTracker, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    before = tracker.snapshot(str(repo.top))
    repo.write("out/.gitignore", "*\n")
    for number in range(6):
        repo.write(f"out/{number}.py")
    monkeypatch.setattr(out_of_sight, limit, 4)
    found = end(tracker, before)
    assert found.partial
    assert "not listed" in found.warnings[-1]
    assert len(found.own) <= 4


def test_rules_that_are_too_long_to_keep_are_compared(
    repo: Playground, tracker: GitTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out_of_sight, "KEPT_BYTES", 10)
    repo.write(".git/info/exclude", "# much to say\n*.o\n")
    before = tracker.snapshot(str(repo.top))
    repo.append("a.txt")
    found = end(tracker, before)
    assert (told(found), found.partial) == ({"a.txt": "modified"}, False)
    repo.append(".git/info/exclude", "*.py\n")
    assert end(tracker, before).partial


def test_what_is_hidden_is_not_in_a_patch_and_not_kept(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    before = tracker.snapshot(str(repo.top))
    repo.append(".gitignore", ".env\n")
    repo.write(".env", "TOKEN=a-secret\n")
    after = tracker.snapshot(str(repo.top), like=before)
    patch = b"".join(tracker.patch(before, after))
    assert b"# .env: changed, content not kept\n" in patch
    assert b"a-secret" not in patch
    oid = repo.git("hash-object", ".env")
    assert not list((tmp_path / "state").rglob(f"{oid[:2]}/{oid[2:]}"))


def test_hidden_work_of_one_task_is_not_the_next_one_s(repo: Playground, tracker: GitTracker) -> None:
    first = tracker.snapshot(str(repo.top))
    repo.write("src/.gitignore", "*\n")
    repo.write("src/payload.py")
    assert told(end(tracker, first)) == {"src/.gitignore": "added", "src/payload.py": "added"}
    second = tracker.snapshot(str(repo.top))
    repo.append("a.txt")
    repo.append("src/payload.py")
    found = end(tracker, second)
    assert (told(found), found.external, found.warnings) == ({"a.txt": "modified"}, [], [])


def without_like(tracker: GitTracker, before: Snapshot) -> Changes:
    return tracker.changes(before, tracker.snapshot(before.root))


def test_if_nobody_looked_for_what_is_hidden_the_answer_is_partial(repo: Playground, tracker: GitTracker) -> None:
    before = tracker.snapshot(str(repo.top))
    repo.write("src/.gitignore", "*\n")
    assert without_like(tracker, before).partial


NEWER = ("ignoring", "since", "are_rules_new", "hidden_folders", "is_hidden_cut")


def older_print(repo: Playground, version: int) -> str:
    """How versions before this one noted the rules outside of the tree."""
    exclude, user = repo.read(".git/info/exclude"), b""
    if version == 1:
        return hashlib.sha256(exclude + b"\0" + user + b"\0").hexdigest()[:16]
    whole = hashlib.sha256(b"".join(b"%d:" % len(part) + part for part in (exclude, user))).hexdigest()
    return whole[:32] if version == 2 else whole


def made_older(repo: Playground, state: Path, version: int) -> None:
    """Turns the kept notes into those of an older version."""
    for file in state.glob("git-*/kept/*.json"):
        notes = msgspec.json.decode(file.read_bytes())
        for name in (*NEWER, *(("attributes", "line_ends") if version == 1 else ())):
            notes.pop(name)
        if version == 2:
            notes["attributes"] = notes["attributes"][:32]
        notes["rules"] = older_print(repo, version)
        file.write_bytes(msgspec.json.encode(notes))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_task_that_an_older_version_began_ends_as_any_other(
    repo: Playground, tracker: GitTracker, tmp_path: Path, version: int
) -> None:
    repo.write(".git/info/exclude", "*.o\n")
    repo.write(".venv/.gitignore", "*\n")
    repo.write(".venv/x.py")
    settle(repo)
    before = tracker.snapshot(str(repo.top))
    made_older(repo, tmp_path / "state", version)
    repo.append("a.txt")
    repo.append(".venv/x.py")
    found = end(tracker, before)
    assert (told(found), found.partial, found.warnings) == ({"a.txt": "modified"}, False, [])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_hidden_from_it_is_told_all_the_same(
    repo: Playground, tracker: GitTracker, tmp_path: Path, version: int
) -> None:
    before = tracker.snapshot(str(repo.top))
    made_older(repo, tmp_path / "state", version)
    repo.write("src/.gitignore", "*\n")
    repo.write("src/payload.py")
    found = end(tracker, before)
    assert told(found) == {"src/.gitignore": "added", "src/payload.py": "added"}
    repo.write(".git/info/exclude", "*.py\n")
    assert end(tracker, before).partial


def test_a_plain_directory_s_rules_hide_nothing_either(tmp_path: Path) -> None:
    clock, top = SystemClock(), tmp_path / "plain"
    place = Playground(top)
    place.write("src/seen.py")
    place.write(".gitignore", "*.log\n")
    tracker = DirectoryTracker(top / ".handrail/snapshots", clock=clock, ids=RandomIds(clock))
    before = tracker.snapshot(str(top))
    place.write("src/.gitignore", "*\n")
    place.write("src/payload.py")
    place.append("src/seen.py")
    place.write("src/run.log")
    place.write("src/node_modules/x.js")
    place.write(".handrail/snapshots/evil.py")
    place.write(f".handrail/snapshots/{before.data['state']}/evil.py")
    after = tracker.snapshot(str(top), like=before)
    found = tracker.changes(before, after)
    state = after.data["state"]
    assert told(found) == {
        "src/.gitignore": "added",
        "src/payload.py": "added",
        "src/seen.py": "modified",
        ".handrail/snapshots/evil.py": "added",
        f".handrail/snapshots/{state}/evil.py": "added",
    }
    assert found.warnings == ["ignore rules changed during the task"]
    again = tracker.snapshot(str(top))
    place.append("src/payload.py")
    assert told(tracker.changes(again, tracker.snapshot(str(top), like=again))) == {}
