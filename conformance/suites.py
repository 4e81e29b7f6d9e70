"""The conformance runner against the fixture: one run per revision, every check counted from the files it writes.

Stricter than the runner's own exit code: checks it runs without scoring (tasks, pending scenarios) count, and so do its
warnings, which are what the specification only recommends.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec

from conformance.hosting import hosted_fixture
from conformance.outcomes import Outcome
from conformance.processes import Finished, run

REQUIRED_SETS = ("2026-07-28", "2025-11-25")
"""Revisions for which the runner knows exactly what they require."""
REVISIONS = (*REQUIRED_SETS, "2025-06-18", "2025-03-26")
"""For the older ones everything it has that applies to them; 2024-11-05 it does not know."""
DEADLINE_S = 300.0

_FAILED = ("FAILURE", "WARNING")
_TOTAL = re.compile(r"^(?:Total: (\d+) passed|Passed: (\d+)/\d+), (\d+) failed", re.MULTILINE)


class Check(msgspec.Struct, frozen=True):
    """One check as the runner records it."""

    id: str
    status: str
    errorMessage: str | None = None  # noqa: N815 - the runner's spelling


def conformance(command: tuple[str, ...], revision: str, work: Path, scenario: str | None = None) -> Outcome:
    """One revision, or one scenario of it."""
    outcome = Outcome(suite=f"conformance {revision}")
    with hosted_fixture(outcome, work) as server:
        results = work / f"results-{revision}"
        arguments = ["server", "--url", server.url, *_chosen(revision, scenario), "-o", str(results)]
        done = run([*command, *arguments], cwd=work, deadline_s=DEADLINE_S)
        if scenario is not None:
            sys.stdout.write(done.output)
        _count(outcome, results)
        _hold_against_the_runner(outcome, done)
    return outcome


def revisions_with(command: tuple[str, ...], scenario: str, work: Path) -> list[str]:
    """The revisions that require a scenario, or run it without scoring it."""
    listed = re.compile(rf"^ +- {re.escape(scenario)}( \[server\])?$", re.MULTILINE)
    return [
        revision
        for revision in REQUIRED_SETS
        if listed.search(run([*command, "list", "--requirements", revision], cwd=work, deadline_s=DEADLINE_S).output)
    ]


def _chosen(revision: str, scenario: str | None) -> list[str]:
    if scenario is not None:
        return ["--scenario", scenario, "--spec-version", revision, "--force"]
    if revision in REQUIRED_SETS:
        return ["--requirements", revision]
    return ["--suite", "all", "--spec-version", revision]


def _count(outcome: Outcome, results: Path) -> None:
    for record in sorted(results.glob("*/checks.json")):
        for check in msgspec.json.decode(record.read_bytes(), type=list[Check]):
            if check.status == "SUCCESS":
                outcome.passed += 1
            elif check.status in _FAILED:
                outcome.failures.append(f"{check.status} {check.id}: {check.errorMessage or 'no reason given'}")
            elif check.status == "SKIPPED":
                outcome.skipped.append(check.id)


def _hold_against_the_runner(outcome: Outcome, done: Finished) -> None:
    """A scenario that broke leaves no file, so the runner's own count must agree with ours."""
    said = _TOTAL.search(done.output)
    if said is None:
        tail = (done.errors.strip() or done.output.strip()).splitlines()[-1:]
        outcome.failures.append(f"the runner ended with {done.code} before it had counted: {' '.join(tail)}")
        return
    passed, failed = int(said[1] or said[2] or 0), int(said[3])
    counted = sum(failure.startswith("FAILURE ") for failure in outcome.failures)
    if (passed, failed) != (outcome.passed, counted):
        outcome.failures.append(f"the runner counts {passed} passed and {failed} failed, its files differ")
