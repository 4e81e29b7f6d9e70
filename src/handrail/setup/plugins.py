"""`python -m handrail.setup.plugins [FOLDER]`: writes the plugins and the extension, and removes what is no longer one
of their files. Run it after a change of what init writes, and for a new version."""

from __future__ import annotations

import sys
from pathlib import Path

from handrail import __version__
from handrail.domain.setup.plugins import FOLDER, plugin_files


def write_plugins(root: Path) -> list[str]:
    """Writes every file under a folder, and returns their names."""
    files = plugin_files(__version__)
    for old in [path for path in (root / FOLDER).rglob("*") if path.is_file()]:
        if old.relative_to(root).as_posix() not in files:
            old.unlink()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sorted(files)


if __name__ == "__main__":
    write_plugins(Path(*sys.argv[1:2]))
