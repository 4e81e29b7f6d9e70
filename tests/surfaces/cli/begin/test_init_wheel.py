"""The wheel, as a person gets it: built, installed into an environment of its own with no checkout near, and used. What
it depends on is taken from the environment of the tests, so that nothing is fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from handrail import __version__
from tests.process.peer import ServerProcess

ROOT = Path(__file__).parents[4]
DATA = (".yaml", ".md", ".html", ".js", ".css", "py.typed")


def run(words: list[str], folder: Path, **environ: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL", "PYTHON"))}
    done = subprocess.run(words, cwd=folder, env={**kept, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(source: Path, folder: Path, target: str) -> Path:
    run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)], source)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("dist"), "wheel")


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the installed programs."""
    folder = tmp_path_factory.mktemp("clean") / "env"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "-q", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    run([sys.executable, "-m", "pip", "--python", str(python), *install], folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A path that comes from a .pth file has its own .pth files ignored: no editable Handrail comes with it.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"


def test_everything_that_is_no_code_is_in_it(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("handrail/")}
    tracked = run(["git", "ls-files", "src/handrail"], ROOT).splitlines()
    assert {name.removeprefix("src/") for name in tracked if name.endswith(DATA)} <= inside
    assert not [name for name in inside if "__pycache__" in name or "/tests/" in name]


def test_it_is_used_with_no_checkout_near(programs: Path, tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    run(["git", "init", "-q", "."], project)
    environ = {"HOME": str(home)}
    handrail = str(programs / "handrail")
    assert run([handrail, "--version"], project, **environ).strip() == f"handrail {__version__}"
    where = "import handrail; print(handrail.__file__)"
    assert run([str(programs / "python"), "-P", "-c", where], project).startswith(str(programs.parent))
    run([handrail, "init", "--yes", "--client", "claude-code"], project, **environ)
    server = json.loads((project / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["handrail"]
    words = [server["command"], *server["args"]]
    assert words[0] == str(programs / "python")
    with ServerProcess(words, cwd=project, env={"HOME": str(home)}) as process:
        info = process.initialize()["result"]["serverInfo"]
        assert (info["name"], info["version"]) == ("handrail", __version__)
        named = process.ask("tools/call", {"name": "workflow_list", "arguments": {}})["result"]["structuredContent"]
        assert named["workflows"], "the guides are in the wheel"
    assert run([str(programs / "handrail-hook"), "start"], project, **environ) == "", "nothing is open"


@pytest.mark.torture
def test_the_sdist_is_enough_to_build_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(built(ROOT, tmp_path / "sdist", "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    again = built(tmp_path / f"handrail-{__version__}", tmp_path / "wheel", "wheel")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()
