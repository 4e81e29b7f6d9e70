"""What happened to HEAD between two snapshots: which commits were made here, and what came in from elsewhere.

HEAD's reflog says how it moved, step by step: commits, merges, pulls, switches, resets, rebases. A commit is the task's
own if it was made here in the meantime, was known to no ref before, and does not replay an older one. A commit that no
step made, and that nothing brought from elsewhere, was made by plumbing, and counts as well. Of a merge, the task's own
part is what git would not have done by itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from handrail.domain.journal.entry import Cause
from handrail.kernel.limits import RECORD_FILE_BYTES
from handrail.outside.tracking.arrivals import arrivals
from handrail.outside.tracking.difference import PLAIN, TREES, Entries, TreeEntry, differing, parse_facts
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import PrivateIndex, names
from handrail.outside.tracking.snapshot import log_line_print
from handrail.outside.tracking.state import Notes
from handrail.regular_files import read_regular

COMMITS = 20_000
"""The most new commits to look at; a larger pull is reported as a whole."""
REPLAYS = 500
"""The most commits on either side to search for replays."""
MOVES = 100
"""How many of HEAD's latest moves have their paths examined."""

Kind = Literal["commit", "pick", "merge", "pull", "switch", "reset", "rebase", "unknown"]
Found = TreeEntry | Literal["as found"] | None
_ENDS = re.compile(rb"\((start|finish|abort)\)|^rebase finished|^rebase: (checkout|fast)")
_BY_FIRST_WORD: dict[bytes, Kind] = {
    b"am": "commit",
    b"branch": "switch",
    b"checkout": "switch",
    b"cherry-pick": "commit",
    b"clone": "switch",
    b"commit": "commit",
    b"initial": "commit",
    b"merge": "merge",
    b"reset": "reset",
    b"revert": "commit",
}


class HeadMove(NamedTuple):
    """One move of HEAD."""

    old: str
    new: str
    kind: Kind


class NewCommit(NamedTuple):
    """A commit that no ref knew before."""

    oid: str
    parents: list[str]


class History(NamedTuple):
    """What HEAD's moves tell about paths."""

    commits: list[str]
    """The task's own commits that are still part of the history, oldest first."""
    own: dict[bytes, Found]
    """Paths touched by the task's own commits, each as it was before the first of them."""
    merged: Entries
    """Paths brought in by a merge, as they are on the other side."""
    causes: dict[bytes, Cause]
    fallback: Cause
    warnings: list[str]


NO_HISTORY = History([], {}, {}, {}, "unknown", [])


class Ends(NamedTuple):
    """Both ends of the period in question."""

    old: str | None
    new: str | None
    branch: str | None
    before: Notes
    after: Notes


def look_back(private: PrivateIndex, ends: Ends) -> History:
    """The history between two ends. Empty if HEAD did not move."""
    if ends.new is None or ends.old == ends.new:
        return NO_HISTORY
    return _Looking(private, ends).look()


