"""Is a changed file within the areas that a task declared? Pure, and always answered with a reason.

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
from typing import Any, Literal

import msgspec

from handrail.domain.journal.globs import WILDCARDS, compile_glob
from handrail.domain.journal.package_files import is_package_file
from handrail.domain.journal.path_words import PathWords, Spellings
from handrail.domain.journal.paths import path_bytes

Rule = Literal["undeclared", "everything", "path", "directory", "name", "words", "packages", "none"]

_WARNING = re.compile(r"⚠️ \d+ file\(s\) modified outside declared scope \((.*)\)", re.DOTALL)
_EVERYTHING = frozenset({"", ".", "/", "*", "**", "*/", "**/", "**/*", "/*", "/**"})


class ScopeVerdict(msgspec.Struct, frozen=True):
    """Whether one file is in scope, and why."""

    path: str
    in_scope: bool
    rule: Rule
    """How the area that decided was read."""
    area: str | None
    """The area that decided, as it was declared."""
    reason: str


class AreaOverlap(msgspec.Struct, frozen=True):
    """Two areas of two tasks that cover a common path."""

    area: str
    other: str
    path: str
    """A path in both scopes. It need not exist."""


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


def judge(path: str, areas: Sequence[Area], *, packages_changed: bool = False) -> ScopeVerdict:
    """Whether one changed file is in scope."""
    if not areas:
        return ScopeVerdict(path, True, "undeclared", None, "no areas are declared")
    place = ChangedPath(path)
    deciding = next((area for area in reversed(areas) if area.covers(place)), None)
    if deciding is not None and deciding.takes_back:
        return ScopeVerdict(path, False, deciding.rule, deciding.declared, f"{deciding.declared} takes it back")
    if deciding is not None:
        return ScopeVerdict(path, True, deciding.rule, deciding.declared, _why(deciding, place))
    if packages_changed and is_package_file(place.path):
        return ScopeVerdict(path, True, "packages", None, "lists packages, and packages were added or removed")
    if all(area.takes_back for area in areas):
        return ScopeVerdict(path, True, "undeclared", None, "areas only take back, and none takes back this")
    return ScopeVerdict(path, False, "none", None, _why_not(areas, place))


def verification(files: Iterable[str], areas: Sequence[str], packages_changed: bool) -> dict[str, Any]:
    """What `complete_task` says about scope. Each file outside it is listed once, in the order given."""
    declared = read_areas(areas)
    verdicts = (judge(path, declared, packages_changed=packages_changed) for path in dict.fromkeys(files))
    unexpected = [verdict.path for verdict in verdicts if not verdict.in_scope]
    named = ", ".join(area.declared for area in declared)
    warning = f"⚠️ {len(unexpected)} file(s) modified outside declared scope ({named})"
    return {
        "scope_match": not unexpected,
        "unexpected_files": unexpected,
        "warnings": [warning] if unexpected else [],
    }


def areas_warned_of(warning: str) -> str | None:
    """The declared areas named in a warning from `verification`, for callers that reword it for people; None if the
    warning is about something else."""
    found = _WARNING.fullmatch(warning)
    return None if found is None else found[1]


def overlap(areas: Sequence[str], others: Sequence[str]) -> list[AreaOverlap]:
    """The areas of two tasks that overlap, found before a file is touched.

    What is found is certain: `path` lies in both. What is not found may still happen: two globs can overlap in paths
    nobody thinks of, and any two words can name the same file. A task that declares nothing claims nothing.
    """
    one, other = read_areas(areas), read_areas(others)
    found: list[AreaOverlap] = []
    for mine in one:
        for theirs in other:
            if mine.takes_back or theirs.takes_back:
                continue
            for path in _meeting_points(mine, theirs):
                if _both_cover(mine, theirs, path) and _is_in_scope(path, one) and _is_in_scope(path, other):
                    found.append(AreaOverlap(mine.declared, theirs.declared, path))
                    break
    return found


def _meeting_points(mine: Area, theirs: Area) -> list[str]:
    """Paths that may lie in both areas: a sample of each, and a glob that floats placed below the other area."""
    here, there = mine.sample(), theirs.sample()
    points = [path for path in (here, there) if path]
    for outer, holder, floating, area in ((here, mine, there, theirs), (there, theirs, here, mine)):
        if outer and floating and area.floats and not holder.names_file:
            points.append(f"{outer.removesuffix('/_')}/{floating}")
    return points


def _is_in_scope(path: str, areas: Sequence[Area]) -> bool:
    return bool(areas) and judge(path, areas).in_scope


def _both_cover(mine: Area, theirs: Area, path: str) -> bool:
    place = ChangedPath(path)
    return mine.covers(place) and theirs.covers(place)


def _normal(text: str) -> str:
    """Unicode composed (NFC), forward slashes, no leading `./`."""
    text = unicodedata.normalize("NFC", text).replace("\\", "/")
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    return text


def _why(area: Area, place: ChangedPath) -> str:
    match area.rule:
        case "everything":
            return f"{area.declared} is everything"
        case "words":
            return f"{area.declared} names {area.name_in(place)}"
        case "name":
            return f"{area.declared} is its name, or that of a directory above it"
        case "directory":
            return f"it lies in a directory {area.declared}"
    return f"{area.declared} covers it"


def _why_not(areas: Sequence[Area], place: ChangedPath) -> str:
    """Why no area covers it. Recognises two common mistakes: part of a word, and a path that does not start at the
    root."""
    for area in areas:
        plain = area.text.strip("/")
        if area.rule == "words" and area.text.casefold() in place.path.casefold():
            return f"{area.declared} is only part of a word in it"
        if area.rule == "path" and f"/{plain}/" in f"/{place.path}/":
            return f"{area.declared} starts at the root; **/{plain} would hold at any depth"
    return "no area covers it"
