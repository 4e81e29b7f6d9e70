"""The toolsets of one running server: which are on, under which names, and turning more on while clients are
connected."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from handrail.catalog import TOOLSETS
from handrail.operation import Operation, PublishedOperation, Toolset
from handrail.selection import DYNAMIC, Selection, published


class _Shown:
    """A selection and its operations, which are loaded when first needed: starting up need not wait for them."""

    def __init__(self, selection: Selection, *, read_only: bool) -> None:
        self.selection = selection
        self._read_only = read_only

    @functools.cached_property
    def published(self) -> tuple[PublishedOperation, ...]:
        return published(self.selection, read_only=self._read_only)

    @functools.cached_property
    def by_name(self) -> dict[str, Operation[Any, Any]]:
        return {entry.name: entry.operation for entry in self.published}


class ToolsetSwitch:
    """Implements the `Switchboard` port over a selection that can grow."""

    def __init__(self, selection: Selection, *, read_only: bool = False) -> None:
        self.read_only = read_only
        """True if only operations that change nothing are available."""
        self._lock = threading.Lock()
        self.when_changed: Callable[[], None] = lambda: None
        self._shown = _Shown(selection, read_only=read_only)

    def active(self) -> tuple[Toolset, ...]:
        return self._shown.selection.toolsets

    def available(self) -> tuple[Toolset, ...]:
        return tuple(toolset for toolset in TOOLSETS if toolset.name != DYNAMIC)

    def published(self) -> tuple[PublishedOperation, ...]:
        return self._shown.published

    def find(self, name: str) -> Operation[Any, Any] | None:
        return self._shown.by_name.get(name)

    def enable(self, names: Sequence[str]) -> None:
        """Adds toolsets; names already on change nothing and announce nothing."""
        with self._lock:
            grown = self._shown.selection.with_toolsets(names)
            changed = grown != self._shown.selection
            if changed:
                self._shown = _Shown(grown, read_only=self.read_only)
        if changed:
            self.when_changed()