class _Looking:
    """One look at history."""

    def __init__(self, private: PrivateIndex, ends: Ends) -> None:
        self._private = private
        self._repository = private.repository
        self._ends = ends
        self._warnings: list[str] = []
        self._known = sorted({*ends.before.refs, *([ends.old] if ends.old else [])})
        self._pulls: list[list[str]] = []
        """The other sides of merges by a pull."""

    def look(self) -> History:
        steps = read_steps(self._repository.git_dir, self._ends.before, self._ends.after)
        new = self._new_commits([self._ends.new or ""])
        self._pulls = [new.get(step.new, _NOBODY).parents[1:] for step in steps or [] if step.kind == "pull"]
        made = self._own_steps(steps, new)
        by_hand, unmerged = self._resolved(new)
        own = self._own_paths([step for step in made if step.new not in by_hand], new)
        own = unmerged | own | {path: found for path, found in unmerged.items() if found == "as found"}
        fallback = self._fallback(steps)
        causes = self._causes(steps or [], new)
        merged = self._paths_merged_in(steps or [], new, {step.new for step in made})
        kept = [step.new for step in made if step.new in new]
        return History(kept, own, merged, causes, fallback, self._warnings)

    def _git(self, *arguments: str, given: bytes | None = None) -> bytes:
        return self._private.git(*arguments, given=given)

    def _new_commits(self, tips: Sequence[str]) -> dict[str, NewCommit]:
        """Commits in the history of some that no ref knew before, oldest first."""
        given = "".join(f"{oid}\n" for oid in tips) + "".join(f"^{oid}\n" for oid in self._known)
        arguments = ("rev-list", "--ignore-missing", "--parents", f"--max-count={COMMITS}")
        try:
            output = self._git(*arguments, "--stdin", given=given.encode())
        except GitFailed:
            self._warnings.append("the history since the task began cannot be read; its commits are not told apart")
            return {}
        lines = [line.split() for line in output.decode().split("\n")[:-1]]
        return {oid: NewCommit(oid, parents) for oid, *parents in reversed(lines)}

    def _own_steps(self, steps: Sequence[HeadMove] | None, new: dict[str, NewCommit]) -> list[HeadMove]:
        """The steps that created the task's commits, oldest first."""
        if steps is None:
            self._warnings.append("HEAD has no log here; commits are told apart by where they came from")
        candidates = [step for step in steps or [] if step.kind in ("commit", "pick") or _adds_one(step, new)]
        here = self._made_here({step.new for step in candidates}, new)
        silent = [_step_to(new[oid]) for oid in new if oid in here and len(new[oid].parents) < 2]
        is_replaying = silent or any(step.kind == "pick" for step in candidates)
        replays = self._replays(new) if is_replaying else set()
        made = [step for step in (*candidates, *silent) if step.new in new and step.new not in replays]
        place = {oid: number for number, oid in enumerate(new)}
        made = sorted(dict.fromkeys(made), key=lambda step: place[step.new])
        return [*self._reworked(made, candidates, new), *made]

    def _reworked(
        self, made: Sequence[HeadMove], candidates: Sequence[HeadMove], new: dict[str, NewCommit]
    ) -> list[HeadMove]:
        """The steps to commits of this task that were amended since: what they contained counts as well."""
        amended = {step.old for step in made if step.old not in new.get(step.new, _NOBODY).parents}
        earlier = [step for step in candidates if step.new in amended and step.new not in new]
        unseen = sorted(amended - {step.new for step in earlier} - new.keys() - {"", self._ends.old or ""})
        if not unseen:
            return earlier
        lost = self._new_commits(unseen)
        here = self._made_here({step.new for step in candidates}, lost)
        return [_step_to(lost[oid]) for oid in lost if oid in here and len(lost[oid].parents) < 2] + earlier

    def _made_here(self, known: Collection[str], new: dict[str, NewCommit]) -> set[str]:
        """New commits that no step made and that came from nowhere else: HEAD was moved to them afterwards."""
        silent = {oid for oid in new if oid not in known}
        return silent - self._from_elsewhere if silent else silent

    @functools.cached_property
    def _from_elsewhere(self) -> set[str]:
        """Commits that a fetch, a pull or another worktree brought."""
        found = arrivals(self._private, self._ends.before.began_ns // 1_000_000_000)
        ranges = found.ranges + [(oid, "") for sides in self._pulls for oid in sides]
        elsewhere = set(found.commits)
        for newest, known in ranges:
            given = f"{newest}\n" + "".join(f"^{oid}\n" for oid in (*self._known, *([known] if known else ())))
            with contextlib.suppress(GitFailed):  # it never arrived, or is gone
                output = self._git("rev-list", "--ignore-missing", "--stdin", given=given.encode())
                elsewhere |= set(output.decode().split())
        return elsewhere

    def _resolved(self, new: dict[str, NewCommit]) -> tuple[set[str], dict[bytes, Found]]:
        """The merges made here, and the paths that are not as git alone would have merged them: those in conflict, and
        those that were changed on the way."""
        merges: set[str] = set()
        found: dict[bytes, Found] = {}
        here = self._made_here((), {oid: commit for oid, commit in new.items() if len(commit.parents) == 2})
        for merge in [oid for oid in new if oid in here][-MOVES:]:
            parents = new[merge].parents
            arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
            try:
                said = self._private.git(*arguments, *parents, allowed=(0, 1)).split(b"\0")
                pairs = differing(self._private, said[0].strip().decode(), merge)
            except GitTimedOut:
                raise
            except GitFailed:  # an older git, or a history without a common base
                continue
            merges.add(merge)
            conflicts = {path for path in said[1:] if path}
            found |= {path: pair[0] for path, pair in pairs.items() if path not in conflicts}
            found |= dict.fromkeys(conflicts, "as found")
        return merges, found

    def _replays(self, new: dict[str, NewCommit]) -> set[str]:
        """New commits that repeat the patch of an older one, as a rebase leaves them behind."""
        if len(new) > REPLAYS:
            return set()
        found: set[str] = set()
        old_branch = self._ends.before.heads.get(self._ends.branch or "")
        for left in {self._ends.old, old_branch} - {None}:
            both = f"{left}...{self._ends.new}"
            try:
                lost = self._git("rev-list", "--count", "--left-only", both)
                if not 0 < int(lost) <= REPLAYS:
                    continue
                kept = self._git("rev-list", "--cherry-pick", "--right-only", both).decode().split()
            except GitFailed:
                continue
            found |= new.keys() - set(kept)
        return found

    def _own_paths(self, made: Sequence[HeadMove], new: dict[str, NewCommit]) -> dict[bytes, Found]:
        lines = []
        for step in made:
            commit = new.get(step.new, _NOBODY)
            is_plain = len(commit.parents) < 2 and step.old.strip("0")
            lines.append(f"{step.new} {step.old}" if is_plain else step.new)
        own: dict[bytes, Found] = {}
        if not lines:
            return own
        arguments = (*(word for word in TREES if word != "--no-commit-id"), "--raw", "--no-renames", "--root", "--cc")
        try:
            output = self._git(*arguments, "--stdin", given="\n".join(lines).encode() + b"\n")
        except GitFailed:
            self._warnings.append("the task's commits cannot be read; what they changed is not told apart")
            return own
        words = names(output)
        position = 0
        while position < len(words):
            word = words[position]
            if not word.startswith(b":"):
                position += 1
                continue
            own.setdefault(words[position + 1], "as found" if word.startswith(b"::") else parse_facts(word)[0])
            position += 2
        return own

    def _causes(self, steps: Sequence[HeadMove], new: dict[str, NewCommit]) -> dict[bytes, Cause]:
        """Which move brought each path; the last one counts."""
        moves = [step for step in steps if step.kind not in ("commit", "pick") or _is_merge(step, new)]
        causes: dict[bytes, Cause] = {}
        for step in moves[-MOVES:]:
            if step.old.strip("0"):
                try:
                    paths = names(self._git(*PLAIN, "--name-only", step.old, step.new))
                except GitFailed:
                    continue
                causes |= dict.fromkeys(paths, _cause(step))
        return causes

    def _paths_merged_in(self, steps: Sequence[HeadMove], new: dict[str, NewCommit], own: Iterable[str]) -> Entries:
        """Paths that the other side of a merge had changed, as they are there."""
        found: Entries = {}
        made = set(own)
        for step in steps[-MOVES:]:
            parents = new.get(step.new, _NOBODY).parents
            if len(parents) != 2 or parents[1] in made:
                continue
            try:
                base = self._git("merge-base", *parents).decode().split()
                pairs = differing(self._private, base[0], parents[1]) if base else {}
            except GitFailed:
                continue
            found |= {path: pair[1] for path, pair in pairs.items()}
        return found

    def _fallback(self, steps: Sequence[HeadMove] | None) -> Cause:
        """The cause of a change that no single move explains."""
        moves = [step for step in steps or [] if step.kind != "commit" and step.old != step.new]
        if moves:
            return _cause(moves[-1])
        if self._ends.old is None:
            return "unknown"
        if self._ends.branch is not None and self._ends.branch not in self._ends.before.heads:
            return "switch"
        try:
            self._git("merge-base", "--is-ancestor", self._ends.old, self._ends.new or "")
        except GitFailed:
            return "switch" if self._ends.branch != self._ends.before.branch else "reset"
        return "pull"


_NOBODY = NewCommit("", [])


def _adds_one(step: HeadMove, new: dict[str, NewCommit]) -> bool:
    """A move of unknown kind that put one new commit on top."""
    return step.kind == "unknown" and new.get(step.new, _NOBODY).parents[:1] == [step.old]


def _step_to(commit: NewCommit) -> HeadMove:
    return HeadMove(commit.parents[0] if commit.parents else "", commit.oid, "commit")


def _is_merge(step: HeadMove, new: dict[str, NewCommit]) -> bool:
    return len(new.get(step.new, _NOBODY).parents) > 1


def _cause(step: HeadMove) -> Cause:
    if step.kind == "pick":
        return "rebase"
    return "merge" if step.kind == "commit" else step.kind


def read_steps(git_dir: str, before: Notes, after: Notes) -> list[HeadMove] | None:
    """HEAD's moves between two snapshots; None if there is no reflog of them."""
    try:
        content = read_regular(f"{git_dir}/logs/HEAD", RECORD_FILE_BYTES)
    except OSError:
        return None
    is_whole = log_line_print(content[: before.reflog_size]) == before.reflog_end
    end = after.reflog_size if is_whole and log_line_print(content[: after.reflog_size]) == after.reflog_end else None
    lines = content[before.reflog_size if is_whole else 0 : end].split(b"\n")
    steps = [found for found in map(_step, lines) if found is not None]
    if not is_whole:
        began = before.began_ns // 1_000_000_000
        steps = [step for step in steps if step[0] >= began]
    return [step for _, step in steps if step.old != step.new] or None


def _step(line: bytes) -> tuple[int, HeadMove] | None:
    facts, _, message = line.partition(b"\t")
    words = facts.split(b" ")
    if len(words) < 5 or not words[-2].isdigit():
        return None
    return int(words[-2]), HeadMove(os.fsdecode(words[0]), os.fsdecode(words[1]), _kind(message))


def _kind(message: bytes) -> Kind:
    """The kind of a move, from what git wrote about it: `pull --rebase (pick): …`, `commit (amend): …`, `checkout:
    moving from …`."""
    action = message.partition(b":")[0]
    first = action.partition(b" ")[0]
    if first == b"pull":
        return "pull" if _ENDS.search(action) or b"(" not in action else "pick"
    if first == b"rebase":
        return "rebase" if _ENDS.search(message) else "pick"
    return _BY_FIRST_WORD.get(first, "unknown")
