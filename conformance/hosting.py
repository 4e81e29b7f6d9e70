"""The fixture over HTTP, as a process that must live through a whole suite."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance.outcomes import Outcome
from conformance.packages import ROOT
from conformance.processes import ServerProcess, free_port, serving

FIXTURE = (sys.executable, "-m", "conformance.server")


@contextlib.contextmanager
def hosted_fixture(outcome: Outcome, work: Path) -> Iterator[ServerProcess]:
    """The running fixture. It fails the suite by dying, by complaining, and by not leaving when asked to."""
    port = free_port()
    with serving([*FIXTURE, "--http", str(port)], port, cwd=ROOT, log=work / f"fixture-{port}.log") as server:
        yield server
        code, complaints = server.end(), server.complaints()
        if code != 0:
            outcome.failures.append(f"the fixture server ended with {code} on SIGTERM")
        if complaints:
            outcome.failures.append(f"the fixture server complained: {complaints}")
