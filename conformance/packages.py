"""Node, the conformance runner and Inspector, from npm into .cache: pinned in package.json, installed once a change.

Nothing here is a dependency of Handrail.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from conformance.processes import CannotRun, run

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache"
FOLDER = CACHE / "conformance"
PINS = Path(__file__).parent / "package.json"
INSTALL_DEADLINE_S = 600.0

# --force: Inspector wants a newer Node than the one npm itself may run on; it gets the Node installed here.
_INSTALL = ("install", "--force", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")


class Tools(msgspec.Struct, frozen=True):
    """Commands, each the beginning of an argument list."""

    conformance: tuple[str, ...]
    inspector: tuple[str, ...]


def installed_tools() -> Tools:
    """The commands, after installing them where they are missing or pinned otherwise."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    stamp, wanted = FOLDER / "installed.json", PINS.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        _install(wanted)
        stamp.write_text(wanted)
    modules = FOLDER / "node_modules"
    node = str(modules / "node" / "bin" / "node")
    ours = modules / "@modelcontextprotocol"
    return Tools(
        conformance=(node, str(ours / "conformance" / "dist" / "index.js")),
        inspector=(node, str(ours / "inspector" / "clients" / "launcher" / "build" / "index.js"), "--cli"),
    )


def _install(wanted: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise CannotRun("npm is not on the PATH; it comes with Node")
    (FOLDER / "package.json").write_text(wanted)
    done = run([npm, *_INSTALL], cwd=FOLDER, deadline_s=INSTALL_DEADLINE_S)
    if done.code != 0:
        raise CannotRun(f"npm install failed: {done.errors.strip() or done.output.strip() or 'no reason given'}")
