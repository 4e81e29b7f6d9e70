"""What the peers of this bench are made of: pinned packages for Python and Node, installed under .cache."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from bench.environments import CACHE, NotInstalled, bench_home, install, is_current, python_in, stamp

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


def prepare_home() -> Path:
    """The bench's own folder, with an empty one inside for servers to run in."""
    (bench_home("protocol") / "empty").mkdir(exist_ok=True)
    return HOME


def python_of(name: str) -> Path:
    """The interpreter of one of the Python environments."""
    return python_in(HOME / f"python-{name}", PYTHON_PINS[name])


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
    if not is_current(folder, manifest):
        print(f"installing {', '.join(NODE_PINS)} …", file=sys.stderr)
        (folder / "package.json").write_text(manifest)
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        install([npm, "install", *options], "npm install", cwd=folder)
        stamp(folder, manifest)
    return folder


def pins() -> list[str]:
    """What the peers are made of, for the report."""
    python = dict.fromkeys(pin for pins in PYTHON_PINS.values() for pin in pins)
    return [*python, *(f"{name}@{version}" for name, version in NODE_PINS.items())]
