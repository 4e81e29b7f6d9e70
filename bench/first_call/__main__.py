"""`python -m bench.first_call`: how long somebody waits between `git clone` and the first answer of a tool.

What is cloned is this repository's last commit, from the disk. `./run` then makes its environment from the lock, with
an empty package cache, and starts the server, which is asked for its guides. Beside it stands what nobody can do
without: `pip install` of the same lock into an environment that is there and empty, with a cache as empty.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bench.crew.lines import INITIALIZE
from bench.environments import ROOT
from bench.started import Stuck, surroundings

LOCK = "requirements.lock"
CLONE, FIRST, SECOND, PIP = (
    "git clone",
    "`./run serve`, to the first answer",
    "the second start, to its first answer",
    "`pip install` of the lock",
)
_ASKED = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "workflow_list", "arguments": {}}},
)


class Took(msgspec.Struct, frozen=True):
    """Seconds on the wall, and of processor time in all processes that were started for it."""

    wall: float
    cpu: float


def took(work: Callable[[], None]) -> Took:
    began, before = time.monotonic(), _children_s()
    work()
    return Took(time.monotonic() - began, _children_s() - before)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def clean_environ(home: Path) -> dict[str, str]:
    """The caller's, with package caches that are empty and no environment chosen before."""
    kept = {name: value for name, value in surroundings().items() if name not in ("VIRTUAL_ENV", "VENV")}
    return {**kept, "PIP_CACHE_DIR": str(home / "pip"), "UV_CACHE_DIR": str(home / "uv")}


def clone(place: Path) -> None:
    subprocess.run(["git", "clone", "-q", f"file://{ROOT}", str(place)], check=True)


def first_answer(place: Path, environ: Mapping[str, str]) -> None:
    """Starts `./run serve` and leaves once a tool has answered. Raises Stuck."""
    process = subprocess.Popen(
        ["./run", "serve"], cwd=place, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    lines = b"".join(msgspec.json.encode(message) + b"\n" for message in _ASKED)
    said, _ = process.communicate(lines)
    answers = {message.get("id"): message for message in map(msgspec.json.decode, said.splitlines())}
    if not answers.get(2, {}).get("result", {}).get("content"):
        raise Stuck("the tool did not answer")


def empty_environment(place: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    return place / "bin" / "python"


def pip_install(python: Path, lock: Path, environ: Mapping[str, str]) -> None:
    options = ["-q", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([str(python), "-m", "pip", "install", *options, "-r", str(lock)], env=environ, check=True)


def one_round(number: int) -> dict[str, Took]:
    """Both ways, whichever is first changing from round to round."""
    with tempfile.TemporaryDirectory(prefix="bench-first-call-") as folder:
        home = Path(folder)
        place = home / "clone"
        found = {CLONE: took(lambda: clone(place))}
        environ, beside = clean_environ(home / "ours"), clean_environ(home / "beside")
        python = empty_environment(home / "beside" / "venv")
        steps: list[tuple[str, Callable[[], None]]] = [
            (FIRST, lambda: first_answer(place, environ)),
            (PIP, lambda: pip_install(python, place / LOCK, beside)),
        ]
        for name, work in steps if number % 2 == 0 else reversed(steps):
            found[name] = took(work)
        found[SECOND] = took(lambda: first_answer(place, environ))
        return found


def main() -> int:
    options = argparse.ArgumentParser(prog="bench.first_call", description=__doc__)
    options.add_argument("--rounds", type=int, default=1)
    rounds = [one_round(number) for number in range(options.parse_args().rounds)]
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} at the end\n")
    print("| step | wall s | CPU s |\n|---|--:|--:|")
    for name in (CLONE, FIRST, SECOND, PIP):
        wall = statistics.median(one[name].wall for one in rounds)
        cpu = statistics.median(one[name].cpu for one in rounds)
        print(f"| {name} | {wall:.1f} | {cpu:.1f} |")
    for what in ("wall", "cpu"):
        ratios = [(getattr(one[CLONE], what) + getattr(one[FIRST], what)) / getattr(one[PIP], what) for one in rounds]
        print(f"\nclone to first answer against pip install of the lock, {what}: {statistics.median(ratios):.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
