"""Which files ignore rules hid when a task of a random history began, by git's own word: the rules are copied to a
repository of their own, and git is asked there whenever it must be known."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from tests.outside.tracking.playground import Playground

_NAME = b".gitignore"


class RulesAtBeginning:
    """The ignore rules of a working copy as they are now, for later."""

    def __init__(self, top: Path, folder: Path) -> None:
        self._top = top
        self._copy = Playground(folder)
        folder.mkdir()
        self._copy.git("init", "-q", "--template=")
        self._files = self._rules(Playground(top))
        (folder / ".git" / "info").mkdir(exist_ok=True)
        self._elsewhere = folder.parent / f"{folder.name}-user"
        for place, text in zip((folder / ".git/info/exclude", self._elsewhere), self._outside(), strict=True):
            place.write_bytes(text)

    def _rules(self, repo: Playground) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        start = len(os.fsencode(self._top)) + 1
        for folder, folders, files in os.walk(os.fsencode(self._top)):
            folders[:] = [name for name in folders if name != b".git"]
            place = Path(os.fsdecode(folder), ".gitignore")
            if _NAME in files and not place.is_symlink():
                found[os.fsencode(place)[start:]] = place.read_bytes()
        for line in repo.git("ls-files", "-t", "-z", "--", ".gitignore", "*/.gitignore", check=False).split("\0"):
            if line.startswith("S ") and not os.path.lexists(repo.path(line[2:])):
                found[os.fsencode(line[2:])] = repo.git("show", f":{line[2:]}", check=False).encode()
        return found

    def _outside(self) -> tuple[bytes, bytes]:
        repo = Playground(self._top)
        named = repo.git("config", "--type=path", "core.excludesFile", check=False)
        users = Path(named) if named else Path(os.environ["HOME"], ".config/git/ignore")
        exclude = self._top / ".git/info/exclude"
        return tuple(file.read_bytes() if file.is_file() else b"" for file in (exclude, users))  # type: ignore[return-value]

    def are_the_same(self) -> bool:
        now = (self._rules(Playground(self._top)), self._outside())
        then = (self._copy.top / ".git/info/exclude").read_bytes(), self._elsewhere.read_bytes()
        return now == (self._files, then)

    def hid(self, paths: Collection[bytes]) -> set[bytes]:
        """The paths that they hide, tracked or not."""
        for place in self._copy.top.iterdir():
            if place.name != ".git":
                self._copy.remove(place.name)
        for path in (*paths, *self._files):
            self._copy.path(path).parent.mkdir(parents=True, exist_ok=True)
        for path, text in self._files.items():
            self._copy.path(path).write_bytes(text)
        asked = b"".join(b"./" + path + b"\0" for path in paths)
        setting = f"core.excludesFile={self._elsewhere}"
        answer = self._copy.git("-c", setting, "check-ignore", "--no-index", "-z", "--stdin", given=asked, check=False)
        return {os.fsencode(name).removeprefix(b"./") for name in answer.split("\0") if name}
