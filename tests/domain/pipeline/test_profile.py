"""The profile of a repository: for every ecosystem the commands people of that ecosystem would type."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.profile import DEEPEST, READ_FILES, lines, profile_of, wanted

Files = dict[str, str]


def told(files: Files) -> list[str]:
    return lines(profile_of(sorted(files), {name: files[name] for name in wanted(files)}))


def commands(files: Files) -> tuple[str | None, str | None]:
    profile = profile_of(sorted(files), {name: files[name] for name in wanted(files)})
    return (profile.build[0] if profile.build else None, profile.test[0] if profile.test else None)


def package(**fields: object) -> str:
    return json.dumps(fields)


ECOSYSTEMS: dict[str, tuple[Files, str | None, str | None]] = {
    "make": ({"Makefile": "CC := gcc\nbuild: a.o\n\ttrue\ntest check:\n\ttrue\n"}, "make build", "make test"),
    "make without such targets": ({"Makefile": "run:\n\ttrue\nBUILD:=x\n"}, None, None),
    "make all and check": ({"makefile": "all: x\ncheck: all\n"}, "make all", "make check"),
    "just": ({"justfile": "x := 'y'\nbuild target='a':\n  true\n@test *args:\n  true\n"}, "just build", "just test"),
    "npm": ({"package.json": package(scripts={"build": "x", "test": "y"})}, "npm run build", "npm test"),
    "pnpm": (
        {"package.json": package(scripts={"build": "x", "test": "y"}), "pnpm-lock.yaml": ""},
        "pnpm run build",
        "pnpm test",
    ),
    "yarn, declared": (
        {"package.json": package(packageManager="yarn@4.1.0", scripts={"test": "y"})},
        None,
        "yarn test",
    ),
    "bun": ({"package.json": package(scripts={"test": "y"}), "bun.lockb": ""}, None, "bun run test"),
    "npm's own placeholder": (
        {"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})},
        None,
        None,
    ),
    "a runner without a script": (
        {"package.json": package(devDependencies={"vitest": "1", "typescript": "5"})},
        "npx tsc --noEmit",
        "npx vitest run",
    ),
    "deno": ({"deno.json": "{}", "main.ts": ""}, "deno check .", "deno test"),
    "python": (
        {"pyproject.toml": '[build-system]\nrequires = []\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'},
        "python -m build",
        "pytest",
    ),
    "python with uv": (
        {"pyproject.toml": '[build-system]\n[dependency-groups]\ndev = ["pytest"]\n', "uv.lock": ""},
        "uv build",
        "uv run pytest",
    ),
    "python with poetry": (
        {"pyproject.toml": "[tool.poetry]\n", "poetry.lock": "", "tests/conftest.py": ""},
        "poetry build",
        "poetry run pytest",
    ),
    "python with tox": ({"setup.py": "", "tox.ini": "", "a.py": ""}, "python -m build", "tox"),
    "django": ({"requirements.txt": "django\n", "manage.py": ""}, None, "python manage.py test"),
    "python's own tests": ({"setup.py": "", "tests/test_a.py": ""}, "python -m build", "python -m unittest"),
    "pytest in the requirements": ({"requirements-dev.txt": "pytest==9\n"}, None, "pytest"),
    "go": ({"go.mod": "", "main.go": ""}, "go build ./...", "go test ./..."),
    "rust": ({"Cargo.toml": "[package]\n"}, "cargo build", "cargo test"),
    "a rust workspace": (
        {"Cargo.toml": "[workspace]\nmembers = []\n", "a/Cargo.toml": "[package]\n"},
        "cargo build --workspace",
        "cargo test --workspace",
    ),
    "maven": ({"pom.xml": ""}, "mvn package -DskipTests", "mvn test"),
    "maven with its wrapper": ({"pom.xml": "", "mvnw": ""}, "./mvnw package -DskipTests", "./mvnw test"),
    "gradle": ({"build.gradle.kts": "", "gradlew": ""}, "./gradlew assemble", "./gradlew test"),
    "sbt": ({"build.sbt": ""}, "sbt compile", "sbt test"),
    "cmake": (
        {"CMakeLists.txt": "project(x)\nenable_testing()\n"},
        "cmake -B build && cmake --build build",
        "ctest --test-dir build",
    ),
    "cmake without tests": ({"CMakeLists.txt": "project(x)\n"}, "cmake -B build && cmake --build build", None),
    "meson": ({"meson.build": ""}, "meson setup build && meson compile -C build", "meson test -C build"),
    "autotools": ({"configure.ac": ""}, "./configure && make", "make check"),
    "bazel": ({"MODULE.bazel": ""}, "bazel build //...", "bazel test //..."),
    "a solution": ({"Shop.sln": "", "src/Shop/Shop.csproj": ""}, "dotnet build", "dotnet test"),
    "a project file": ({"Shop.csproj": ""}, "dotnet build", "dotnet test"),
    "a gem": (
        {"shop.gemspec": "", "Gemfile": "gem 'rspec'\n"},
        "gem build shop.gemspec",
        "bundle exec rspec",
    ),
    "rake": ({"Rakefile": "Rake::TestTask.new\n", "Gemfile": ""}, None, "bundle exec rake test"),
    "rails": ({"Gemfile": "gem 'rails'\n", "bin/rails": "", "Rakefile": ""}, None, "bin/rails test"),
    "composer": (
        {"composer.json": package(scripts={"test": "phpunit", "build": "x"})},
        "composer run build",
        "composer test",
    ),
    "phpunit": (
        {"composer.json": package(name="a/b"), "phpunit.xml.dist": ""},
        "composer install",
        "vendor/bin/phpunit",
    ),
    "pest": (
        {"composer.json": package(**{"require-dev": {"pestphp/pest": "3"}})},
        "composer install",
        "vendor/bin/pest",
    ),
    "swift": ({"Package.swift": ""}, "swift build", "swift test"),
    "elixir": ({"mix.exs": ""}, "mix compile", "mix test"),
    "nothing known": ({"README.md": "", "notes.txt": ""}, None, None),
}


@pytest.mark.parametrize("name", ECOSYSTEMS)
def test_an_ecosystem_is_built_and_tested_in_its_own_way(name: str) -> None:
    files, build, test = ECOSYSTEMS[name]
    assert commands(files) == (build, test)


def test_the_lines_are_those_of_the_document() -> None:
    files = {f"src/a{number}.go": "" for number in range(82)}
    files |= {f"web/b{number}.ts": "" for number in range(15)} | {f"c{number}.sh": "" for number in range(3)}
    files |= {"go.mod": "", "Makefile": "build:\n\ttrue\n", "README.md": "", "data.json": "{}"}
    assert told(files) == [
        "Languages: Go (82%), TypeScript (15%), Shell (3%)",
        "Build command: make build",
        "Test command: go test ./...",
        "Other build commands: go build ./...",
    ]


def test_an_empty_repository_has_no_lines() -> None:
    assert told({}) == []
    assert told({"README.md": ""}) == []


def test_of_two_ecosystems_the_one_with_more_code_comes_first() -> None:
    both = {"go.mod": "", "package.json": package(scripts={"test": "x"})}
    mostly_go = both | {"a.go": "", "b.go": "", "c.ts": ""}
    mostly_web = both | {"a.go": "", "b.ts": "", "c.ts": ""}
    assert profile_of(sorted(mostly_go), both).test == ["go test ./...", "npm test"]
    assert profile_of(sorted(mostly_web), both).test == ["npm test", "go test ./..."]


def test_what_lies_below_the_root_is_named_with_its_folder() -> None:
    files = {"backend/go.mod": "", "apps/web/package.json": package(scripts={"test": "x"}), "backend/main.go": ""}
    assert profile_of(sorted(files), files).test == ["go test ./... (in backend)", "npm test (in apps/web)"]


def test_only_the_manifests_nearest_to_the_root_count() -> None:
    files = {"pom.xml": "", "core/pom.xml": "", "deep/er/still/go.mod": ""}
    assert profile_of(sorted(files), files).test == ["mvn test"]


def test_others_code_is_not_counted() -> None:
    files = {"a.py": "", "vendor/x.go": "", "web/node_modules/y.js": "", "lib/z.min.js": ""}
    assert told(files) == ["Languages: Python (100%)"]


def test_headers_belong_to_the_language_that_is_there() -> None:
    assert profile_of(["a.c", "a.h"], {}).languages == [("C", 100)]
    assert profile_of(["a.cpp", "a.h"], {}).languages == [("C++", 100)]


def test_checks_are_told_by_their_files() -> None:
    files = {
        ".github/workflows/ci.yml": "",
        ".gitlab-ci.yml": "",
        "pyproject.toml": "[tool.ruff]\n[tool.mypy]\nstrict = true\n",
        "eslint.config.mjs": "",
        "docs/.flake8": "",
    }
    profile = profile_of(sorted(files), files)
    assert profile.ci == ["GitHub Actions", "GitLab CI"]
    assert profile.linters == ["eslint", "mypy", "ruff"]


def test_few_files_are_read_and_those_at_the_root_first() -> None:
    files = [f"p{number:02}/package.json" for number in range(60)] + ["a/b/c/Makefile", "Makefile", "vendor/Makefile"]
    found = wanted(files)
    assert found[0] == "Makefile"
    assert len(found) == READ_FILES
    assert all(name.count("/") <= DEEPEST and "vendor" not in name for name in found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"scripts": 5, "dependencies": "x", "require-dev": [1], "packageManager": null}',
        '{"scripts": {"test": 5}}',
        "[" * 9999,
    ],
)
def test_a_manifest_that_makes_no_sense_is_no_trouble(text: str) -> None:
    profile_of(["package.json", "composer.json"], {"package.json": text, "composer.json": text})


NAMES = st.sampled_from(sorted({name for files, _, _ in ECOSYSTEMS.values() for name in files}))
TEXTS = st.sampled_from(sorted({text for files, _, _ in ECOSYSTEMS.values() for text in files.values()}))
FOLDERS = st.sampled_from(["", "a/", "a/b/", "a b/", "$(x)/", "ü/", ";rm/"])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.builds(str.__add__, FOLDERS, NAMES), TEXTS, max_size=8))
def test_what_a_repository_calls_its_folders_stays_out_of_commands(files: Files) -> None:
    profile = profile_of(sorted(files), files)
    for command in (*profile.build, *profile.test):
        assert not set(command) & set("$;`'\"\n\\|")
        assert command.isascii()


def test_a_makefile_full_of_blanks_takes_no_time() -> None:
    assert commands({"Makefile": ("a" + " " * 5000 + "\n") * 50 + "test:\n"}) == (None, "make test")
