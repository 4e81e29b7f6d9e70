"""What was checked and how it came out. Counting and wording only."""

from __future__ import annotations

import msgspec


class Outcome(msgspec.Struct, kw_only=True):
    """The checks of one suite."""

    suite: str
    passed: int = 0
    failures: list[str] = msgspec.field(default_factory=list)
    skipped: list[str] = msgspec.field(default_factory=list)

    def check(self, what: str, problem: str | None) -> None:
        """One check: passed where there is no problem."""
        if problem is None:
            self.passed += 1
        else:
            self.failures.append(f"{what}: {problem}")

    def lines(self) -> list[str]:
        """Every failure, then the one line that counts."""
        counts = f"{self.suite}: {self.passed} passed, {len(self.failures)} failed"
        if self.skipped:
            counts += f", {len(self.skipped)} skipped ({', '.join(self.skipped)})"
        return [*(f"FAILED {self.suite}: {failure}" for failure in self.failures), counts]
