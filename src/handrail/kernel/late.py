"""What is loaded when it is first used: start-up is a feature, and a server pays only for what its client calls.

The one mechanism for that. `by_name` stands for a function, in declarations of the same ring. `late_module` stands for
a module, in code; the real import stands beside it, for the type checker and the linter of imports:

    if TYPE_CHECKING:
        from handrail.store import open_engine
    else:
        open_engine = late_module("handrail.store.open_engine")

Not for breaking import cycles, nor for what is loaded anyway. Hooks use it too, so it imports nothing but `sys`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class by_name:  # noqa: N801 - reads as the function it stands for
    """The function `package.module:name`, imported by its first call."""

    __slots__ = ("_function", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            self._function = self.load()
        return self._function(*arguments)

    @property
    def __name__(self) -> str:
        return self.where.partition(":")[2]

    def load(self) -> Callable[..., Any]:
        module, _, name = self.where.partition(":")
        function: Callable[..., Any] = getattr(_loaded(module), name)
        return function

    def __repr__(self) -> str:
        return f"by_name({self.where!r})"


class late_module:  # noqa: N801 - as above
    """A module, imported when something in it is first used."""

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = _loaded(self._name)
        return getattr(self._module, name)

    def __repr__(self) -> str:
        return f"late_module({self._name!r})"


def _loaded(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]
