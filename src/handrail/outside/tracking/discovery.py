"""Finds the repository a folder belongs to, and what in its configuration must be disarmed before git may look at it.

A folder counts as having no repository if git is missing or refuses (another owner, a bare repository), if the tree
would be the file system's root or somebody's home, or if the repository claims a working tree other than the one it is
in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handrail.outside.tracking.git_process import Deadline, GitCall, GitFailed, git_program

PROGRAM_KEYS = re.compile(
    r"filter\..+\.(clean|smudge|process)|diff\..+\.(command|textconv)|merge\..+\.driver"
    r"|remote\..+\.(uploadpack|receivepack|vcs|proxy|promisor)|credential\..+\.helper|gpg\..+\.program",
    re.DOTALL,
)
"""Settings with a variable part in their names that start a program or fetch something. Those with fixed names are
always overridden."""
FIXED_PROGRAM_KEYS = re.compile(
    r"(alias|pager)\..+|core\.(fsmonitor|hookspath|sshcommand|gitproxy|pager|editor|askpass|alternaterefscommand)"
    r"|diff\.external|sequence\.editor|interactive\.difffilter|gpg\.program|credential\.helper|submodule\..+\.update",
    re.DOTALL,
)
THEIRS = (b"local", b"worktree")
"""The configuration scopes that come with the repository."""
TRUE = ("true", "yes", "on", "1")


class LineEnds(NamedTuple):
    """What is configured about line ends for all files."""

    autocrlf: str = ""
    eol: str = ""

    @property
    def converts(self) -> bool:
        return self.autocrlf == "input" or _is_true(self.autocrlf)


class GitRepository(NamedTuple):
    """A working tree with its repository. Paths are absolute and free of symbolic links."""

    top: str
    git_dir: str
    common_dir: str
    """The part that linked worktrees share."""
    algorithm: str = "sha1"
    is_sparse: bool = False
    is_shallow: bool = False
    is_partial: bool = False
    overrides: Mapping[str, str] = {}
    """Settings that disarm what the repository configures."""
    silenced: Sequence[str] = ()
    """The names of those settings, to tell the user."""
    excludes_file: str = ""
    """The user's file of ignore rules for all repositories."""
    attributes_file: str = ""
    """The same for attributes."""
    line_ends: LineEnds = LineEnds()
    has_plain_links: bool = False
    """Whether the user's git writes symbolic links as plain files."""
    filter_settings: Mapping[str, str] = {}
    """Every setting of every content filter, by whoever made it."""
    filters: frozenset[str] = frozenset()
    """Content filters that are not run: those of the repository, and git-lfs, which is imitated."""

    @property
    def objects(self) -> str:
        return f"{self.common_dir}/objects"

    def start(
        self,
        *arguments: str,
        deadline: Deadline,
        environment: Mapping[str, str] | None = None,
        given: bytes | None = None,
    ) -> GitCall:
        """Starts git in this repository."""
        return GitCall(
            (f"--git-dir={self.git_dir}", f"--work-tree={self.top}", *arguments),
            folder=self.top,
            deadline=deadline,
            overrides=self.overrides,
            environment=environment,
            given=given,
        )

    def run(
        self,
        *arguments: str,
        deadline: Deadline,
        environment: Mapping[str, str] | None = None,
        given: bytes | None = None,
        allowed: Sequence[int] = (0,),
    ) -> bytes:
        """Runs git in this repository and returns what it prints."""
        call = self.start(*arguments, deadline=deadline, environment=environment, given=given)
        return call.output(allowed=allowed)


def _is_true(value: str) -> bool:
    return value in TRUE or (value.lstrip("+-").isdecimal() and int(value) != 0)


def discover(folder: str, deadline: Deadline) -> GitRepository | None:
    """The repository whose working tree contains `folder`, if it can be used."""
    if git_program() is None:
        return None
    folder = os.path.realpath(folder)
    try:
        config = GitCall(("config", "--list", "--show-scope", "-z", "--includes"), folder=folder, deadline=deadline)
    except (GitFailed, OSError):
        return None
    try:
        facts = _facts(folder, deadline)
        settings = config.output()
    except (GitFailed, OSError):
        return None
    finally:
        config.stop()
    if facts is None or not _is_usable(facts.top, folder):
        return None
    return _disarmed(facts, settings)


