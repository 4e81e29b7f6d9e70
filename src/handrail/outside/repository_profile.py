"""Examines a repository for its profile: the names of its files and the texts of a few. What they mean is up to
`domain/pipeline/profile.py`.

Names come from git, disarmed, if there is a usable repository, otherwise from a bounded walk. A profile helps and is
never a reason to fail: what cannot be read counts as absent. Profiles are kept in memory by content: the checksum of
git's index, the names at the root and the manifests' texts; while these are the same, nothing is listed again. Nothing
is kept on disk: a process pays once, and a kept file could only be wrong.

Our own files in a repository are not part of its profile: however many runs there have been, examining it costs the
same.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from handrail.domain.pipeline.profile import Profile, profile_of, wanted
from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.late import late_module
from handrail.regular_files import FileRefused, open_regular, read_beginning, take

if TYPE_CHECKING:
    from handrail.outside.tracking import directory, discovery, git_process, ignore_rules
else:
    directory = late_module("handrail.outside.tracking.directory")
    discovery = late_module("handrail.outside.tracking.discovery")
    git_process = late_module("handrail.outside.tracking.git_process")
    ignore_rules = late_module("handrail.outside.tracking.ignore_rules")

SECONDS = 5.0
"""The time for everything asked of git."""
NAMES = 200_000
"""The most file names counted. Shares do not change beyond that."""
WALKED = 20_000
"""The most entries a walk examines if there is no git."""
MANIFEST_BYTES = 256 * 1024
INDEX_BYTES = 64 * 1024 * 1024
"""The largest index without a checksum that is hashed; for a larger one, the files are listed again each time."""
CHECKSUM_BYTES = 20
"""The shorter of git's two checksums. It is at the end of the index and covers everything before it."""
OUR_FOLDERS = (".specs", ".handrail")
"""At the root: documents of runs, and settings. They say nothing about the code, and grow with every run."""
KEPT = 16
"""How many repositories' profiles are kept."""


class _Known(NamedTuple):
    """A profile and what it was made from."""

    index_file: str | None
    """The path of git's index; None if there is no git."""
    manifests: tuple[str, ...]
    content: str
    profile: Profile


class RepositoryProfiles:
    """Profiles of repositories by their roots. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._keeping = threading.Lock()

    def of(self, root: str) -> Profile:
        """The profile of the repository or folder at `root`; an empty one if there is nothing to tell."""
        top = os.path.realpath(root)
        known = self._known.get(top)
        if known is not None and known.index_file is not None:
            content = _content(top, known.index_file, _texts(top, known.manifests))
            if content is not None and content == known.content:
                return known.profile
        index, names = _list_files(top)
        manifests = tuple(wanted(names))
        texts = _texts(top, manifests)
        content = _content(top, index, texts) if index is not None else _digest([*names, "", *_pairs(texts)])
        if known is not None and content == known.content:
            return known.profile
        fresh = _Known(index, manifests, content or "", profile_of(names, texts))
        with self._keeping:
            self._known[top] = fresh
            self._known.move_to_end(top)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return fresh.profile


def _content(top: str, index: str, texts: dict[str, str]) -> str | None:
    """A hash of everything a profile is made from, without listing it; None if that cannot be computed."""
    try:
        at_root = sorted(os.listdir(top))  # noqa: PTH208
        state = _index_state(index)
    except OSError:
        return None
    return _digest([state, *at_root, "", *_pairs(texts)]) if state is not None else None


def _index_state(index: str) -> str | None:
    """What changes with every change of git's index: its length and the checksum at its end, so that a long one costs
    no more than a short one. Git can be told to write zeros there (`index.skipHash`); then the whole index is hashed,
    or None returned if it is too long for that."""
    try:
        descriptor = open_regular(index)
    except FileNotFoundError:
        return ""  # nothing was added yet
    except FileRefused:
        return None
    try:
        found = os.fstat(descriptor)
        end = os.pread(descriptor, CHECKSUM_BYTES, max(0, found.st_size - CHECKSUM_BYTES))
        if any(end):
            return f"{found.st_size} {end.hex()}"
        raw = take(descriptor, INDEX_BYTES + 1)
        return hashlib.blake2b(raw).hexdigest() if len(raw) <= INDEX_BYTES else None
    finally:
        os.close(descriptor)


def _pairs(texts: dict[str, str]) -> Iterable[str]:
    return (part for pair in sorted(texts.items()) for part in pair)


def _digest(parts: Iterable[str]) -> str:
    hashed = hashlib.blake2b(digest_size=20)
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        hashed.update(f"{len(raw)}:".encode() + raw)
    return hashed.hexdigest()


def _list_files(top: str) -> tuple[str | None, list[str]]:
    """Git's index and the names of all visible files, relative to the root; no index if there is no usable git."""
    deadline = git_process.Deadline(SECONDS)
    try:
        repository = discovery.discover(top, deadline)
        if repository is None:
            return None, _walk_files(top)
        here = f"{os.path.relpath(top, repository.top)}/" if top != repository.top else ""
        listed = repository.run(*_question(here), deadline=deadline, environment={"GIT_LITERAL_PATHSPECS": "0"})
    except (git_process.GitFailed, OSError):
        return None, _walk_files(top)
    found = listed.split(b"\0")[:-1]
    start = len(os.fsencode(here))
    return f"{repository.git_dir}/index", [os.fsdecode(name[start:]) for name in found[:NAMES]]


def _question(here: str) -> list[str]:
    """The arguments that ask git for the names below a folder of a repository. What is ours is excluded twice: as a
    path, and as ignored, so that git does not walk through it for files that were never added. Each path is marked
    literal individually: if all paths had to be literal, none could be excluded."""
    plain = re.sub(r"([\\*?\[])", r"\\\1", here)
    return [
        *("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"),
        *(f"--exclude=/{plain}{name}/" for name in OUR_FOLDERS),
        *("--", f":(literal){here or '.'}"),
        *(f":(exclude,literal){here}{name}" for name in OUR_FOLDERS),
    ]


def _walk_files(top: str) -> list[str]:
    """The names of the files below a folder that is not a repository, level by level, without ignored ones."""
    try:
        directory.check_place(top)
    except PlaceUnusable:
        return []
    found: list[str] = []
    looked = 0
    waiting = [("", ignore_rules.default_rules())]
    for folder, above in waiting:
        try:
            entries = sorted(os.scandir(f"{top}/{folder}"), key=lambda entry: entry.name)
        except OSError:
            continue
        prefix = f"{folder}/" if folder else ""
        rules = above.below(folder, _text(top, f"{prefix}{ignore_rules.IGNORE_FILE}"))
        for entry in entries:
            if not folder and entry.name in OUR_FOLDERS:
                continue
            looked += 1
            if looked > WALKED:
                return found
            path = prefix + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if rules.ignores(path, entry.name, is_folder):
                continue
            if is_folder:
                waiting.append((path, rules))
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
    return found


def _texts(top: str, names: Iterable[str]) -> dict[str, str]:
    return {name: text for name in names if (text := _text(top, name)) is not None}


def _text(top: str, name: str) -> str | None:
    """A file's text, up to a limit; None for anything but a regular file, including links."""
    try:
        return read_beginning(f"{top}/{name}", MANIFEST_BYTES, within=top, links=False).decode("utf-8", "replace")
    except OSError:
        return None
