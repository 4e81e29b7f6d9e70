"""Makes the tasks of a document sequential: each waits for the one before it with the same parent. Pure.

Tasks that may run in parallel (spec-kit's `[P]`) do not wait for their neighbours; the next one without that mark waits
for all of them.
"""

from __future__ import annotations

import msgspec

from handrail.domain.exchange.checklist import TOGETHER
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask


def in_order(document: PlanDocument) -> PlanDocument:
    """The document with the dependencies its order implies."""
    before: dict[str | None, list[str]] = {}
    """For each parent, the tasks that the next sequential one waits for."""
    tasks: list[PlannedTask] = []
    for task in document.tasks:
        waiting = before.setdefault(task.parent, [])
        if task.parallel_group == TOGETHER:
            tasks.append(task)
            waiting.append(task.name)
            continue
        needs = list(dict.fromkeys([*task.depends_on, *waiting]))
        tasks.append(msgspec.structs.replace(task, depends_on=needs))
        before[task.parent] = [task.name]
    return msgspec.structs.replace(document, tasks=tasks)
