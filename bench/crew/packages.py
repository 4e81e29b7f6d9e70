"""What the peers of this bench are made of: pinned packages, each in a folder of its own under .cache."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from bench.environments import NotInstalled, bench_home, install, is_current, python_in, stamp

NODE_PINS = {
    "server-memory": ("@modelcontextprotocol/server-memory", "2026.8.31"),
    "shrimp": ("mcp-shrimp-task-manager", "1.0.21"),
    "backlog": ("backlog.md", "1.52.0"),
    "task-master": ("task-master-ai", "0.43.1"),
}
AGENT_MAIL_PIN = "mcp-agent-mail==0.1.0"


def node_command(peer: str, command: str) -> Path:
    """A command of a Node peer, installed when it is missing or its pin changed."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotInstalled("left out, no node and npm on the PATH")
    folder = bench_home("crew") / f"node-{peer}"
    package, version = NODE_PINS[peer]
    manifest = json.dumps({"private": True, "dependencies": {package: version}}, indent=2)
    if not is_current(folder, manifest):
        print(f"installing {package}@{version} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(manifest)
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        install([npm, "install", *options], f"npm install {package}", cwd=folder)
        stamp(folder, manifest)
    return folder / "node_modules" / ".bin" / command


def agent_mail_python() -> Path:
    return python_in(bench_home("crew") / "python-agent-mail", (AGENT_MAIL_PIN,))
