"""What a walk over a plain directory skips: .gitignore files, each for its own directory and below, on top of a list of
folders that hold nobody's work. The semantics are git's, and tests compare them with `git check-ignore`; two things
differ: `?` and brackets match a character, where git matches a byte, and a bracket with a slash in it matches nothing.

What a pattern means is defined in `domain/journal/paths.py`; this module decides which line counts. A .gitignore
overrides the list (`!build/` brings build back), but nothing brings back git's own folders or Handrail's state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.domain.journal.paths import WILDCARDS, compile_glob
from handrail.outside.tracking.own_files import is_overlooked, is_own_text

IGNORE_FILE = ".gitignore"
MOST_BYTES = 1024 * 1024
"""How much of an ignore file is read. Real ones have a few hundred lines."""

DEFAULT_RULES = """\
.hg/
.svn/
.jj/
node_modules/
bower_components/
.venv/
venv/
__pycache__/
*.pyc
.tox/
.nox/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.hypothesis/
target/
dist/
build/
.next/
.nuxt/
.svelte-kit/
.gradle/
.terraform/
.cache/
.DS_Store
*.swp
"""
"""Skipped unless a .gitignore says otherwise."""

_RESULTS = ("target/", "dist/", "build/")
"""The folders in there that are made by tools, too, but may as well be made by hand."""
_ALWAYS = frozenset({".git"})
_PLAIN_SUFFIX = re.compile(r"\*(\.[^*?\[\\/.]+)")


class IgnoreRule(NamedTuple):
    """One line. Among the rules of one file, the last match decides."""

    place: int
    ignores: bool
    folders_only: bool


class IgnoreFile:
    """The rules of one .gitignore. Names and `*.ext`, the bulk of real files, are looked up; the rest are matched."""

    def __init__(self, text: str) -> None:
        self._names: dict[str, list[IgnoreRule]] = {}
        self._suffixes: dict[str, list[IgnoreRule]] = {}
        self._floating: list[tuple[IgnoreRule, re.Pattern[str]]] = []
        self._anchored: list[tuple[IgnoreRule, re.Pattern[str]]] = []
        for place, (pattern, ignores, folders_only) in enumerate(_lines(text)):
            rule = IgnoreRule(place, ignores, folders_only)
            suffix = _PLAIN_SUFFIX.fullmatch(pattern)
            if "/" in pattern:
                self._anchored.append((rule, compile_glob(pattern.removeprefix("/"))))
            elif suffix is not None:
                self._suffixes.setdefault(suffix[1], []).append(rule)
            elif WILDCARDS.isdisjoint(pattern) and "\\" not in pattern:
                self._names.setdefault(pattern, []).append(rule)
            else:
                self._floating.append((rule, compile_glob(pattern)))
        self._floating.reverse()
        self._anchored.reverse()

    def says(self, path: str, name: str, is_folder: bool) -> bool | None:
        """True to ignore, False to un-ignore, None for no match. `path` is relative to the file's own directory."""
        best: IgnoreRule | None = None
        named = self._names.get(name)
        ending = self._suffixes.get(name[name.rfind(".") :]) if self._suffixes and "." in name else None
        if named or ending:
            for rule in (*(named or ()), *(ending or ())):
                if (is_folder or not rule.folders_only) and (best is None or rule.place > best.place):
                    best = rule
        for rules, text in ((self._floating, name), (self._anchored, path)):
            for rule, pattern in rules:
                if best is not None and rule.place < best.place:
                    break
                if (is_folder or not rule.folders_only) and pattern.fullmatch(text):
                    best = rule
                    break
        return None if best is None else best.ignores


class IgnoreRules:
    """What applies in one directory: its own ignore file, then those above it, then the defaults."""

    def __init__(self, files: tuple[tuple[int, IgnoreFile], ...]) -> None:
        self._files = files

    def below(self, folder: str, text: str | None) -> IgnoreRules:
        """What applies in a folder whose own ignore file reads `text`."""
        if text is None:
            return self
        return IgnoreRules(((len(folder) + 1 if folder else 0, IgnoreFile(text)), *self._files))

    def ignores(self, path: str, name: str, is_folder: bool) -> bool:
        """Whether an entry of this directory is skipped. `path` is relative to the root."""
        if name in _ALWAYS:
            return True
        if path.startswith(".handrail/"):
            if is_own_text(path):
                return True
            if not is_folder and is_overlooked(path):
                return False
        for start, file in self._files:
            said = file.says(path[start:], name, is_folder)
            if said is not None:
                return said
        return False


def default_rules() -> IgnoreRules:
    """What applies at the root before any .gitignore is read."""
    return IgnoreRules(((0, IgnoreFile(DEFAULT_RULES)),))


def tool_folders() -> IgnoreRules:
    """Folders and files that are nobody's work whoever made them: caches, environments, fetched packages."""
    lines = [line for line in DEFAULT_RULES.splitlines() if line not in _RESULTS]
    return IgnoreRules(((0, IgnoreFile("\n".join(lines))),))


def is_ignored(path: str, texts: dict[str, str]) -> bool:
    """Whether a walk with these ignore files, by directory, skips the path or a directory above it."""
    rules = default_rules().below("", texts.get(""))
    segments = path.split("/")
    for depth in range(1, len(segments) + 1):
        here = "/".join(segments[:depth])
        is_folder = depth < len(segments)
        if rules.ignores(here, segments[depth - 1], is_folder):
            return True
        rules = rules.below(here, texts.get(here) if is_folder else None)
    return False


def _lines(text: str) -> Iterator[tuple[str, bool, bool]]:
    """The patterns of a file: each without its markers, whether it ignores, and whether it means folders only."""
    for line in text.removeprefix("\ufeff").split("\n"):
        pattern = _without_trailing_spaces(line.removesuffix("\r"))
        if not pattern or pattern.startswith("#"):
            continue
        ignores = not pattern.startswith("!")
        pattern = pattern if ignores else pattern[1:]
        folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        if pattern:
            yield pattern, ignores, folders_only


def _without_trailing_spaces(line: str) -> str:
    """Removes trailing spaces, except one after a backslash."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(line) > len(stripped) else stripped
