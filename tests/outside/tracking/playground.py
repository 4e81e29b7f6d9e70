"""Real repositories to try things in, and an independent account of what is in them: every file in sight, byte by byte.

Nothing here uses the engine that is tested. Git is run as a user would run it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z"}
BASE_FILES = {
    "a.txt": "one\ntwo\nthree\n",
    "b.txt": "bee\n",
    "src/app.py": "".join(f"line {n}\n" for n in range(40)),
    "src/lib.py": "".join(f"def f{n}(): return {n}\n" for n in range(30)),
    "docs/guide.md": "# Guide\n\nwords\n",
    ".gitignore": "*.log\nbuild/\n",
}
GLOBAL_CONFIG = """\
[user]
\tname = Somebody
\temail = somebody@example.org
[init]
\tdefaultBranch = main
[advice]
\tdetachedHead = false
[protocol "file"]
\tallow = always
[commit]
\tgpgSign = false
"""

File = tuple[str, bytes]
"""How a file counts: what it is (plain, executable, link), and its content."""


class Playground:
    """A working tree and the hands in it."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def git(
        self,
        *arguments: str,
        at: Path | None = None,
        check: bool = True,
        given: bytes | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> str:
        """Runs git; `extra` is added to its environment."""
        around = {**environment(), **(extra or {})}
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.top, capture_output=True, check=False, input=given, env=around
        )
        assert not check or done.returncode == 0, (arguments, done.stdout, done.stderr)
        return os.fsdecode(done.stdout).strip()

    def path(self, name: str | bytes) -> Path:
        return self.top / os.fsdecode(name)

    def write(self, name: str | bytes, content: str | bytes = "something\n") -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def append(self, name: str | bytes, content: str = "more\n") -> None:
        with self.path(name).open("ab") as file:
            file.write(content.encode())

    def read(self, name: str | bytes) -> bytes:
        return self.path(name).read_bytes()

    def remove(self, name: str | bytes) -> None:
        path = self.path(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def link(self, name: str, target: str) -> None:
        self.path(name).symlink_to(target)

    def commit(self, message: str = "work", *, add: bool = True) -> str:
        if add:
            self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def at(self, name: str) -> Playground:
        return Playground(self.top / name)


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C"}


def write_global_config(extra: str = "") -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(GLOBAL_CONFIG + extra, encoding="utf-8")


def make_base(top: Path) -> Playground:
    """A small repository with two commits."""
    top.mkdir(parents=True)
    repo = Playground(top)
    repo.git("init", "-q")
    for name, content in BASE_FILES.items():
        repo.write(name, content)
    repo.commit("first")
    repo.append("b.txt", "second line\n")
    repo.commit("second")
    return repo


def in_sight(top: Path) -> dict[bytes, File]:
    """Every file that git shows, as it is on disk: tracked or untracked, not ignored, in repositories inside too."""
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=top,
        capture_output=True,
        check=True,
        env={**environment(), "GIT_OPTIONAL_LOCKS": "0"},
    )
    found: dict[bytes, File] = {}
    for name in {part.rstrip(b"/") for part in done.stdout.split(b"\0") if part}:
        path = top / os.fsdecode(name)
        if path.is_dir() and not path.is_symlink():
            if os.path.lexists(path / ".git"):
                found |= {name + b"/" + below: file for below, file in in_sight(path).items()}
        elif (file := file_at(path)) is not None and not beyond_link(top, path):
            found[name] = file
    return found


def beyond_link(top: Path, path: Path) -> bool:
    return any(folder.is_symlink() for folder in path.parents if folder.is_relative_to(top) and folder != top)


def file_at(path: Path) -> File | None:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    if not path.is_file():
        return None
    return "executable" if path.stat().st_mode & 0o100 else "plain", path.read_bytes()


def net_change(before: dict[bytes, File], after: dict[bytes, File]) -> dict[bytes, str]:
    """What changed between two accounts."""
    changed = {}
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            changed[name] = "added" if name not in before else "deleted" if name not in after else "modified"
    return changed


def contents_of(folder: Path) -> dict[str, str]:
    """Every file below a folder with a hash of its content and its mode: for `.git`, to see that nobody wrote it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        if path.is_symlink():
            found[str(path)] = f"link {path.readlink()}"
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            # git itself freshens the times of objects it meets again and of the shared part of a split index
            times = 0 if "objects" in path.parts or path.name.startswith("sharedindex") else facts.st_mtime_ns
            found[str(path)] = f"{facts.st_mode:o} {times} {content}"
        else:
            found[str(path)] = f"{facts.st_mode:o}"
    return found
