"""The samples by name, each told once, with the task an agent lost sight of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from tests.domain.recovery.samples import bugfix, feature, migration
from tests.domain.recovery.samples.telling import Telling


class Sample:
    """A workflow as it stood when its agent was wiped."""

    def __init__(self, told: ModuleType) -> None:
        self.telling = Telling()
        told.tell(self.telling)
        self._task = {"task_id": self.telling.task(told.CURRENT)} if told.CURRENT is not None else {}

    def load(self, **arguments: Any) -> dict[str, Any]:
        """What `task_load_context` answers; without an id where one task only is open."""
        return self.telling.bundle(**self._task, **arguments)

    def summary(self, written: str) -> Any:
        return self.telling.call("workflow_get_summary", format=written)


def _told(module: ModuleType) -> Callable[[], Sample]:
    return cache(lambda: Sample(module))


SAMPLES: dict[str, Callable[[], Sample]] = {
    "a bug fix": _told(bugfix),
    "a feature in parallel parts": _told(feature),
    "a migration with failures": _told(migration),
}
