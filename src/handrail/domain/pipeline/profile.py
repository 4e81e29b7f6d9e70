"""Describes a repository from its file names and a few of their texts: its languages, how it is built and tested, and
its linters and CI.

Pure rules; names and texts come from `outside/repository_profile.py`. The commands are written by this module: from the
repository they take only names of well-known targets and plain paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

LANGUAGES_SHOWN = 5
OTHERS_SHOWN = 3
"""Commands of each kind shown besides the first."""
DEEPEST = 2
"""How many folders below the root manifests count."""
READ_FILES = 40
"""Maximum number of manifests read."""

_PLAIN_PATH = r"[A-Za-z0-9][A-Za-z0-9._/@+-]*"
_NOT_OURS = r"(?:^|/)(?:vendor|node_modules|third_party|third-party|bower_components|dist|\.yarn)/|\.min\.(?:js|css)$"
_TARGET = r"(?m)^([A-Za-z0-9][A-Za-z0-9_. \t-]{0,200}):(?!=)"
_RECIPE = r"(?m)^@?([A-Za-z0-9_-]+)(?:[ \t][^:\n]*)?:(?!=)"

_EXTENSIONS = {
    "Python": "py pyi pyx",
    "TypeScript": "ts tsx mts cts",
    "JavaScript": "js jsx mjs cjs",
    "Vue": "vue",
    "Svelte": "svelte",
    "Go": "go",
    "Rust": "rs",
    "Java": "java",
    "Kotlin": "kt kts",
    "Scala": "scala sc",
    "C": "c",
    "C++": "cpp cc cxx hpp hh hxx ipp",
    "C/C++ headers": "h",
    "C#": "cs",
    "F#": "fs fsx",
    "Visual Basic": "vb",
    "Ruby": "rb rake gemspec",
    "PHP": "php",
    "Swift": "swift",
    "Objective-C": "m mm",
    "Elixir": "ex exs",
    "Erlang": "erl hrl",
    "Haskell": "hs",
    "OCaml": "ml mli",
    "Dart": "dart",
    "Lua": "lua",
    "Perl": "pl pm",
    "R": "r",
    "Julia": "jl",
    "Zig": "zig",
    "Clojure": "clj cljs cljc",
    "Shell": "sh bash zsh",
    "PowerShell": "ps1",
    "SQL": "sql",
    "HTML": "html htm",
    "CSS": "css scss sass less",
    "Terraform": "tf",
}
_LANGUAGE_OF = {ending: language for language, endings in _EXTENSIONS.items() for ending in endings.split()}


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A repository in a few lines. The most general command comes first."""

    languages: list[tuple[str, int]] = []
    """Name and percentage of source files; most frequent first."""
    build: list[str] = []
    test: list[str] = []
    ci: list[str] = []
    linters: list[str] = []


class _Commands(NamedTuple):
    build: str | None = None
    test: str | None = None


