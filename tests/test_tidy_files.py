"""Files that may have come with a repository are opened in one place, `regular_files.py`, and parsed in few: whoever
opens another directly finds out here, and either goes through it or says why not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "handrail"
SOURCES = sorted(SOURCE.rglob("*.py"))

READERS = ("read_text", "read_bytes", "copyfile", "copy2", "copytree", "getlines")
"""Names of functions that read a file, whatever they are called on."""
OPENERS = {"open", "io.open", "os.open", "codecs.open", "tokenize.open", "os.fdopen", "shutil.copy", "shutil.move"}
PARSERS = {"tomllib.loads", "tomllib.load", "yaml.load", "yaml.safe_load", "yaml.parse", "json.load", "pickle.load"}
WORDS = ("open(", "load", "parse(", "copy", "move(", *READERS)
"""A module without any of these need not be looked at closely."""
OTHER_OPEN = (
    *(
        "self",
        "super()",
        "ledger",
        "_ledger",
        "looking",
        "looking_ledger",
        "server",
        "_server",
        "sessions",
        "webbrowser",
    ),
    *("builder", "_seal", "_among"),
)
"""What also has a method `open` and is no path: the last name before it."""

ALLOWED = {
    "regular_files.py": "it is the place",
    "kernel/toml_values.py": "it is the place where TOML is parsed",
    "outside/documents.py": "it is the place where YAML is parsed, event by event and to a depth",
    "outside/plan_files.py": "a pipe that a shell handed over by name, and a stream over what was opened there",
    "outside/prompt_files.py": "prompts that come with Handrail",
    "outside/installation.py": "the installer's note on where Handrail came from",
    "outside/role_files.py": "roles that come with Handrail",
    "surfaces/web/static_files.py": "the page's own files, which come with Handrail",
    "outside/process_names.py": "the kernel's files",
    "store/write_lock.py": "the kernel's files, and a lock",
    "store/places.py": "the kernel's files, and folders that are synced",
    "store/postgres_copy.py": "a copy of our own making",
    "surfaces/cli/keep/db_copies.py": "a copy of our own making",
    "outside/file_lock.py": "a lock; no link is followed",
    "outside/tracking/manifest.py": "a working copy's files: hashed in parts, no link followed, nothing waited for",
    "outside/tracking/large_files.py": "as above",
    "outside/tracking/snapshot.py": "a stream over what was opened there",
    "outside/atomic_files.py": "a draft of our own, written with the flags that `open` gives",
    "outside/worktrees/remove.py": "a stream over what was opened there",
    "protocol/stdio.py": "the null device",
    "hooks/memory.py": "a file of our own, made for its owner alone",
    "hooks/open_tasks.py": "the kernel's files",
    "outside/private_files.py": "the user's own folder: no link followed, nothing waited for, and whose it is examined",
    "outside/snapshot_origin.py": "as above, for marks of our own",
    "outside/trusted_settings.py": "as outside/private_files.py",
    "outside/tracking/arrivals.py": "a stream over what was opened there",
    "outside/tracking/conversion.py": "a working copy's files: no link followed, nothing waited for",
    "store/backups.py": "a backup that its user names: examined once it is open, and copied before anybody looks",
    "store/lease_clock.py": "the kernel's files",
    "store/rebuild.py": "a store that is its user's own by then, set aside",
}
"""Modules that do it themselves, and why."""


def _is_writing(call: ast.Call) -> bool:
    """Whether a call says that it writes: with a mode, or with flags."""
    given = [*call.args, *(word.value for word in call.keywords)]
    modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if any(mode in ("w", "x", "a", "wb", "xb", "ab") for mode in modes):
        return True
    flags = ast.unparse(call)
    return "O_WRONLY" in flags and "O_RDONLY" not in flags


def _is_path_open(call: ast.Call) -> bool:
    """Whether a call of a method `open` may be a path's."""
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    if isinstance(owner, ast.Call) and ast.unparse(owner) != "super()":
        owner = owner.func
    return ast.unparse(owner).rpartition(".")[2] not in OTHER_OPEN


def direct_reads(source: str) -> Iterator[str]:
    """The places that open or parse a file by themselves."""
    if not any(word in source for word in WORDS):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in READERS:
            yield f"line {node.lineno}: {ast.unparse(node)}"
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        is_open = name in OPENERS or (name.endswith(".open") and _is_path_open(node))
        if name in PARSERS or (is_open and not _is_writing(node)):
            yield f"line {node.lineno}: {name}"


def test_a_file_is_opened_in_the_one_place_for_it() -> None:
    found = {str(path.relative_to(SOURCE)): [*direct_reads(path.read_text(encoding="utf-8"))] for path in SOURCES}
    beside = {name: lines for name, lines in found.items() if lines and name not in ALLOWED}
    assert beside == {}, "use handrail.regular_files, kernel.toml_values or outside.documents"
    assert [name for name in ALLOWED if not found[name]] == [], "these open nothing any more: take them off the list"


@pytest.mark.parametrize(
    "line",
    [
        "open(file)",
        "open(file, 'rb')",
        "file.open()",
        "file.open('rb')",
        "(a / b).open()",
        "Path(x).open(encoding='utf-8')",
        "file.read_text()",
        "map(Path.read_bytes, files)",
        "os.open(file, os.O_RDONLY)",
        "os.open(file, flags)",
        "io.open(file)",
        "shutil.copyfile(a, b)",
        "tomllib.loads(text)",
        "yaml.safe_load(text)",
    ],
)
def test_the_rule_can_fail(line: str) -> None:
    assert [*direct_reads(line)] != []


@pytest.mark.parametrize(
    "line", ["open(file, 'xb')", "file.open('x')", "os.open(f, os.O_WRONLY | os.O_CREAT)", "handrail.ledger.open()"]
)
def test_the_rule_lets_writing_and_other_things_pass(line: str) -> None:
    assert [*direct_reads(line)] == []
