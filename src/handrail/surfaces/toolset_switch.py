"""The toolsets of one running server: which are on, under which names, and turning more on while clients are
connected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from handrail.catalog import TOOLSETS
from handrail.operation import Operation, PublishedOperation, Toolset
from handrail.selection import DYNAMIC, Selection, published


class ToolsetSwitch:
    """Implements the `Switchboard` port over a selection that can grow."""

    def __init__(self, selection: Selection, *, read_only: bool = False) -> None:
        self.read_only = read_only
        """True where nothing that changes anything is on offer."""
        self._lock = threading.Lock()
        self.when_changed: Callable[[], None] = lambda: None
        self._take(selection)

    def _take(self, selection: Selection) -> None:
        entries = published(selection, read_only=self.read_only)
        self._selection = selection
        self._published = entries
        self._by_name: dict[str, Operation[Any, Any]] = {entry.name: entry.operation for entry in entries}

    def active(self) -> tuple[Toolset, ...]:
        return self._selection.toolsets

    def available(self) -> tuple[Toolset, ...]:
        return tuple(toolset for toolset in TOOLSETS if toolset.name != DYNAMIC)

    def published(self) -> tuple[PublishedOperation, ...]:
        return self._published

    def find(self, name: str) -> Operation[Any, Any] | None:
        return self._by_name.get(name)

    def enable(self, names: Sequence[str]) -> None:
        """Adds toolsets; names already on change nothing and announce nothing."""
        with self._lock:
            grown = self._selection.with_toolsets(names)
            changed = grown != self._selection
            if changed:
                self._take(grown)
        if changed:
            self.when_changed()
