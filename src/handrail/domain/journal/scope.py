"""Is a changed file within the areas that a task declared? Pure, and always answered with a reason. How areas are read
says `areas.py`.

The files in which projects list their packages and lock their versions, by ecosystem. Names only, never contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.journal.areas import Area, ChangedPath, Rule, are_around, deciding, read_areas

_BY_ECOSYSTEM: dict[str, tuple[str, ...]] = {
    "JavaScript": ("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb"),
    "pnpm, Deno": ("pnpm-lock.yaml", "pnpm-workspace.yaml", "deno.json", "deno.jsonc", "deno.lock", "jsr.json"),
    "Python": ("pyproject.toml", "setup.py", "setup.cfg", "pipfile", "pipfile.lock", "pylock.toml"),
    "Python's tools": ("poetry.lock", "pdm.lock", "uv.lock", "pixi.toml", "pixi.lock"),
    "Conda": ("environment.yml", "environment.yaml", "conda-lock.yml"),
    "Rust": ("cargo.toml", "cargo.lock"),
    "Go": ("go.mod", "go.sum", "go.work", "go.work.sum"),
    "PHP": ("composer.json", "composer.lock"),
    "Ruby": ("gemfile", "gemfile.lock", "gems.rb", "gems.locked"),
    "Java, Kotlin": ("pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile", "libs.versions.toml"),
    "Scala, Clojure": ("build.sbt", "project.clj", "deps.edn"),
    ".NET": ("packages.config", "packages.lock.json", "directory.packages.props", "paket.dependencies", "paket.lock"),
    "Elixir, Erlang": ("mix.exs", "mix.lock", "rebar.config", "rebar.lock"),
    "Dart": ("pubspec.yaml", "pubspec.lock"),
    "Swift": ("package.swift", "package.resolved", "podfile", "podfile.lock", "cartfile", "cartfile.resolved"),
    "Nix": ("flake.nix", "flake.lock"),
    "Haskell": ("stack.yaml", "stack.yaml.lock", "cabal.project", "cabal.project.freeze"),
    "C and C++": ("conanfile.txt", "conanfile.py", "conan.lock", "vcpkg.json"),
    "others": ("shard.yml", "shard.lock", "dune-project", "project.toml", "manifest.toml", "renv.lock"),
}
_NAMES = frozenset(name for names in _BY_ECOSYSTEM.values() for name in names)
_PATTERN = re.compile(
    r"(?:requirements|constraints)[^/]*\.(?:txt|in|lock)|[^/]*\.(?:gemspec|csproj|fsproj|vbproj|cabal|opam|nimble)"
)


def is_package_file(path: str) -> bool:
    """Whether a file of this name lists packages or locks their versions. Case-insensitive."""
    name = path.rpartition("/")[2].casefold()
    return name in _NAMES or _PATTERN.fullmatch(name) is not None


_WARNING = re.compile(r"⚠️ \d+ file\(s\) modified outside declared scope \((.*)\)", re.DOTALL)


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


def judge(path: str, areas: Sequence[Area], *, packages_changed: bool = False) -> ScopeVerdict:
    """Whether one changed file is in scope."""
    if not areas:
        return ScopeVerdict(path, True, "undeclared", None, "no areas are declared")
    place = ChangedPath(path)
    found = deciding(place, areas)
    if found is not None and found.takes_back:
        return ScopeVerdict(path, False, found.rule, found.declared, f"{found.declared} takes it back")
    if found is not None:
        return ScopeVerdict(path, True, found.rule, found.declared, _why(found, place))
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
    return bool(areas) and are_around(path, areas)


def _both_cover(mine: Area, theirs: Area, path: str) -> bool:
    place = ChangedPath(path)
    return mine.covers(place) and theirs.covers(place)


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
