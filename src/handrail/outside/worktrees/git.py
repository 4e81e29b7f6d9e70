"""Git on the user's own repository: disarmed as everywhere, but what it writes is meant to last.

Objects and refs are synced to disk, reflogs are written as the user configured them, commits carry the user's name.
Every git holds the lock of the place as long as it lives: if our process is killed, its git may still be running, and
nobody must touch its work before it ends. Nothing of the repository is run: no hook, no filter, no merge driver;
commits are not signed.

Locks that a git of ours left behind when it was killed. If nobody removed them, each would block everybody's git for
good.

Before a git may take locks, a note names them; when it ends, the note is removed. So a note found while holding the
place's lock means that its writer died. A lock named there is removed if it is empty or holds what we were writing, and
is still the same after a while: any other belongs to somebody at work.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from handrail.outside.atomic_files import drop_file, write_whole
from handrail.outside.record_files import read_record
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import Deadline, GitCall, GitFailed
from handrail.outside.tracking.private_index import quoted_path
from handrail.regular_files import read_beginning


class LockNote(msgspec.Struct, frozen=True):
    """Locks that a git may be holding, and what it writes."""

    locks: list[str]
    value: str | None


def write_note(file: str, locks: list[str], value: str | None) -> None:
    names = [os.fsencode(lock).hex() for lock in locks]  # paths need not be UTF-8
    write_whole(Path(file), msgspec.json.encode(LockNote(names, value)))


def drop_left(file: str, wait: Callable[[], object]) -> None:
    """Deletes the locks that a note names, and the note. `wait` takes longer than any running git holds such a lock."""
    note = read_record(file, LockNote)
    if note is None:
        drop_file(file)
        return
    locks = _locks_in(note, os.path.dirname(file))  # noqa: PTH120 - names need not be UTF-8
    before = {lock: _facts(lock, note.value) for lock in locks}
    left = {lock: facts for lock, facts in before.items() if facts is not None}
    if left:
        wait()
        for lock, facts in left.items():
            if _facts(lock, note.value) == facts:
                drop_file(lock)
    drop_file(file)


def _locks_in(note: LockNote, git_dir: str) -> list[str]:
    """The locks that a note names. It may have come with the repository, so it names none outside of git's folder."""
    own = os.path.join(os.path.realpath(git_dir), "")  # noqa: PTH118 - as above
    try:
        named = [os.fsdecode(bytes.fromhex(name)) for name in note.locks]
        above = [os.path.join(os.path.realpath(os.path.dirname(lock)), "") for lock in named]  # noqa: PTH118, PTH120
    except ValueError:
        return []
    return [lock for lock, folder in zip(named, above, strict=True) if folder.startswith(own)]


def _facts(lock: str, value: str | None) -> tuple[int, int] | None:
    """What distinguishes a lock from a later one at the same path; None if there is none, or it is somebody else's."""
    try:
        facts = os.lstat(lock)
        content = read_beginning(lock, 100, links=False).strip()
    except OSError:
        return None
    if value is not None and content not in (b"", value.encode()):
        return None
    return facts.st_ino, facts.st_mtime_ns


NAME, EMAIL = "Handrail", "handrail@localhost"
MERGE_TREE = (2, 39)
"""The first git that can merge many pairs in one process without a working tree."""


