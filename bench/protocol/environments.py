"""Where the peers' packages live: environments of the bench's own under .cache, pinned, made once, ignored by git.

Nothing here is a dependency of Handrail. What cannot be installed is reported in one line and its peers are left out.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache"
HOME = CACHE / "bench" / "protocol"
PEERS = Path(__file__).parent / "peers"

PYTHON_PINS = {
    "mcp": ("mcp==2.3.0",),
    "mcp-uvloop": ("mcp==2.3.0", "uvloop==0.23.0", "httptools==0.9.0"),
    "fastmcp": ("fastmcp==4.1.2", "mcp==2.3.0"),
}
NODE_PINS = {
    "@modelcontextprotocol/sdk": "1.32.2",
    "@modelcontextprotocol/server": "2.4.0",
    "zod": "4.6.7",
}


class NotInstalled(Exception):  # noqa: N818 - no error: the rest is measured without it
    """Says in one line what is missing."""


def prepare_home() -> Path:
    """The bench's own folder, with an empty one inside for servers to run in."""
    (HOME / "empty").mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    return HOME


def python_of(name: str) -> Path:
    """The interpreter of one Python environment, made when it is missing or its pins changed."""
    folder = HOME / f"python-{name}"
    python, pins = folder / "bin" / "python", PYTHON_PINS[name]
    if _is_current(folder, wanted := "\n".join((sys.version, *pins))):
        return python
    print(f"installing {', '.join(pins)} …", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    if uv := _working_uv():
        _run([uv, "venv", "-q", "-p", sys.executable, str(folder)], "uv venv")
        _run([uv, "pip", "install", "-q", "--compile-bytecode", "-p", str(python), *pins], f"uv pip install {name}")
    else:
        _run([sys.executable, "-m", "venv", str(folder)], "python -m venv")
        _run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins], f"pip install {name}")
    (folder / "pins").write_text(wanted)
    return python


def node_folder() -> Path:
    """The folder with the Node peers beside their packages: Node looks for packages from the importing file upwards."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotInstalled("left out, no node and npm on the PATH")
    folder = HOME / "node"
    folder.mkdir(parents=True, exist_ok=True)
    for source in (*PEERS.glob("*.mjs"), PEERS.parent / "task.json"):
        shutil.copy(source, folder)
    manifest = json.dumps({"private": True, "type": "module", "dependencies": NODE_PINS}, indent=2)
    if not _is_current(folder, manifest):
        print(f"installing {', '.join(NODE_PINS)} …", file=sys.stderr)
        (folder / "package.json").write_text(manifest)
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        _run([npm, "install", *options], "npm install", cwd=folder)
        (folder / "pins").write_text(manifest)
    return folder


def _working_uv() -> str | None:
    uv = shutil.which("uv")
    if uv is None or subprocess.run([uv, "--version"], capture_output=True, check=False).returncode != 0:
        return None
    return uv


def _is_current(folder: Path, wanted: str) -> bool:
    stamp = folder / "pins"
    return stamp.exists() and stamp.read_text() == wanted


def _run(command: list[str], what: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise NotInstalled(f"left out, {what} failed: {reason[0]}")


def pins() -> list[str]:
    """What the peers are made of, for the report."""
    python = dict.fromkeys(pin for pins in PYTHON_PINS.values() for pin in pins)
    return [*python, *(f"{name}@{version}" for name, version in NODE_PINS.items())]