class _Folder:
    """The files of one folder, and the contents of the manifests among them."""

    def __init__(self, path: str, names: set[str], texts: Mapping[str, str], below: Sequence[str]) -> None:
        self.path = path
        self.names = names
        self.below = below
        """Everything in it and below it, relative to it."""
        self._texts = texts

    def has(self, *names: str) -> bool:
        return not self.names.isdisjoint(names)

    def first(self, *endings: str) -> str | None:
        return next((name for name in sorted(self.names) if name.endswith(endings)), None)

    def text(self, *names: str) -> str:
        """The texts of those of the named files that exist."""
        prefix = f"{self.path}/" if self.path else ""
        return "\n".join(self._texts.get(prefix + name, "") for name in names if name in self.names)

    def json(self, name: str) -> dict[str, Any]:
        try:
            found = msgspec.json.decode(self.text(name))
        except (msgspec.DecodeError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _keys(document: Mapping[str, Any], *fields: str) -> set[str]:
    """The keys of the objects in these fields."""
    found = [document.get(field) for field in fields]
    return {str(key) for value in found if isinstance(value, dict) for key in value}


def profile_of(names: Sequence[str], texts: Mapping[str, str]) -> Profile:
    """The profile of a repository with these files; `texts` are those of the `wanted` files that could be read."""
    ours = [name for name in names if not re.search(_NOT_OURS, name)]
    languages = _languages(ours)
    build, test = _commands(_folders(ours, texts), [name for name, _ in languages])
    return Profile(
        languages=languages[:LANGUAGES_SHOWN], build=build, test=test, ci=_ci(ours), linters=_linters(ours, texts)
    )


def lines(profile: Profile) -> list[str]:
    """The profile as shown in a prompt; empty if nothing is known."""
    found = []
    if profile.languages:
        found.append("Languages: " + ", ".join(f"{name} ({share}%)" for name, share in profile.languages))
    for word, commands in (("Build", profile.build), ("Test", profile.test)):
        if commands:
            found.append(f"{word} command: {commands[0]}")
    for word, commands in (("build", profile.build), ("test", profile.test)):
        if commands[1:]:
            found.append(f"Other {word} commands: {', '.join(commands[1:])}")
    if profile.linters:
        found.append(f"Linters: {', '.join(profile.linters)}")
    if profile.ci:
        found.append(f"CI: {', '.join(profile.ci)}")
    return found


def wanted(names: Iterable[str]) -> list[str]:
    """The files whose texts matter, nearest to the root first."""
    found = [
        name
        for name in names
        if name.count("/") <= DEEPEST and _is_read(name.rpartition("/")[2]) and not re.search(_NOT_OURS, name)
    ]
    return sorted(found, key=lambda name: (name.count("/"), name))[:READ_FILES]


_READ = frozenset(
    {"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "package.json", "deno.json", "pyproject.toml"}
    | {"setup.cfg", "Cargo.toml", "CMakeLists.txt", "Rakefile", "Gemfile", "composer.json", "Pipfile"}
)


def _is_read(name: str) -> bool:
    return name in _READ or (name.startswith("requirements") and name.endswith(".txt"))


def _languages(names: Sequence[str]) -> list[tuple[str, int]]:
    """Languages by their share of the files; those below one percent are left out."""
    counts: Counter[str] = Counter()
    for name in names:
        stem, dot, ending = name.rpartition("/")[2].rpartition(".")
        if dot and stem and (language := _LANGUAGE_OF.get(ending.lower())):
            counts[language] += 1
    headers = counts.pop("C/C++ headers", 0)
    if headers:
        counts["C++" if counts["C++"] or not counts["C"] else "C"] += headers
    total = sum(counts.values())
    shares = [(name, round(100 * count / total)) for name, count in counts.items() if count]
    return sorted(((name, share) for name, share in shares if share), key=lambda one: (-one[1], one[0]))


def _folders(names: Sequence[str], texts: Mapping[str, str]) -> list[_Folder]:
    """The folders in which manifests count, the root first."""
    files: dict[str, set[str]] = {"": set()}
    for name in names:
        folder, _, file = name.rpartition("/")
        if not folder or (folder.count("/") < DEEPEST and re.fullmatch(_PLAIN_PATH, folder)):
            files.setdefault(folder, set()).add(file)
    ordered = sorted(files, key=lambda folder: (folder.count("/") + 1 if folder else 0, folder))
    return [_Folder(folder, files[folder], texts, names if not folder else ()) for folder in ordered]


def _commands(folders: Sequence[_Folder], languages: Sequence[str]) -> tuple[list[str], list[str]]:
    """How it is built and tested: task runners first, then ecosystems by their share of the code. For each ecosystem
    only the level nearest to the root counts."""
    build: dict[str, None] = {}
    test: dict[str, None] = {}
    position = {language: place for place, language in enumerate(languages)}

    def weight(ecosystem: _Ecosystem) -> int:
        if not ecosystem.languages:
            return -1
        return min(position.get(language, len(position)) for language in ecosystem.languages)

    for ecosystem in sorted(_ECOSYSTEMS, key=weight):
        depth = None
        for folder in folders:
            level = folder.path.count("/") + 1 if folder.path else 0
            if depth is not None and level > depth:
                break
            found = ecosystem.commands(folder)
            if found is None:
                continue
            depth = level
            where = f" (in {folder.path})" if folder.path else ""
            for command, commands in ((found.build, build), (found.test, test)):
                if command is not None:
                    commands[command + where] = None
    return list(build)[: OTHERS_SHOWN + 1], list(test)[: OTHERS_SHOWN + 1]


def _chosen(known: Iterable[str], names: Sequence[str], command: str) -> str | None:
    there = set(known)
    return next((f"{command} {name}" for name in names if name in there), None)


_BUILDS = ("build", "compile", "all")
_TESTS = ("test", "tests", "check", "verify")


def _make(here: _Folder) -> _Commands | None:
    if not here.has("Makefile", "makefile", "GNUmakefile"):
        return None
    text = here.text("Makefile", "makefile", "GNUmakefile")
    targets = [word for found in re.findall(_TARGET, text) for word in found.split()]
    return _Commands(_chosen(targets, _BUILDS, "make"), _chosen(targets, _TESTS, "make"))


def _just(here: _Folder) -> _Commands | None:
    if not here.has("justfile", "Justfile"):
        return None
    recipes = re.findall(_RECIPE, here.text("justfile", "Justfile"))
    return _Commands(_chosen(recipes, _BUILDS, "just"), _chosen(recipes, _TESTS, "just"))


def _node(here: _Folder) -> _Commands | None:
    if not here.has("package.json"):
        return None
    package = here.json("package.json")
    manager = _node_manager(here, str(package.get("packageManager", "")))
    scripts = _keys(package, "scripts")
    needs = _keys(package, "dependencies", "devDependencies")
    build = f"{manager} run build" if "build" in scripts else "npx tsc --noEmit" if "typescript" in needs else None
    if "test" in scripts and "no test specified" not in str(package["scripts"]["test"]):
        return _Commands(build, "bun run test" if manager == "bun" else f"{manager} test")
    runners = {"vitest": "npx vitest run", "jest": "npx jest", "mocha": "npx mocha", "ava": "npx ava"}
    return _Commands(build, next((command for name, command in runners.items() if name in needs), None))


def _node_manager(here: _Folder, declared: str) -> str:
    for manager, files in (
        ("pnpm", ("pnpm-lock.yaml", "pnpm-workspace.yaml")),
        ("yarn", ("yarn.lock",)),
        ("bun", ("bun.lock", "bun.lockb")),
    ):
        if declared.startswith(f"{manager}@") or here.has(*files):
            return manager
    return "npm"


def _deno(here: _Folder) -> _Commands | None:
    return _Commands("deno check .", "deno test") if here.has("deno.json", "deno.jsonc") else None


def _python(here: _Folder) -> _Commands | None:
    needs = [name for name in here.names if name.startswith("requirements") and name.endswith(".txt")]
    if not (needs or here.has("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py", "Pipfile")):
        return None
    project = here.text("pyproject.toml")
    runner, build = "", "python -m build"
    for manager, files in (("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pdm", "pdm.lock"), ("pipenv", "Pipfile")):
        if here.has(files):
            runner, build = f"{manager} run ", f"{manager} build" if manager != "pipenv" else build
            break
    is_package = here.has("setup.py") or re.search(r"(?m)^\[(?:build-system|tool\.poetry)\]", project)
    said = here.text("pyproject.toml", "setup.cfg", "Pipfile", *sorted(needs))
    if "pytest" in said or here.has("pytest.ini", "conftest.py") or _below(here, "conftest.py"):
        test: str | None = f"{runner}pytest"
    elif here.has("tox.ini") or "[tool.tox" in project:
        test = f"{runner}tox"
    elif here.has("noxfile.py"):
        test = f"{runner}nox"
    elif here.has("manage.py"):
        test = f"{runner}python manage.py test"
    else:
        test = f"{runner}python -m unittest" if any(re.search(_TEST_FILE, name) for name in here.below) else None
    return _Commands(build if is_package else None, test)


_TEST_FILE = r"(?:^|/)test_[^/]*\.py$"


def _below(here: _Folder, name: str) -> bool:
    return any(path.endswith(f"/{name}") for path in here.below)


def _go(here: _Folder) -> _Commands | None:
    return _Commands("go build ./...", "go test ./...") if here.has("go.mod", "go.work") else None


def _rust(here: _Folder) -> _Commands | None:
    if not here.has("Cargo.toml"):
        return None
    whole = " --workspace" if re.search(r"(?m)^\[workspace\]", here.text("Cargo.toml")) else ""
    return _Commands(f"cargo build{whole}", f"cargo test{whole}")


def _jvm(here: _Folder) -> _Commands | None:
    if here.has("pom.xml"):
        maven = "./mvnw" if here.has("mvnw") else "mvn"
        return _Commands(f"{maven} package -DskipTests", f"{maven} test")
    if here.has("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        gradle = "./gradlew" if here.has("gradlew") else "gradle"
        return _Commands(f"{gradle} assemble", f"{gradle} test")
    return _Commands("sbt compile", "sbt test") if here.has("build.sbt") else None


def _native(here: _Folder) -> _Commands | None:
    if here.has("CMakeLists.txt"):
        tested = re.search(r"(?i)enable_testing|include\s*\(\s*CTest|add_test", here.text("CMakeLists.txt"))
        return _Commands("cmake -B build && cmake --build build", "ctest --test-dir build" if tested else None)
    if here.has("meson.build"):
        return _Commands("meson setup build && meson compile -C build", "meson test -C build")
    if here.has("configure.ac", "configure"):
        return _Commands("./configure && make", "make check")
    return None


def _bazel(here: _Folder) -> _Commands | None:
    there = here.has("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel")
    return _Commands("bazel build //...", "bazel test //...") if there else None


def _dotnet(here: _Folder) -> _Commands | None:
    there = here.first(".sln", ".slnx") or here.first(".csproj", ".fsproj", ".vbproj")
    return _Commands("dotnet build", "dotnet test") if there else None


def _ruby(here: _Folder) -> _Commands | None:
    spec = here.first(".gemspec")
    if not (spec or here.has("Gemfile", "Rakefile")):
        return None
    build = f"gem build {spec}" if spec and re.fullmatch(_PLAIN_PATH, spec) else None
    bundled = "bundle exec " if here.has("Gemfile") else ""
    if here.has(".rspec") or "rspec" in here.text("Gemfile"):
        return _Commands(build, f"{bundled}rspec")
    if "bin/rails" in here.below:
        return _Commands(build, "bin/rails test")
    return _Commands(build, f"{bundled}rake test" if "test" in here.text("Rakefile").casefold() else None)


def _php(here: _Folder) -> _Commands | None:
    if not here.has("composer.json", "phpunit.xml", "phpunit.xml.dist"):
        return None
    package = here.json("composer.json")
    scripts, needs = _keys(package, "scripts"), _keys(package, "require-dev")
    build = "composer run build" if "build" in scripts else "composer install" if package else None
    if "test" in scripts:
        return _Commands(build, "composer test")
    if "pestphp/pest" in needs:
        return _Commands(build, "vendor/bin/pest")
    tested = here.has("phpunit.xml", "phpunit.xml.dist") or "phpunit/phpunit" in needs
    return _Commands(build, "vendor/bin/phpunit" if tested else None)


def _swift(here: _Folder) -> _Commands | None:
    return _Commands("swift build", "swift test") if here.has("Package.swift") else None


def _elixir(here: _Folder) -> _Commands | None:
    return _Commands("mix compile", "mix test") if here.has("mix.exs") else None


class _Ecosystem(NamedTuple):
    commands: Callable[[_Folder], _Commands | None]
    languages: tuple[str, ...] = ()
    """Their share determines its place; task runners have none and come first."""


_ECOSYSTEMS = (
    _Ecosystem(_make),
    _Ecosystem(_just),
    _Ecosystem(_node, ("TypeScript", "JavaScript", "Vue", "Svelte")),
    _Ecosystem(_deno, ("TypeScript", "JavaScript")),
    _Ecosystem(_python, ("Python",)),
    _Ecosystem(_go, ("Go",)),
    _Ecosystem(_rust, ("Rust",)),
    _Ecosystem(_jvm, ("Java", "Kotlin", "Scala")),
    _Ecosystem(_native, ("C", "C++")),
    _Ecosystem(_bazel, ("C++", "Java", "Go")),
    _Ecosystem(_dotnet, ("C#", "F#", "Visual Basic")),
    _Ecosystem(_ruby, ("Ruby",)),
    _Ecosystem(_php, ("PHP",)),
    _Ecosystem(_swift, ("Swift",)),
    _Ecosystem(_elixir, ("Elixir",)),
)

_CI = (
    ("GitHub Actions", r"\.github/workflows/[^/]+\.ya?ml"),
    ("GitLab CI", r"\.gitlab-ci\.yml"),
    ("CircleCI", r"\.circleci/config\.yml"),
    ("Jenkins", r"Jenkinsfile"),
    ("Azure Pipelines", r"azure-pipelines\.ya?ml"),
    ("Bitbucket Pipelines", r"bitbucket-pipelines\.yml"),
    ("Travis CI", r"\.travis\.yml"),
    ("Buildkite", r"\.buildkite/[^/]+\.ya?ml"),
)
_LINTERS = (
    ("ruff", r"\.?ruff\.toml"),
    ("flake8", r"\.flake8"),
    ("mypy", r"\.?mypy\.ini"),
    ("pylint", r"\.?pylintrc"),
    ("pyright", r"pyrightconfig\.json"),
    ("eslint", r"\.eslintrc(?:\.\w+)?|eslint\.config\.\w+"),
    ("prettier", r"\.prettierrc(?:\.\w+)?|prettier\.config\.\w+"),
    ("biome", r"biome\.jsonc?"),
    ("golangci-lint", r"\.golangci\.(?:ya?ml|toml|json)"),
    ("rustfmt", r"\.?rustfmt\.toml"),
    ("clippy", r"\.?clippy\.toml"),
    ("checkstyle", r"checkstyle\.xml"),
    ("clang-format", r"\.clang-format"),
    ("clang-tidy", r"\.clang-tidy"),
    ("rubocop", r"\.rubocop\.yml"),
    ("phpstan", r"phpstan\.neon(?:\.dist)?"),
    ("php-cs-fixer", r"\.php-cs-fixer(?:\.dist)?\.php"),
    ("pre-commit", r"\.pre-commit-config\.yaml"),
)


def _ci(names: Sequence[str]) -> list[str]:
    likely = [name for name in names if name.count("/") <= 2]
    return [label for label, pattern in _CI if any(re.fullmatch(pattern, name) for name in likely)]


def _linters(names: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """Linters with a config file at the root or a table in the root's pyproject.toml."""
    at_root = [name for name in names if "/" not in name]
    found = {label for label, pattern in _LINTERS if any(re.fullmatch(pattern, name) for name in at_root)}
    found |= set(re.findall(r"(?m)^\[tool\.(ruff|mypy|black|pylint|pyright)\b", texts.get("pyproject.toml", "")))
    return sorted(found)
