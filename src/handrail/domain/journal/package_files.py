"""The files in which projects list their packages and lock their versions, by ecosystem. Names only, never contents."""

from __future__ import annotations

import re

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
