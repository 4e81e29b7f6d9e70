"""The public servers that are listed beside ours: pinned npm packages, installed anew into the folder of a run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.crew.packages import NODE_PINS
from bench.environments import NotInstalled, install


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One public server, and how its own documentation starts it."""

    name: str
    pin: str
    """A key of NODE_PINS."""
    command: str
    """The command that the package brings."""
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    lay_out: tuple[tuple[str, ...], ...] = ()
    """Commands that make an empty project of it, where it lists less without one. `{}` is the command's path."""

    @property
    def version(self) -> str:
        return "@".join(NODE_PINS[self.pin])


PEERS = (
    Peer(
        name="server-memory",
        pin="server-memory",
        command="mcp-server-memory",
        environ={"MEMORY_FILE_PATH": "memory.jsonl"},
    ),
    Peer(
        name="shrimp-task-manager",
        pin="shrimp",
        command="mcp-shrimp-task-manager",
        environ={"DATA_DIR": "data", "TEMPLATES_USE": "en", "ENABLE_GUI": "false"},
    ),
    Peer(
        name="backlog.md",
        pin="backlog",
        command="backlog",
        arguments=("mcp", "start"),
        lay_out=(("git", "init", "-q"), ("{}", "init", "bench", "--defaults", "--integration-mode", "mcp")),
    ),
    Peer(name="task-master-ai, its default", pin="task-master", command="task-master-mcp"),
    Peer(
        name="task-master-ai, all tools",
        pin="task-master",
        command="task-master-mcp",
        environ={"TASK_MASTER_TOOLS": "all"},
    ),
)


def installed(peer: Peer, home: Path) -> Path:
    """The peer's command; its package is installed once a run. Raises NotInstalled."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotInstalled("left out, no node and npm on the PATH")
    folder = home / f"node-{peer.pin}"
    if not folder.exists():
        package, version = NODE_PINS[peer.pin]
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": {package: version}}))
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        install([npm, "install", *options], f"npm install {package}", cwd=folder)
    command = folder / "node_modules" / ".bin" / peer.command
    if not command.exists():
        raise NotInstalled(f"left out, {peer.version} brings no {peer.command}")
    return command


def started_with(peer: Peer, command: Path, place: Path) -> Sequence[str]:
    """How the peer is started in an empty project of its own."""
    for line in peer.lay_out:
        subprocess.run([part.format(command) for part in line], cwd=place, check=True, capture_output=True)
    return [str(command), *peer.arguments]


def environ_of(peer: Peer, place: Path) -> dict[str, str]:
    """Its settings. A name of a file means one in its project, and its home is the project too."""
    files = {name: str(place / value) for name, value in peer.environ.items() if name.endswith(("_PATH", "_DIR"))}
    return {**peer.environ, **files, "HOME": str(place)}
