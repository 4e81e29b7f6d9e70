"""What random histories begin with: a repository with branches that agree and disagree, made once and copied; and the
settings and attributes they choose from."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.outside.tracking.playground import GLOBAL_CONFIG, Playground

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "core.ignoreStat": ("true",),
    "core.ignoreCase": ("true",),
    "core.trustctime": ("false",),
    "core.checkStat": ("minimal",),
    "core.fileMode": ("false",),
    "core.symlinks": ("false",),
    "core.autocrlf": ("true", "input", "false"),
    "core.eol": ("lf", "crlf", "native"),
    "core.safecrlf": ("true", "warn", "false"),
    "core.bigFileThreshold": ("1",),
    "core.protectNTFS": ("true", "false"),
    "core.protectHFS": ("true", "false"),
    "core.precomposeUnicode": ("true",),
    "core.untrackedCache": ("true", "false", "keep"),
    "core.fsmonitor": ("true", "false"),
    "core.splitIndex": ("true",),
    "core.preloadIndex": ("false",),
    "core.commitGraph": ("false",),
    "core.quotePath": ("true", "false"),
    "core.abbrev": ("4", "40"),
    "core.logAllRefUpdates": ("false", "always"),
    "core.compression": ("0", "9"),
    "core.longpaths": ("true",),
    "index.version": ("2", "4"),
    "index.sparse": ("true",),
    "index.threads": ("1",),
    "feature.manyFiles": ("true",),
    "sparse.expectFilesOutsideOfPatterns": ("true",),
    "status.showUntrackedFiles": ("no", "all"),
    "status.renames": ("copies",),
    "status.relativePaths": ("false",),
    "diff.renames": ("false", "copies"),
    "diff.ignoreSubmodules": ("all",),
    "diff.algorithm": ("patience", "minimal"),
    "diff.noprefix": ("true",),
    "diff.external": ("/bin/false",),
    "diff.context": ("0",),
    "submodule.recurse": ("true",),
    "merge.conflictStyle": ("diff3",),
    "merge.renames": ("false",),
    "merge.ff": ("false",),
    "rebase.autoStash": ("true",),
    "color.ui": ("always",),
}
ATTRIBUTES = (
    "* text",
    "* text=auto",
    "*.txt text eol=crlf",
    "*.txt text eol=lf",
    "*.txt -text",
    "* ident",
    "*.py ident",
    "*.up filter=upper",
    "* -diff",
    "*.py diff=python",
    "*.txt merge=binary",
    "docs/* binary",
    "*.txt working-tree-encoding=UTF-8",
)
FILES: Mapping[str, bytes] = {
    "a.txt": b"one\ntwo\nthree\n",
    "b.txt": b"bee\n",
    "win.txt": b"one\r\ntwo\r\n",
    "mixed.txt": b"one\r\ntwo\n",
    "id.py": b"key = '$Id$'\n",
    "src/app.py": b"".join(b"line %d\n" % n for n in range(12)),
    "src/lib.py": b"".join(b"def f%d(): return %d\n" % (n, n) for n in range(8)),
    "src/up.up": b"WORDS\n",
    "docs/guide.md": b"# Guide\n\nwords\n",
    "docs/Notes.md": b"notes\n",
    ".gitignore": b"*.log\nbuild/\n",
}
UPPER = '[filter "upper"]\n\tclean = tr a-z A-Z\n\tsmudge = cat\n'


def written_config(settings: Mapping[str, str], *, with_filter: bool | None = None) -> str:
    """The settings as a file; with the rest of a user's file if `with_filter` says anything."""
    lines = [f"[{key.rpartition('.')[0]}]\n\t{key.rpartition('.')[2]} = {value}\n" for key, value in settings.items()]
    begun = "" if with_filter is None else GLOBAL_CONFIG + (UPPER if with_filter else "")
    return begun + "".join(lines)


@contextlib.contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """HOME is elsewhere for a while."""
    earlier = os.environ["HOME"]
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ["HOME"] = earlier


class Template:
    """The repository to copy, and the one to pull from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with at_home(folder):
            (folder / ".gitconfig").write_text(GLOBAL_CONFIG, encoding="utf-8")
            self.top = folder / "template"
            self._make()

    def _make(self) -> None:
        self.top.mkdir()
        repo = Playground(self.top)
        repo.git("init", "-q", "--template=")
        for name, content in FILES.items():
            repo.write(name, content)
        repo.link("link", "a.txt")
        repo.commit("first")
        repo.append("b.txt", "second line\n")
        repo.path("src/lib.py").chmod(0o755)
        self.first = repo.git("rev-parse", "HEAD")
        repo.commit("second")
        for branch, mine in (("side", "side"), ("other", "other")):
            repo.git("checkout", "-q", "-b", branch, "main")
            repo.write("docs/guide.md", f"# Guide\n\nwords of {mine}\n")
            repo.write(f"{mine}.txt", f"{mine}\n")
            repo.write("src/app.py", f"{mine}\n".encode() + FILES["src/app.py"])
            repo.write("id.py", f"key = '$Id$'\n{mine} = 1\n")
            repo.commit(f"{mine} one")
            repo.write("win.txt", f"one\r\n{mine}\r\n".encode())
            repo.remove("docs/Notes.md")
            repo.commit(f"{mine} two")
        repo.git("checkout", "-q", "main")
        self.remote = self.folder / "remote.git"
        repo.git("clone", "-q", "--bare", str(self.top), str(self.remote))
        news = Playground(self.folder / "news")
        repo.git("clone", "-q", str(self.remote), str(news.top))
        news.append("docs/Notes.md", "news\n")
        news.write("news/one.txt", "one\n")
        news.commit("news")
        news.git("push", "-q", "origin", "main")
        repo.git("remote", "add", "origin", str(self.remote))
        repo.git("config", "branch.main.remote", "origin")
        repo.git("config", "branch.main.merge", "refs/heads/main")
        repo.git("gc", "-q")
        self.inner = self.folder / "inner"
        self.inner.mkdir()
        inner = Playground(self.inner)
        inner.git("init", "-q", "--template=")
        inner.write("code.py", "code\n")
        inner.write("sub/more.py", "more\n")
        inner.commit("inner")

    def copy_to(self, top: Path) -> None:
        shutil.copytree(self.top, top, symlinks=True)
