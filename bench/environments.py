"""Where the peers' packages live: environments of the benches' own under .cache, pinned, made once, ignored by git.

Nothing here is a dependency of Handrail. What cannot be installed is reported in one line and its peers are left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache"


class NotInstalled(Exception):  # noqa: N818 - no error: the rest is measured without it
    """Says in one line what is missing."""


def bench_home(name: str) -> Path:
    """A bench's own folder, ignored by git."""
    home = CACHE / "bench" / name
    home.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    return home


def python_in(folder: Path, pins: Sequence[str]) -> Path:
    """The interpreter of one Python environment, made when it is missing or its pins changed."""
    python = folder / "bin" / "python"
    if is_current(folder, wanted := "\n".join((sys.version, *pins))):
        return python
    print(f"installing {', '.join(pins)} …", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    if uv := _working_uv():
        install([uv, "venv", "-q", "-p", sys.executable, str(folder)], "uv venv")
        install(
            [uv, "pip", "install", "-q", "--compile-bytecode", "-p", str(python), *pins],
            f"uv pip install {folder.name}",
        )
    else:
        install([sys.executable, "-m", "venv", str(folder)], "python -m venv")
        install(
            [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins],
            f"pip install {folder.name}",
        )
    stamp(folder, wanted)
    return python


def is_current(folder: Path, wanted: str) -> bool:
    pins = folder / "pins"
    return pins.exists() and pins.read_text() == wanted


def stamp(folder: Path, wanted: str) -> None:
    (folder / "pins").write_text(wanted)


def install(command: list[str], what: str, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise NotInstalled(f"left out, {what} failed: {reason[0]}")


def _working_uv() -> str | None:
    uv = shutil.which("uv")
    if uv is None or subprocess.run([uv, "--version"], capture_output=True, check=False).returncode != 0:
        return None
    return uv
