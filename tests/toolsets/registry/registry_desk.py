"""A desk with toolsets of the registry on, and things that go on in a thread."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from handrail.catalog import ENABLE_FLAGS
from handrail.store.store import Store
from handrail.wiring import LazyLedger
from tests.toolsets.plan.planned import Desk


class RegistryDesk(Desk):
    """A desk where the named toolsets are on beside those of a plan; over another store where one is given."""

    def __init__(self, folder: Path, *on: str, store: Store | None = None, **settings: Any) -> None:
        flags = tuple(flag for flag, toolset in ENABLE_FLAGS.items() if toolset in on)
        super().__init__(folder, **settings, enable=flags)
        if store is not None:
            self.store = store
            self.with_call(ledger=LazyLedger(lambda: store))

    def with_call(self, **changes: Any) -> None:
        """Changes what every call is given."""
        call = msgspec.structs.replace(self._handrail.call, **changes)
        self._handrail = msgspec.structs.replace(self._handrail, call=call)

    def with_world(self, **answers: Callable[..., Any]) -> None:
        """Changes what the outside world answers."""
        world = copy.copy(self._handrail.call.world)
        for name, answer in answers.items():
            setattr(world, name, answer)
        self.with_call(world=world)


class Beginning:
    """Something that goes on in a thread, and what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._outcome: list[Any] = []
        self._error: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - carried to the test
            self._error.append(error)

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self, within_s: float = 30) -> Any:
        self._thread.join(within_s)
        assert not self._thread.is_alive(), "it did not come to an end"
        if self._error:
            raise self._error[0]
        return self._outcome[0]
