"""A working copy in which a random history happens, and what is known about it without asking the engine."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.outside.tracking.history_template import Template
from tests.outside.tracking.playground import File, Playground

NAMES = (
    *("a.txt", "b.txt", "win.txt", "mixed.txt", "id.py", "src/app.py", "src/lib.py", "src/up.up", "docs/guide.md"),
    *("docs/Notes.md", "link", "new.txt", "src/new.py", "deep/er/x.txt", "café.txt", "with space.txt", "git~1"),
    *("A.TXT", "src/APP.py", "docs/notes.md", ".handrail/handrail.db_x.py", ".handrail/x.gate", "odd\udcff.txt"),
)


class Tags(NamedTuple):
    """What was done, and whose the touched files are."""

    said: str
    otherwise: str = "own"
    of: Mapping[bytes, str] = MappingProxyType({})


class Work:
    """A working copy, and what is known about it without asking the engine."""

    def __init__(self, top: Path, choose: random.Random, template: Template) -> None:
        self.top = top
        self.repo = Playground(top)
        self.choose = choose
        self.template = template
        self.line_ends = self.filter = self.ident = self.was_sparse = self.plain_links = False
        self.hidden_then: set[bytes] = set()
        self.are_rules_new = self.are_logs_gone = False
        self.patterns = b""
        self.may_be_partial = self.moved_head_only = False
        self.number = 0

    def note_settings(self, settings: dict[str, str], *, with_filter: bool) -> None:
        self.line_ends |= settings.get("core.autocrlf", "false") != "false"
        self.filter |= with_filter
        self.plain_links |= settings.get("core.symlinks") == "false"

    def begin_task(self) -> None:
        self.may_be_partial = False
        self.patterns = self.sparse_patterns()

    def sparse_patterns(self) -> bytes:
        patterns = self.top / ".git" / "info" / "sparse-checkout"
        return patterns.read_bytes() if patterns.is_file() else b""

    def attributes(self, lines: list[str]) -> None:
        self.ident |= any("ident" in line for line in lines)
        self.line_ends |= any("text" in line or "eol" in line or "binary" in line for line in lines)
        self.repo.write(".gitattributes", "".join(f"{line}\n" for line in lines))

    def content(self, path: bytes, file: File | None) -> File | None:
        """A file as it counts: line ends and a filter may make no difference."""
        if file is None or file[0] == "link":
            return file
        kind, content = file
        content = re.sub(rb"\$Id: [0-9a-f]{40} \$", b"$Id$", content) if self.ident else content
        if self.line_ends:
            content = content.replace(b"\r\n", b"\n")
        return kind, content.upper() if self.filter and path.endswith(b".up") else content

    def may_be_told_unchanged(self, path: bytes) -> bool:
        if path in (b"vendor/inner", b"lib") or self.is_out_of_sight(path):
            return True
        return self.was_sparse and not os.path.lexists(self.top / os.fsdecode(path))

    def is_out_of_sight(self, path: bytes) -> bool:
        """Whether a file is ignored now: it may be told as gone, though it is there."""
        name = os.fsdecode(path)
        return not self.git("ls-files", "--", name) and bool(self.git("check-ignore", "--no-index", "--", f"./{name}"))

    def may_be_either(self, path: bytes) -> bool:
        """What came into sight may be told; repositories inside have rules of their own."""
        is_inside = path.startswith((b"vendor/inner/", b"lib/"))
        return (path in self.hidden_then or is_inside) and self.are_rules_new

    def is_committed(self, path: bytes, file: File | None) -> bool:
        """Whether a file is as HEAD has it."""
        name = os.fsdecode(path)
        if not self.git("ls-tree", "HEAD", "--", name):
            return file is None
        blob = self.git("hash-object", "--no-filters", "--stdin", given=file[1]) if file is not None else ""
        clean = self.git("hash-object", "--stdin", "--path", name, given=file[1]) if file is not None else ""
        return self.git("rev-parse", f"HEAD:{name}") in (blob, clean)

    def git(self, *arguments: str, given: bytes | None = None) -> str:
        return self.repo.git(*arguments, check=False, given=given)

    def name(self) -> str:
        return self.choose.choice(NAMES)

    def there(self, *, link: bool = False) -> str | None:
        found = [name for name in NAMES if self.repo.path(name).is_symlink() == link and self.repo.path(name).is_file()]
        return self.choose.choice(found) if found else None

    def fresh(self) -> bytes:
        self.number += 1
        return b"fresh %d\n" % (self.number + self.choose.randrange(1000) * 100)

    def clear(self, name: str) -> Path:
        """The place for a file, free of whatever is in the way."""
        path = self.repo.path(name)
        for folder in path.parents:
            if folder != self.top and (folder.is_symlink() or folder.is_file()):
                folder.unlink()
            if folder == self.top:
                break
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


Step = Callable[[Work], Tags | None]
