"""The areas that a task or a reservation declares, and whether they cover a path. Pure, and light enough for a client's
hook to load; `scope.py` gives the reasons.

How an area is read depends only on what it looks like; the first rule that fits applies:

* path       has `* ? [`, or a slash before its end: a .gitignore glob from the root, or a path and all below it;
             `**/x` and a glob without a slash match at any depth
* directory  ends with a slash: a directory of that name at any depth
* name       has a dot: a file or directory of exactly that name at any depth
* words      anything else: its words occur side by side in the name of a directory or of a file, not counting the
             file's last extension

A leading `!` takes back what earlier areas gave: the last area that matches decides. Blank areas are ignored. If no
area is declared, or all of them only take back, everything else is in scope.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

from handrail.domain.journal.path_words import PathWords, Spellings
from handrail.domain.journal.paths import WILDCARDS, compile_glob, path_bytes

Rule = Literal["undeclared", "everything", "path", "directory", "name", "words", "packages", "none"]

_EVERYTHING = frozenset({"", ".", "/", "*", "**", "*/", "**/", "**/*", "/*", "/**"})


class ChangedPath:
    """A changed path in the text form of `paths.py`, split once for all areas."""

    def __init__(self, path: str) -> None:
        self.path = _normal(path_bytes(path).decode("utf-8", "surrogateescape") if path.startswith('"') else path)
        self.segments = self.path.split("/")

    @cached_property
    def names(self) -> list[tuple[str, PathWords]]:
        """The names in the path that words are looked for in. `auth.test.ts` has `auth` and `test`, but not `ts`; the
        leading dot of a hidden file does not start an extension."""
        *folders, name = self.segments
        stem, *rest = name.lstrip(".").split(".")
        found = [(folder, PathWords(folder)) for folder in folders]
        found.append((name, PathWords(stem)))
        if len(rest) > 1:
            found.append((name, PathWords(".".join([stem, *rest[:-1]]))))
        return found


class Area:
    """One declared area, read once."""

    def __init__(self, declared: str) -> None:
        self.declared = declared
        given = declared.strip()
        self.takes_back = given.startswith("!")
        given = given.removeprefix("!").strip()
        self.text = _normal(given)
        self.rule: Rule
        self._glob: re.Pattern[str] | None = None
        self._words: list[list[Spellings]] = []
        inner = self.text.rstrip("/")
        self.floats = False
        """True for a glob without a slash, which matches at any depth."""
        if not given:
            self.rule = "none"
        elif self.text in _EVERYTHING:
            self.rule = "everything"
        elif not WILDCARDS.isdisjoint(self.text) or "/" in inner:
            self.rule = "path"
            self.floats = "/" not in inner
            pattern = ("**/" if self.floats else "") + inner.lstrip("/")
            self._glob = compile_glob(pattern, itself=not self.text.endswith("/"), below=True)
        elif self.text.endswith("/"):
            self.rule = "directory"
        elif "." in self.text:
            self.rule = "name"
        else:
            self.rule = "words"
            spelled = PathWords(self.text)
            self._words = [list(map(Spellings, words)) for words in (spelled.words, spelled.whole())]

    @property
    def names_file(self) -> bool:
        """Whether it most likely names a single file, with nothing below it: no wildcard, and an extension."""
        last = self.text.rpartition("/")[2]
        return self.rule in ("path", "name") and WILDCARDS.isdisjoint(self.text) and "." in last.lstrip(".")

    def covers(self, place: ChangedPath) -> bool:
        """Whether the area names this path or a directory above it."""
        match self.rule:
            case "everything":
                return True
            case "directory":
                return self.text.rstrip("/") in place.segments[:-1]
            case "name":
                return self.text in place.segments
            case "words":
                return self.name_in(place) is not None
            case "path":
                return self._is_above(place.path) or (
                    self._glob is not None and self._glob.fullmatch(place.path) is not None
                )
        return False

    def name_in(self, place: ChangedPath) -> str | None:
        """The name in the path that contains the area's words."""
        return next((name for name, words in place.names if any(map(words.has, self._words))), None)

    def _is_above(self, path: str) -> bool:
        """Compares literally, because `app/[id]` is a directory's name before it is a pattern."""
        plain = self.text.strip("/")
        return path.startswith(f"{plain}/") or (path == plain and not self.text.endswith("/"))

    def sample(self) -> str | None:
        """A path that the area covers, for comparing it with other areas; None if none can be constructed."""
        text = self.text.strip("/")
        if self.rule in ("words", "directory"):
            return f"{text}/_"
        segments = [segment for segment in text.split("/") if segment != "**"]
        plain = "/".join(segment.replace("*", "").replace("?", "_") or "_" for segment in segments)
        return next((path for path in (plain, f"{plain}/_") if self.covers(ChangedPath(path))), None)


def read_areas(areas: Iterable[str]) -> list[Area]:
    """The areas that are not blank, in order."""
    return [area for area in map(Area, areas) if area.rule != "none"]


def deciding(place: ChangedPath, areas: Sequence[Area]) -> Area | None:
    """The area that decides about a path: the last that covers it."""
    return next((area for area in reversed(areas) if area.covers(place)), None)


def are_around(path: str, areas: Sequence[Area]) -> bool:
    """Whether a path is within the areas."""
    found = deciding(ChangedPath(path), areas)
    return all(area.takes_back for area in areas) if found is None else not found.takes_back


def _normal(text: str) -> str:
    """Unicode composed (NFC), forward slashes, no leading `./`."""
    text = unicodedata.normalize("NFC", text).replace("\\", "/")
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    return text