def _facts(folder: str, deadline: Deadline) -> GitRepository | None:
    asked = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    extra = ("--show-object-format", "--is-shallow-repository")
    lines = _lines(folder, deadline, *asked, *extra)
    if len(lines) != len(asked) + len(extra):  # a name contains a newline: ask one question at a time
        lines = [b"\n".join(_lines(folder, deadline, question)) for question in (*asked, *extra)]
    top, git_dir, common_dir = (os.path.realpath(os.path.join(folder, os.fsdecode(line))) for line in lines[:3])  # noqa: PTH118
    return GitRepository(top, git_dir, common_dir, algorithm=lines[3].decode(), is_shallow=lines[4] == b"true")


def _lines(folder: str, deadline: Deadline, *questions: str) -> list[bytes]:
    return GitCall(("rev-parse", *questions), folder=folder, deadline=deadline).output().split(b"\n")[:-1]


def _is_usable(top: str, folder: str) -> bool:
    if top in (os.path.realpath("/"), os.path.realpath(os.path.expanduser("~"))):  # noqa: PTH111 - no Path: `~` may be unset
        return False
    while folder != top:  # core.worktree may name any folder: the tree must be the one with the nearest .git
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder or os.path.lexists(f"{folder}/.git"):
            return False
        folder = parent
    return os.path.lexists(f"{top}/.git")


def _disarmed(facts: GitRepository, settings: bytes) -> GitRepository:
    overrides: dict[str, str] = {}
    silenced, filters = set(), set()
    is_sparse = is_partial = has_plain_links = False
    users = f"{os.environ.get('XDG_CONFIG_HOME') or os.path.expanduser('~/.config')}/git"  # noqa: PTH111
    files = {"core.excludesfile": f"{users}/ignore", "core.attributesfile": f"{users}/attributes"}
    line_ends = LineEnds()
    filter_settings = {}
    words = settings.split(b"\0")
    for scope, setting in zip(words[0::2], words[1::2], strict=False):
        name, _, raw_value = setting.partition(b"\n")
        key, value = os.fsdecode(name), os.fsdecode(raw_value).lower()
        lowered = key.lower()
        if b"\n" not in setting:  # a name alone means yes
            value = TRUE[0]
        is_sparse = _is_true(value) if lowered == "core.sparsecheckout" else is_sparse
        has_plain_links = not _is_true(value) if lowered == "core.symlinks" else has_plain_links
        is_partial |= lowered == "extensions.partialclone" or (
            lowered.startswith("remote.") and lowered.endswith(".promisor")
        )
        if lowered in files:
            files[lowered] = os.path.expanduser(os.fsdecode(raw_value))  # noqa: PTH111
        elif lowered in ("core.autocrlf", "core.eol"):
            line_ends = line_ends._replace(**{lowered.partition(".")[2]: value})
        elif lowered.startswith("filter."):
            filter_settings[key] = os.fsdecode(raw_value)
        if lowered.startswith("filter.lfs."):
            filters.add("lfs")
        if scope not in THEIRS:
            continue
        if PROGRAM_KEYS.fullmatch(lowered):
            silenced.add(key)
            overrides[key] = "false" if lowered.startswith("merge.") else ""
            if lowered.startswith("filter."):
                filters.add(key.partition(".")[2].rpartition(".")[0])
        elif FIXED_PROGRAM_KEYS.fullmatch(lowered):
            silenced.add(key)
    for driver in filters:
        overrides |= {f"filter.{driver}.{part}": "" for part in ("clean", "smudge", "process")}
        overrides[f"filter.{driver}.required"] = "false"
    return facts._replace(
        is_sparse=is_sparse,
        is_partial=is_partial,
        overrides=overrides,
        silenced=sorted(silenced),
        excludes_file=files["core.excludesfile"],
        attributes_file=files["core.attributesfile"],
        line_ends=line_ends,
        has_plain_links=has_plain_links,
        filter_settings=filter_settings,
        filters=frozenset(filters),
    )
