"""The `handrail` command, also as `python -m handrail`: runs the command line and, should it break, says so plainly."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handrail.kernel.late import late_module
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.terminal import guard_terminals

if TYPE_CHECKING:
    import traceback
else:
    traceback = late_module("traceback")

EXIT_BUG = 70
"""A bug of ours, not the user's mistake: sysexits' EX_SOFTWARE."""


def main() -> None:
    guard_terminals()
    try:
        cli(prog_name="handrail")
    except Exception:  # noqa: BLE001 - the last line of defence, so that a bug has an exit code of its own
        traceback.print_exc()
        print("handrail: this is a bug in Handrail, not in what you typed", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_BUG)


if __name__ == "__main__":
    main()
