"""House rules that no linter knows. A rule that nothing checks is not a rule."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PERSONAL

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHES = sorted([*(ROOT / "bench").rglob("*.py"), *(ROOT / "conformance").rglob("*.py")])

FILE_LINES = 500
TEST_FILE_LINES = 800
FUNCTION_LINES = 60
README_LINES = 140
ARCHITECTURE_LINES = 200

BANNED_CALLS = {
    "time.sleep": "wait for the thing itself",
    "datetime.now": "time is injected",
    "datetime.utcnow": "time is injected",
    "time.time": "time is injected",
    "uuid.uuid4": "ids are injected",
    "random.random": "randomness is injected",
    "eval": "never",
    "exec": "never",
    "os.system": "argument lists, never shell strings",
}

HEAVY = (
    "apsw",
    "asyncio",
    "dataclasses",
    "difflib",
    "email",
    "http",
    "jsonschema_rs",
    "logging",
    "mcp",
    "psycopg",
    "pydantic",
    "rapidfuzz",
    "re2",
    "socket",
    "sqlite3",
    "ssl",
    "starlette",
    "subprocess",
    "tomllib",
    "traceback",
    "unittest",
    "urllib.request",
    "uvicorn",
    "yaml",
)
"""Modules that may not be imported before `initialize` is answered."""
HOOK_HEAVY = (*(name for name in HEAVY if name != "apsw"), "argparse", "click", "msgspec", "pathlib", "threading")
"""Modules that no hook of a client may import: they have the standard library's light part, and apsw."""
SILENT_HOOK_HEAVY = (*HOOK_HEAVY, "enum", "json", "re", "typing")
"""Those that a hook may not import either where it has nothing to say, as after most edits."""
HOOK_RINGS = ("handrail.hooks", "handrail.kernel", "handrail.regular_files")
"""What hooks may load of Handrail."""
IMPORTS_IN_FUNCTIONS = {
    "protocol/client_requests.py": {"base64", "binascii", "hashlib", "hmac"},
    "protocol/stdio.py": {"json"},
    "protocol/replies.py": {"traceback"},
    "protocol/wire.py": {"json"},
}
"""What is imported inside a function: the protocol knows no Handrail word, `kernel/late.py` included."""
WAITING = (
    "setup/store_checks.py",
    "surfaces/cli/begin/change_lines.py",
    "surfaces/cli/begin/completion.py",
    "surfaces/cli/begin/demo.py",
    "surfaces/cli/begin/trust.py",
)
"""Where imports inside functions have not been replaced yet."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_is_short_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= FILE_LINES
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, "a module opens by saying what it is"
    assert len(docstring) >= 20


@pytest.mark.parametrize("path", [*TESTS, *BENCHES], ids=relative)
def test_a_test_file_is_short_and_says_what_it_holds(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= TEST_FILE_LINES
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_functions_fit_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=relative)
def test_banned_calls_are_not_made(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in BANNED_CALLS, f"line {node.lineno}: {name}: {BANNED_CALLS[name]}"


def test_there_is_no_utils_module() -> None:
    assert not [path for path in SOURCES if re.search(r"utils?|helpers?|common|misc", path.stem)]


def test_every_package_has_an_init_that_says_what_it_is() -> None:
    folders = {path.parent for path in SOURCES}
    assert not [relative(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_the_documents_keep_their_lengths() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= README_LINES
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= ARCHITECTURE_LINES


def test_locks_pin_with_hashes_and_name_no_host() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        for requirement in re.findall(r"^[a-z].*?(?=^[a-z]|\Z)", text, flags=re.MULTILINE | re.DOTALL):
            assert "==" in requirement
            assert "--hash=sha256:" in requirement


def test_tracked_files_name_no_machine_path() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    banned = re.compile("|".join(("/" + "work/", "/" + "root/", "/home" + "/[a-z]")))
    for name in listed.stdout.split():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".yaml", ".json", ".jsonl", ".txt", "") and path.is_file():
            found = banned.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, f"{name}: {found}"


def test_what_is_read_of_the_environment_is_taken_from_the_tests() -> None:
    """A test that passes only in its writer's shell fails on the build machine."""
    read = re.compile(r'environ(?:\.get)?[\[(]"([A-Z_]+)"')
    names = {name for path in SOURCES for name in read.findall(path.read_text(encoding="utf-8"))}
    assert {name for name in names if not name.startswith("HANDRAIL_")} - {"HOME", "PATH"} <= set(PERSONAL)
    assert "SHELL" in names


