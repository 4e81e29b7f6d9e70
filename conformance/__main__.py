"""`python -m conformance`, behind `conformance/run`: runs the suites and prints one line for each, then the sum."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conformance.gaps import gaps
from conformance.inspector import inspector
from conformance.outcomes import Outcome
from conformance.packages import Tools, installed_tools
from conformance.processes import CannotRun
from conformance.suites import REVISIONS, conformance, revisions_with

GAPS, INSPECTOR = "gaps", "inspector"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance/run", description="MCP conformance of Handrail's protocol ring.")
    parser.add_argument("--only", choices=[*REVISIONS, GAPS, INSPECTOR], help="one suite instead of all")
    parser.add_argument("--scenario", metavar="NAME", help="one scenario of the runner, shown in full")
    return parser.parse_args()


def chosen_suites(options: argparse.Namespace, tools: Tools, work: Path) -> Iterator[Outcome]:
    """Each suite, run when it is asked for."""
    only, scenario = options.only, options.scenario
    if scenario is not None:
        revisions = [only] if only in REVISIONS else revisions_with(tools.conformance, scenario, work)
        if not revisions:
            raise CannotRun(f"the runner has no server scenario {scenario}")
    else:
        revisions = [revision for revision in REVISIONS if only in (None, revision)]
    for revision in revisions:
        yield conformance(tools.conformance, revision, work, scenario)
    if scenario is None and only in (None, GAPS):
        yield gaps(work)
    if scenario is None and only in (None, INSPECTOR):
        yield inspector(tools.inspector, work)


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, and so ends what was started
    passed = failed = 0
    try:
        tools = installed_tools()
        with tempfile.TemporaryDirectory(prefix="handrail-conformance-") as work:
            for outcome in chosen_suites(options, tools, Path(work)):
                passed, failed = passed + outcome.passed, failed + len(outcome.failures)
                say(*outcome.lines())
    except CannotRun as problem:
        sys.stderr.write(f"conformance: {problem}\n")
        return 1
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def say(*lines: str) -> None:
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
