"""What is loaded when it is first used: start-up is a feature, and a server pays only for what its client calls.

The one mechanism for that. `by_name` stands for a function, in declarations; `late_module` for a module, in code. The
linter and the type checker see the real import beside it, under `TYPE_CHECKING`. Not for breaking import cycles.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
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
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    def __repr__(self) -> str:
        return f"by_name({self.where!r})"


class late_module:  # noqa: N801 - as above
    """A module, imported when something in it is first used."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