def imported_by(code: str) -> set[str]:
    listing = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def heavy_among(modules: set[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


SERVER = (
    "from pathlib import Path; import handrail.surfaces.cli.serve.serve; "
    "from handrail.wiring import *; "
    "place = WorkPlace(project=Path.cwd(), home=Path.cwd(), environ={}); "
    "server = build_server(assemble(place, settings_at(place, {}))); "
    "server.offer.capabilities(stateless=False)"
)


def test_nothing_heavy_is_imported_to_serve() -> None:
    """The modules of `handrail serve` up to the reply to `initialize` and `tools/list`, in the process itself."""
    assert heavy_among(imported_by(f"{SERVER}; server.offer.tools.published()")) == []


def test_a_start_loads_no_toolset_before_a_client_asks_for_its_tools() -> None:
    asked = (
        "from handrail.protocol.exchange import Connection; from handrail.protocol.wire import Request; "
        "server.waits(Connection(print), Request(1, 'initialize', {}))"
    )
    loaded = {name for name in imported_by(f"{SERVER}; {asked}") if name.startswith("handrail.toolsets.")}
    assert loaded == {"handrail.toolsets.vocabulary"}


def test_the_list_of_heavy_modules_can_fail() -> None:
    assert heavy_among(imported_by("import yaml, asyncio")) != []


@pytest.mark.parametrize("command", ["lookup.version", "serve.up", "lookup.tools"])
def test_nothing_heavy_is_imported_by_a_small_command(command: str) -> None:
    assert heavy_among(imported_by(f"import handrail.surfaces.cli.{command}")) == []


@pytest.mark.parametrize(
    ("parts", "heavy"), [("__main__ events", SILENT_HOOK_HEAVY), ("__main__ events context_text", HOOK_HEAVY)]
)
def test_nothing_heavy_is_imported_by_a_hook(parts: str, heavy: tuple[str, ...]) -> None:
    """Beyond what the interpreter itself loads here."""
    code = "; ".join(f"import handrail.hooks.{part}" for part in parts.split())
    added = imported_by(code) - imported_by("pass")
    assert "apsw" in added
    assert [name for name in heavy if name in added] == []
    ours = {name for name in added if name.startswith("handrail.")}
    assert [name for name in sorted(ours) if not name.startswith(HOOK_RINGS)] == []


def own_name(path: Path) -> str:
    return path.relative_to(ROOT / "src" / "handrail").as_posix()


def imports_of(nodes: list[ast.stmt]) -> dict[str, str]:
    """The modules, and what else, that imports bind, by their names there."""
    bound: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            bound |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            bound |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return bound


def late_modules(tree: ast.Module) -> list[tuple[str, str, str | None]]:
    """For each late module of a file: its name there, the module, and the real import beside it."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            real = imports_of(node.body)
            for late in node.orelse:
                if isinstance(late, ast.Assign) and ast.unparse(late.value).startswith("late_module("):
                    assert isinstance(late.value, ast.Call)
                    name, module = ast.unparse(late.targets[0]), ast.literal_eval(late.value.args[0])
                    found.append((name, module, real.get(name)))
    return found


def test_a_function_imports_nothing() -> None:
    """What should be loaded late is, by the one mechanism for it; what need not be is imported at the top."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
                for node in inner:
                    module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
                    found.setdefault(own_name(path), set()).add(module)
    assert {name: modules for name, modules in found.items() if not name.startswith(WAITING)} == IMPORTS_IN_FUNCTIONS


def test_a_late_module_has_its_real_import_beside_it() -> None:
    """Otherwise neither the type checker nor the linter of imports would see it."""
    seen = 0
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        late = late_modules(tree)
        for name, module, real in late:
            assert module == real, f"{own_name(path)}: {name}"
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert len(late) == sum(ast.unparse(call.func) == "late_module" for call in calls), own_name(path)
        seen += len(late)
    assert seen > 100


def test_what_is_declared_by_name_is_a_function_beside_the_declaration() -> None:
    """No linter sees a name in a text, so it may not lead out of its folder, where all imports are allowed."""
    seen = 0
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "by_name":
                module, _, name = ast.literal_eval(call.args[0]).partition(":")
                there = ROOT / "src" / f"{module.replace('.', '/')}.py"
                assert there.parent == path.parent, f"{own_name(path)}: {module}"
                defined = ast.parse(there.read_text(encoding="utf-8")).body
                assert name in {node.name for node in defined if isinstance(node, ast.FunctionDef)}
                seen += 1
    assert seen > 10


def test_nothing_is_late_that_a_start_loads_anyway() -> None:
    loaded = imported_by(SERVER)
    for path in SOURCES:
        module = f"handrail.{own_name(path).removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        if module in loaded:
            late = {name for _, name, _ in late_modules(ast.parse(path.read_text(encoding="utf-8")))}
            assert not [name for name in late & loaded if name.startswith("handrail.")], own_name(path)


def test_a_public_class_is_defined_once() -> None:
    """Who reads a name in one room should not meet another thing of that name in the next."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT / "src" / "handrail")))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


MIRRORED = ("domain", "hooks", "kernel", "outside", "protocol", "setup", "store", "surfaces", "toolsets")
SUBJECTS_OF_THEIR_OWN = {
    "tests/domain/overview/test_crew_lists.py": "the lists of one screen, each a module of few lines",
}
"""Tests below a mirrored folder that are about no one module, and what they are about."""


def mirrored_subjects(folder: Path) -> set[str] | None:
    """What a test in `folder` may be named after: the rooms of the same folder of the source. None: after anything,
    since the folder itself stands for one module."""
    there = ROOT / "src" / "handrail" / folder.relative_to(ROOT / "tests")
    if there.with_suffix(".py").exists():
        return None
    return {path.stem.rstrip("_") for path in there.glob("*") if path.is_dir() or path.suffix == ".py"} - {"__init__"}


@pytest.mark.parametrize("ring", MIRRORED)
def test_a_test_stands_where_its_subject_does(ring: str) -> None:
    """`a/b.py` is tested in `tests/a/test_b.py` or `tests/a/test_b_….py`, or in the folder `tests/a/b`."""
    lost = []
    for path in sorted((ROOT / "tests" / ring).rglob("test_*.py")):
        subjects = mirrored_subjects(path.parent)
        name = path.stem.removeprefix("test_")
        named = subjects is None or any(name == one or name.startswith(f"{one}_") for one in subjects)
        if named == (relative(path) in SUBJECTS_OF_THEIR_OWN):
            lost.append(relative(path))
    assert lost == []


def test_every_subject_of_its_own_is_there() -> None:
    assert [name for name in SUBJECTS_OF_THEIR_OWN if not (ROOT / name).exists()] == []
