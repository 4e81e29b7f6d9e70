"""Time and room: what is over a limit is said, never passed over; what is kept can be given back."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from handrail.domain.journal.ports import OtherTask, Snapshot
from handrail.outside.tracking import git_process
from handrail.outside.tracking.git_process import Deadline, GitCall, GitTimedOut
from handrail.outside.tracking.git_tracker import GitTracker
from handrail.outside.tracking.large_files import LargeFiles, Limits
from handrail.outside.world import RandomIds, SystemClock
from tests.outside.tracking.playground import Playground


def limited(tmp_path: Path, limits: Limits) -> GitTracker:
    clock = SystemClock()
    return GitTracker(tmp_path / "state", clock=clock, ids=RandomIds(clock), limits=limits)


def task(repo: Playground, tracker: GitTracker) -> tuple[Snapshot, Snapshot]:
    before = tracker.snapshot(str(repo.top))
    repo.append("b.txt")
    return before, tracker.snapshot(str(repo.top), like=before)


def test_a_snapshot_out_of_time_says_so_and_still_knows_the_commit(repo: Playground, tmp_path: Path) -> None:
    patient = limited(tmp_path, Limits())
    before = patient.snapshot(str(repo.top))
    repo.append("a.txt")
    head = repo.commit()
    repo.append("b.txt")
    os.mkfifo(repo.top / "src" / "pipe-for-ignore")
    (repo.top / ".git/info/exclude").unlink()
    os.mkfifo(repo.top / ".git/info/exclude")  # reading it would take for ever
    after = limited(tmp_path, Limits(seconds=1.0)).snapshot(str(repo.top), like=before)
    assert "degraded" in after.flags
    assert (after.commit, after.tree) == (head, None)
    found = patient.changes(before, after)
    assert found.partial
    assert found.warnings
    assert [change.path for change in found.own] == ["a.txt"]


def test_more_files_than_the_budget_are_fingerprinted_and_still_exact(repo: Playground, tmp_path: Path) -> None:
    tracker = limited(tmp_path, Limits(files=3, total_bytes=10_000))
    for number in range(10):
        repo.write(f"many/{number}.txt", f"{number}\n")
    before = tracker.snapshot(str(repo.top))
    assert "over_budget" in before.flags
    repo.append("many/2.txt")
    repo.append("many/9.txt")
    repo.remove("many/8.txt")
    repo.write("many/new.txt")
    after = tracker.snapshot(str(repo.top), like=before)
    found = tracker.changes(before, after)
    told = {change.path: change.change for change in found.own}
    assert told == {
        "many/2.txt": "modified",
        "many/9.txt": "modified",
        "many/8.txt": "deleted",
        "many/new.txt": "added",
    }


def test_a_sparse_checkout_over_the_budget_is_exact_as_well(repo: Playground, tmp_path: Path) -> None:
    repo.git("sparse-checkout", "set", "--cone", "src")
    for number in range(12):
        repo.write(f"src/many/{number:02}.txt", f"{number}\n")
    tracker = limited(tmp_path, Limits(files=5))
    before = tracker.snapshot(str(repo.top))
    repo.write("src/many/00a.txt", "new\n")  # comes before the others: one of them no longer fits
    found = tracker.changes(before, tracker.snapshot(str(repo.top), like=before))
    assert [(change.path, change.change) for change in found.own] == [("src/many/00a.txt", "added")]


def test_committing_what_was_over_the_budget_is_no_change(repo: Playground, tmp_path: Path) -> None:
    tracker = limited(tmp_path, Limits(file_bytes=100))
    repo.write("big.txt", "x" * 1000)
    before = tracker.snapshot(str(repo.top))
    repo.commit()
    after = tracker.snapshot(str(repo.top), like=before)
    assert tracker.changes(before, after).own == []


def test_a_fingerprint_of_a_file_just_written_is_not_trusted(tmp_path: Path) -> None:
    """A second write in the same tick of the clock leaves the same size and times."""
    path = tmp_path / "big.bin"
    path.write_bytes(b"one")
    facts = path.lstat()
    kept = tmp_path / "large.json"
    first = LargeFiles(kept, "sha1", Limits(), Deadline(10))
    seen = first.look(b"big.bin", os.fsencode(path), facts, is_lfs=False)
    first.save()
    path.write_bytes(b"two")
    again = LargeFiles(kept, "sha1", Limits(), Deadline(10)).look(b"big.bin", os.fsencode(path), facts, is_lfs=False)
    assert again.print != seen.print


def test_a_large_file_takes_no_room(repo: Playground, tracker: GitTracker) -> None:
    tracker.snapshot(str(repo.top))
    used = tracker.disk_use()
    repo.write("huge.bin", os.urandom(8_000_000))
    tracker.snapshot(str(repo.top))
    assert tracker.disk_use() - used < 200_000


def test_repositories_beyond_the_limit_are_counted(repo: Playground, tmp_path: Path) -> None:
    for number in range(3):
        inner = repo.at(f"inner{number}")
        inner.top.mkdir()
        inner.git("init", "-q")
        inner.write("x.txt")
    tracker = limited(tmp_path, Limits(nested=2))
    before, after = task(repo, tracker)
    assert "nested_left_out:1" in before.flags
    found = tracker.changes(before, after)
    assert found.partial
    assert any("1 repositories" in warning for warning in found.warnings)


def test_a_call_that_says_too_much_is_stopped(repo: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_process, "OUTPUT_BYTES", 10)
    with pytest.raises(GitTimedOut):
        GitCall(("log", "-p"), folder=str(repo.top), deadline=Deadline(20)).output()


def test_a_stopped_call_leaves_no_process(repo: Playground) -> None:
    os.mkfifo(repo.top / "pipe")
    call = GitCall(("hash-object", "--no-filters", "pipe"), folder=str(repo.top), deadline=Deadline(0.3))
    with pytest.raises(GitTimedOut):
        call.output()
    assert call._process.poll() is not None


def test_forgetting_all_and_pruning_gives_everything_back(repo: Playground, tracker: GitTracker) -> None:
    before, after = task(repo, tracker)
    assert tracker.disk_use() > 0
    tracker.forget(before)
    tracker.forget(after)
    freed = tracker.prune(0, keep=())
    assert freed > 0
    assert tracker.disk_use() == 0


def test_pruning_keeps_what_is_named_and_what_is_young(repo: Playground, tracker: GitTracker) -> None:
    before, after = task(repo, tracker)
    later = SystemClock().now_ms() + 60_000
    tracker.prune(later, keep={before.id, after.id})
    assert [change.path for change in tracker.changes(before, after).own] == ["b.txt"]
    tracker.prune(0, keep=())
    assert [change.path for change in tracker.changes(before, after).own] == ["b.txt"]
    tracker.prune(later, keep=())
    found = tracker.changes(before, after)
    assert found.partial


def test_objects_only_forgotten_snapshots_needed_are_given_back(repo: Playground, tracker: GitTracker) -> None:
    first = tracker.snapshot(str(repo.top))
    repo.write("noise.txt", os.urandom(200_000))
    second = tracker.snapshot(str(repo.top))
    repo.remove("noise.txt")
    repo.append("a.txt")
    third = tracker.snapshot(str(repo.top))
    used = tracker.disk_use()
    tracker.prune(SystemClock().now_ms() + 60_000, keep={first.id, third.id})
    assert used - tracker.disk_use() >= 200_000
    assert [change.path for change in tracker.changes(first, third).own] == ["a.txt"]
    assert b"more" in b"".join(tracker.patch(first, third))
    assert tracker.changes(second, third).partial
    fourth = tracker.snapshot(str(repo.top))
    assert fourth.tree == third.tree


def test_a_damaged_private_index_is_begun_anew(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    before = tracker.snapshot(str(repo.top))
    for index in (tmp_path / "state").glob("git-*/index"):
        index.write_bytes(b"not an index")
    repo.append("a.txt")
    after = tracker.snapshot(str(repo.top), like=before)
    assert "begun_anew" in after.flags
    assert [change.path for change in tracker.changes(before, after).own] == ["a.txt"]


def test_a_lost_state_is_told_in_part(repo: Playground, tracker: GitTracker, tmp_path: Path) -> None:
    repo.append("a.txt", "dirty\n")
    before = tracker.snapshot(str(repo.top))
    subprocess.run(["rm", "-rf", str(tmp_path / "state")], check=True)
    repo.append("b.txt")
    found = tracker.changes(before, tracker.snapshot(str(repo.top), like=before))
    assert found.partial
    assert found.warnings


def test_a_repository_that_is_gone_is_told_in_part(repo: Playground, tracker: GitTracker) -> None:
    before = tracker.snapshot(str(repo.top))
    repo.remove(".git")
    after = tracker.snapshot(str(repo.top), like=before)
    assert "degraded" in after.flags
    found = tracker.changes(before, after)
    assert found.partial
    assert found.warnings


def test_a_change_while_two_tasks_are_open_names_the_other(repo: Playground, tracker: GitTracker) -> None:
    ours = tracker.snapshot(str(repo.top))
    repo.append("a.txt")
    theirs = tracker.snapshot(str(repo.top))
    repo.append("b.txt")
    their_end = tracker.snapshot(str(repo.top))
    repo.write("c.txt")
    our_end = tracker.snapshot(str(repo.top))
    other = OtherTask(task_id="task_2", started=theirs, ended=their_end)
    found = tracker.changes(ours, our_end, others=[other])
    assert [change.path for change in found.own] == ["a.txt", "b.txt", "c.txt"]
    assert [(overlap.path, overlap.tasks) for overlap in found.overlaps] == [("b.txt", ["task_2"])]
    mine = OtherTask(task_id="task_1", started=ours)
    back = tracker.changes(theirs, their_end, others=[mine])
    assert [(overlap.path, overlap.tasks) for overlap in back.overlaps] == [("b.txt", ["task_1"])]


def test_snapshots_survive_commits_and_garbage_collection_beside_them(repo: Playground, tmp_path: Path) -> None:
    tracker = limited(tmp_path, Limits())
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            new = tmp_path / "churn.py"  # put in place at once: half written, it is rightly told as unreadable
            new.write_text(f"{number}\n" * 50, encoding="utf-8")
            new.replace(repo.path("src/churn.py"))
            repo.git("commit", "-qam", f"churn {number}", check=False)
            if number % 5 == 0:
                repo.git("gc", "-q", "--prune=now", check=False)

    repo.write("src/churn.py")
    repo.commit()
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        snapshots = [tracker.snapshot(str(repo.top)) for _ in range(12)]
    finally:
        stop.set()
        thread.join()
    assert not [snapshot.flags for snapshot in snapshots if "degraded" in snapshot.flags]
    last = tracker.snapshot(str(repo.top))
    for before in snapshots:
        found = tracker.changes(before, last)
        assert {change.path for change in found.own} <= {"src/churn.py"}
        assert not found.partial, found.warnings


def test_only_folders_of_our_own_making_are_pruned(repo: Playground, tmp_path: Path) -> None:
    state = tmp_path / "state"
    theirs = [state / "git-tools", state / f"git-{'0' * 20}"]
    for folder in theirs:
        folder.mkdir(parents=True)
        (folder / "work.py").write_text("precious\n", encoding="utf-8")
    clock = SystemClock()
    GitTracker(state, clock=clock, ids=RandomIds(clock)).prune(clock.now_ms() + 60_000, ())
    assert [(folder / "work.py").read_text(encoding="utf-8") for folder in theirs] == ["precious\n"] * 2


def test_any_name_of_a_branch_and_any_committer_will_do(repo: Playground, tmp_path: Path) -> None:
    """What Python takes for the end of a line may stand in both, and neither need be UTF-8."""
    tracker = limited(tmp_path, Limits())
    for name in ("odd\u2028branch", "odd\x85branch", "odd\udcffbranch"):
        repo.git("checkout", "-qb", name)
    before = tracker.snapshot(str(repo.top))
    assert "degraded" not in before.flags
    repo.append("a.txt")
    repo.git("add", "-A")
    repo.git("-c", "user.email=a\x0cb\u2028\udcffc@example.com", "commit", "-qm", "work")
    repo.append("b.txt")
    after = tracker.snapshot(str(repo.top), like=before)
    notes = tracker._state.of(str(repo.top), f"{repo.top}/.git").notes(before.id)
    assert notes is not None
    assert notes.heads[before.branch or ""] == before.commit
    assert msgspec.json.decode(msgspec.json.encode(after), type=Snapshot) == after, "it can be kept"
    found = tracker.changes(before, after)
    assert [change.path for change in found.own] == ["a.txt", "b.txt"]
    assert found.commits == [repo.git("rev-parse", "HEAD")]
