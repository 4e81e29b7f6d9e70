"""`handrail` on a machine whose clock is off: `python -m tests.hostile.clock_ahead.shifted FILE …`. FILE says by how
many seconds, and may be changed meanwhile. The time since the machine's start is real: nobody can set that."""

from __future__ import annotations

import sys
import time
from pathlib import Path


def shift(file: Path) -> None:
    real_s, real_ns = time.time, time.time_ns
    time.time = lambda: real_s() + int(file.read_text())
    time.time_ns = lambda: real_ns() + int(file.read_text()) * 1_000_000_000


if __name__ == "__main__":
    shift(Path(sys.argv.pop(1)))
    from handrail.__main__ import main

    main()
