"""How this very Handrail is started again, by a client and tomorrow: the words that init writes into clients' files.

An interpreter in an environment that somebody installed stays where it is. One that `uvx` made lies in a cache that may
be emptied, so there the words go through uv, with the same package; `pipx run` offers nothing that could be written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from handrail import __version__
from handrail.kernel.errors import PlaceUnusable

INSTALL = "install it: `pipx install handrail` or `uv tool install handrail`; then run init"
_UV_CACHE = re.compile(r"(archive|environments)-v\d+")
MODULE = ("-P", "-m", "handrail")
"""-P: a folder named handrail in a client's current directory must not be mistaken for it."""


def launch(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The words that start this Handrail: an absolute path first, and nothing that must look something up."""
    if not sys.executable:
        raise PlaceUnusable("nobody knows where this Python is", hint="run init with an interpreter's full path")
    folder = Path(sys.prefix).parent
    if _UV_CACHE.fullmatch(folder.name):
        known = os.environ if environ is None else environ
        uv = known.get("UV") or shutil.which("uv", path=known.get("PATH", ""))
        if not uv:
            raise PlaceUnusable("this Handrail lies in uv's cache, and there is no uv to start it again", hint=INSTALL)
        return (uv, "tool", "run", "--from", package(), "python", *MODULE)
    if folder.name == ".cache" or (folder.name == "pipx" and folder.parent.name == ".cache"):
        raise PlaceUnusable("this Handrail was made by `pipx run`, for one call", hint=INSTALL)
    return (sys.executable, *MODULE)


def package() -> str:
    """What this was installed from, as installers take it: an address if it came from one, else name and version."""
    try:
        source = json.loads(distribution("handrail").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        source = {}
    address = source.get("url", "") if isinstance(source, dict) else ""
    if not address:
        return f"handrail=={__version__}"
    kind = source.get("vcs_info", {}).get("vcs")
    return f"{kind}+{address}" if kind else str(address)
