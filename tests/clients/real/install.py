"""Installs the clients from `npm/package-lock.json` into `.cache/`, once per change of that file.

The lock holds versions and hashes, and no registry's address. No package's install script is run: what a client needs
comes as a package for this platform.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

import msgspec

LOCKED = Path(__file__).parent / "npm"
CACHE = Path(__file__).parent.parent.parent.parent / ".cache"
CI = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
DEADLINE_S = 900.0
NODE_NEEDED = 20
"""The oldest Node that Gemini CLI runs on; the others bring what they need."""


class MissingClientsError(Exception):
    """The clients cannot be had here; its text is the one line to show."""


def folder() -> Path:
    """Where this lock's clients are, or will be."""
    lock = (LOCKED / "package-lock.json").read_bytes()
    return CACHE / "clients" / hashlib.sha256(lock).hexdigest()[:16]


def modules() -> Path | None:
    """The installed packages; None where `install` has not been."""
    return folder() / "node_modules" if (folder() / "complete").exists() else None


def versions() -> dict[str, str]:
    """By package, as the lock pins them."""
    wanted = msgspec.json.decode((LOCKED / "package.json").read_bytes())
    pinned: dict[str, str] = wanted["dependencies"]
    return pinned


def install() -> Path:
    """The installed packages, after fetching them if they are not there."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise MissingClientsError("the real clients are pinned for Linux on x86-64 alone")
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise MissingClientsError("no Node: the real clients need node and npm on the PATH")
    major = int(
        subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout[1:].split(".")[0]
    )
    if major < NODE_NEEDED:
        raise MissingClientsError(f"Node {major} is too old: the real clients need {NODE_NEEDED} or newer")
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _fetch(npm, place)
    return place / "node_modules"


def _fetch(npm: str, place: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCKED / name, place / name)
    quiet = {**os.environ, "npm_config_update_notifier": "false"}
    done = subprocess.run(
        [npm, *CI], cwd=place, env=quiet, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    if done.returncode != 0:
        said = done.stderr.strip() or "no reason given"
        raise MissingClientsError(f"npm could not install the real clients: {said.splitlines()[0]}")
    (place / "complete").touch()
