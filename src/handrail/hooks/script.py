"""The program `handrail-hook`: `python -m handrail.hooks` for plugins, which know no interpreter's path."""

from __future__ import annotations

import sys

from handrail.hooks.__main__ import main


def run() -> None:
    main(sys.argv[1:])