class Git:
    """Git in one working tree of the repository."""

    def __init__(
        self,
        repository: GitRepository,
        deadline: Deadline,
        *,
        held: tuple[int, ...] = (),
        note: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.repository = repository
        self.deadline = deadline
        self.held = held
        self.note = note
        self.environment = dict(environment or {})

    def at(self, repository: GitRepository) -> Git:
        """Git in another working tree."""
        return Git(repository, self.deadline, held=self.held, note=self.note, environment=self.environment)

    def beside(self, objects: str, *others: str) -> Git:
        """Git that writes objects to a folder of ours, and also reads those of the repository and of other folders."""
        places = {
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(quoted_path, (self.repository.objects, *others))),
        }
        environment = {**self.environment, **places}
        return Git(self.repository, self.deadline, held=self.held, note=self.note, environment=environment)

    @property
    def objects(self) -> str:
        """Where objects are written."""
        return self.environment.get("GIT_OBJECT_DIRECTORY", self.repository.objects)

    def start(
        self, *arguments: str, given: bytes | None = None, environment: Mapping[str, str] | None = None
    ) -> GitCall:
        repository = self.repository
        return GitCall(
            (f"--git-dir={repository.git_dir}", f"--work-tree={repository.top}", *arguments),
            folder=repository.top if os.path.isdir(repository.top) else repository.git_dir,  # noqa: PTH112
            deadline=self.deadline,
            overrides=self.settings,
            environment={**self.environment, **(environment or {})},
            given=given,
            held=self.held,
        )

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        allowed: Sequence[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        return self.start(*arguments, given=given, environment=environment).output(allowed=allowed)

    def line(self, *arguments: str, allowed: Sequence[int] = (0,), given: bytes | None = None) -> str:
        return os.fsdecode(self.run(*arguments, allowed=allowed, given=given)).strip()

    def tells(self, *arguments: str) -> bool:
        """For commands that answer yes or no by their exit code."""
        call = self.start(*arguments)
        try:
            call.output(allowed=(0,))
        except GitFailed as failed:
            if failed.code == 1:
                return False
            raise
        return True

    @functools.cached_property
    def settings(self) -> dict[str, str]:
        """Settings besides those forced on every git; writing to the repository needs two of those changed."""
        if not self._is_lasting:
            return dict(self.repository.overrides)
        logged = self._configured.get("core.logallrefupdates", "true")
        lasting = {"core.fsync": "committed", "core.logAllRefUpdates": logged or "true"}
        return {**self.repository.overrides, **lasting}

    @property
    def _is_lasting(self) -> bool:
        return self.objects == self.repository.objects

    @functools.cached_property
    def _configured(self) -> dict[str, str]:
        """The user's and the repository's configuration, with the last value of each key."""
        repository = self.repository
        listed = GitCall(
            (f"--git-dir={repository.git_dir}", "config", "--list", "--show-scope", "-z"),
            folder=repository.git_dir,
            deadline=self.deadline,
            overrides=repository.overrides,
        ).output()
        words = listed.split(b"\0")
        found = {}
        for scope, setting in zip(words[0::2], words[1::2], strict=False):
            name, _, value = setting.partition(b"\n")
            if scope != b"command":
                found[os.fsdecode(name)] = os.fsdecode(value)
        return found

    def identity(self) -> dict[str, str]:
        """Environment variables for a committer: empty if the user's configuration has a name and an address. Temporary
        commits always get ours."""
        names = {}
        for role in ("author", "committer"):
            for part, fallback in (("name", NAME), ("email", EMAIL)):
                if not self._is_lasting or not (
                    self._configured.get(f"{role}.{part}") or self._configured.get(f"user.{part}")
                ):
                    names[f"GIT_{role.upper()}_{part.upper()}"] = fallback
        return names

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Creates a commit object that no ref points to yet."""
        words = [word for parent in parents for word in ("-p", parent)]
        made = self.run(
            "commit-tree",
            tree,
            *words,
            given=message.encode("utf-8", "replace") or b"\n",
            environment=self.identity(),
        )
        return made.decode().strip()

    @contextlib.contextmanager
    def locking(self, locks: Sequence[str], value: str | None = None) -> Iterator[None]:
        """Wraps a git that takes these locks: if it is killed, they are found and removed."""
        assert self.note is not None, "only what holds the place's lock writes refs"
        write_note(self.note, list(locks), value)
        try:
            yield
        except BaseException:
            self.settle_locks()
            raise
        drop_file(self.note)

    def settle_locks(self) -> None:
        """Removes locks that a killed git of ours left."""
        if self.note is not None:
            drop_left(self.note, lambda: GitCall(("version",), folder="/", deadline=Deadline(10)).output())

    def move_ref(self, ref: str, new: str, old: str | None, words: str) -> None:
        """Sets a ref, if it is still where it was; `None` means it must not exist yet."""
        locks = [f"{self.repository.common_dir}/{ref}.lock", f"{self.repository.git_dir}/HEAD.lock"]
        with self.locking(locks, new):
            self.run("update-ref", "-m", words, ref, new, old or "0" * len(new))

    def delete_ref(self, ref: str, old: str) -> None:
        common = self.repository.common_dir
        with self.locking([f"{common}/{ref}.lock", f"{common}/packed-refs.lock", f"{common}/packed-refs.new"]):
            self.run("update-ref", "-d", ref, old)

    def resolved(self, name: str) -> str | None:
        """The commit that a name stands for; a branch comes before a tag of the same name."""
        if not _is_askable(name):
            return None
        tip = self.branch_tip(name)
        if tip is not None or name.startswith("-"):
            return tip
        return self.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", allowed=(0, 1, 128)) or None

    def branch_tip(self, branch: str) -> str | None:
        """Where a branch is; None if there is none of exactly this name."""
        if not _is_askable(branch):
            return None
        ref = f"refs/heads/{branch}"
        return self.line("show-ref", "--verify", "--hash", "--", ref, allowed=(0, 1, 128)) or None

    def tree_of(self, commit: str) -> str:
        return self.line("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")

    def contains(self, commit: str, other: str) -> bool:
        """True if `other` is an ancestor of `commit`, or the same."""
        return self.tells("merge-base", "--is-ancestor", other, commit)


def _is_askable(name: str) -> bool:
    """Whether a name can be passed to a program at all."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


@functools.cache
def git_version() -> tuple[int, ...]:
    """The version of git as numbers; empty if unknown."""
    try:
        said = GitCall(("version",), folder=os.path.realpath("/"), deadline=Deadline(10)).output().decode()
    except (GitFailed, OSError):
        return ()
    found = re.search(r"(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else ()
