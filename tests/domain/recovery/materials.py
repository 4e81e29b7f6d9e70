"""Materials made up: what a recovery could find, in any size and any script.

One number makes one material: drawing every member through Hypothesis costs a hundred times more than packing it.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from handrail.domain.recovery.material import KnownDecision, OpenIssue, RecoveryMaterial, Sibling
from handrail.domain.work.checkpoint import CHECKPOINT_TYPES, Checkpoint
from handrail.domain.work.task import TASK_MACHINE, Task
from handrail.domain.work.workflow import empty_tally
from handrail.kernel.ids import id_text
from tests.store.records import checkpoint, task, workflow

_PARTS = (
    "word ", "must never ", "語学", "🚀", "👩‍💻", "\n\n", "- ", "a/b/c.py ", '"', "\\", "\x01", "é", "ß ", "0123456789",
    "https://example.test/x?y=1 ", "{} ", "ADR-17 ", ". Then ", "\u200d", "🇩🇪",
)  # fmt: skip


class _Dice:
    """Draws from one number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.pick = self._random.choice
        self.count = self._random.randint

    def chance(self) -> bool:
        return self.count(0, 1) == 1

    def text(self) -> str:
        if self.count(0, 5) == 0:
            return ""
        parts = "".join(self.pick(_PARTS) for _ in range(self.count(1, 8)))
        return parts * self.pick((1, 1, 2, 5, 30, 300))

    def name(self) -> str:
        return self.text()[:200] or "task"

    def paths(self) -> list[str]:
        return [f"src/part_{self.count(0, 30)}/{self.name()[:30]}" for _ in range(self.count(0, 12))]

    def value(self, depth: int) -> Any:
        kind = self.count(0, 6) if depth else self.count(0, 3)
        if kind >= 5:
            return {self.name(): self.value(depth - 1) for _ in range(self.count(0, 4))}
        if kind == 4:
            return [self.value(depth - 1) for _ in range(self.count(0, 8))]
        return (self.text(), self.count(-(2**60), 2**60), None, self.chance())[kind]

    def mapping(self) -> dict[str, Any]:
        found: Any = {self.name(): self.value(3) for _ in range(self.count(0, 5))}
        for _ in range(self.pick((0, 0, 0, 100))):
            found = {"in": found}
        mapping: dict[str, Any] = found
        return mapping

    def plan(self) -> dict[str, Any] | None:
        steps = [self.text() for _ in range(self.count(0, 12))]
        return self.pick((None, self.mapping(), {"approach": self.text(), "summary": self.text(), "steps": steps}))

    def task(self, number: int, **given: Any) -> Task:
        return task(
            _id("task", number),
            workflow_id=_id("wf", 1),
            name=self.name(),
            status=self.pick(TASK_MACHINE.states),
            description=self.text(),
            outcome=self.pick((None, self.text())),
            error=self.pick((None, self.text())),
            unmet=self.count(0, 1),
            **given,
        )

    def checkpoint(self, number: int, task_id: str) -> Checkpoint:
        detail = {**self.mapping(), **self.pick(({}, {"step": self.count(0, 5)}))}
        return checkpoint(
            _id("cp", number),
            task_id=task_id,
            sequence=number,
            type=self.pick(CHECKPOINT_TYPES),
            summary=self.text(),
            detail=detail,
            files_changed=self.paths(),
            created_at=number,
        )


def _id(prefix: str, number: int) -> str:
    return id_text(prefix, 1_767_600_000_000 + number, number * 0x9E3779B97F4A7C15F39CC060)


def made_up(seed: int) -> RecoveryMaterial:
    """Any material; what belongs together refers to each other as it does when it is gathered."""
    dice = _Dice(seed)
    count = dice.count(0, 9)
    current = dice.task(
        1,
        plan=dice.plan(),
        context=dice.mapping(),
        checkpoints=count + dice.pick((0, 0, 3)),
        acceptance=[dice.text() for _ in range(dice.count(0, 4))],
        files_likely_affected=dice.paths(),
    )
    own = [dice.checkpoint(number, current.id) for number in range(count, 0, -1)]
    around = [dice.task(number) for number in range(2, 2 + dice.pick((0, 3, 6, 40)))]
    elsewhere = [dice.checkpoint(100 + number, other.id) for number, other in enumerate(around[:12])]
    split = min(dice.count(0, 5), len(around))
    return RecoveryMaterial(
        workflow=workflow(
            _id("wf", 1), name=dice.name(), source_content=dice.text(), plan=dice.plan(), status="in_progress"
        ),
        task=current,
        tally=empty_tally(_id("wf", 1)),
        checkpoints=own,
        shown=dice.count(0, len(own)),
        decisions=[KnownDecision(cp, dice.name()) for cp in (*elsewhere, *own) if cp.type == "decision"],
        replaced=frozenset(),
        more_decisions=dice.chance(),
        issues=[
            *(OpenIssue(current, cp.summary, cp) for cp in own if cp.type == "error"),
            *(OpenIssue(other, other.error, None) for other in around if other.error),
        ],
        replans=[cp for cp in own if cp.type == "replan"],
        needs=around[:split],
        siblings=[Sibling(other, dice.text()) for other in around[split : split + 2]],
        parts=around[split + 2 : split + 4],
        prior=around[split + 4 :],
        parent=around[-1] if around and dice.chance() else None,
        files=dice.paths(),
    )


def materials() -> st.SearchStrategy[RecoveryMaterial]:
    return st.integers(0, 2**32).map(made_up)
