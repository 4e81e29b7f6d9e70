"""Which toolsets a server has on, and the names their tools answer to. Pure: settings in, a selection out.

Two toolsets may contain a tool of the same name (`workflow_list` of guide.md and of plan.md). The toolset listed first
keeps the bare name; the other's tool answers as `<family>_<name>`. Nothing is merged or guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from handrail.catalog import ANNOUNCED, ENABLE_FLAGS, PROFILES, TOOLSETS, operations_of
from handrail.kernel.errors import ToolsetUnknown
from handrail.kernel.wording import did_you_mean
from handrail.operation import Effect, Operation, PublishedOperation, Toolset

DYNAMIC = "dynamic"
_BY_NAME = {toolset.name: toolset for toolset in TOOLSETS}
_FAMILIES = ("guide", "journal", "pipeline", "plan", "registry")


class Selection(msgspec.Struct, frozen=True):
    """The toolsets that are on, in listing order, and those requested that this version does not have."""

    toolsets: tuple[Toolset, ...]
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(toolset.name for toolset in self.toolsets)

    def with_toolsets(self, names: Sequence[str]) -> Selection:
        """The same selection with more toolsets appended."""
        added = [_toolset_named(name) for name in names]
        return msgspec.structs.replace(self, toolsets=tuple(dict.fromkeys((*self.toolsets, *added))))


def select(*, profile: str, toolsets: Sequence[str], enable: Sequence[str], dynamic: bool) -> Selection:
    """The profile's toolsets, or `toolsets` if given, plus what the `--enable-…` flags add."""
    names: list[str] = []
    missing: list[str] = []
    for asked in toolsets or _profile(profile):
        for name in _expand(asked):
            (names if name in _BY_NAME else missing).append(name)
    named = [name for name in toolsets if name in missing]  # a family means whichever of its members exist
    if named:
        raise ToolsetUnknown(
            f"{_listed(named)} {'is' if len(named) == 1 else 'are'} not in this version",
            hint=f"toolsets here: {', '.join(available_names())}",
            missing=named,
        )
    for flag in enable:
        if flag not in ENABLE_FLAGS:
            raise ToolsetUnknown(
                f"there is no module {flag}{did_you_mean(flag, ENABLE_FLAGS)}",
                hint=f"modules: {', '.join(ENABLE_FLAGS)}",
            )
        names.append(ENABLE_FLAGS[flag])
    if dynamic:
        names.append(DYNAMIC)
    return Selection(
        toolsets=tuple(_BY_NAME[name] for name in dict.fromkeys(names)),
        missing=tuple(dict.fromkeys(missing)),
    )


def published(
    selection: Selection,
    operations: Callable[[str], Iterable[Operation[Any, Any]]] = operations_of,
    *,
    read_only: bool = False,
) -> tuple[PublishedOperation, ...]:
    """Every operation that is on, in listing order, under its name on this server. `read_only` does not change
    names."""
    taken: set[str] = set()
    result: list[PublishedOperation] = []
    for toolset in selection.toolsets:
        for operation in operations(toolset.name):
            name = operation.name if operation.name not in taken else f"{toolset.family}_{operation.name}"
            taken.add(name)
            if operation.effect is Effect.READ or not read_only:
                result.append(PublishedOperation(name, operation))
    return tuple(result)


def available_names() -> tuple[str, ...]:
    """Every toolset that can be requested by name."""
    return tuple(name for name in _BY_NAME if name != DYNAMIC)


def how_to_enable(toolset: Toolset) -> str:
    """The switch that turns a toolset on."""
    return toolset.flag or f"--toolsets {toolset.name}, beside those you have"


def _profile(name: str) -> tuple[str, ...]:
    if name not in PROFILES:
        raise ToolsetUnknown(
            f"there is no profile named {name}{did_you_mean(name, PROFILES)}",
            hint=f"profiles: {', '.join(PROFILES)}",
        )
    return PROFILES[name]


def _expand(name: str) -> tuple[str, ...]:
    if name == "all":
        return tuple(member for family in _FAMILIES for member in _members(family))
    members = _members(name) if name in _FAMILIES else ()
    if members:
        return members
    announced = {toolset for family in ANNOUNCED.values() for toolset in family}
    if name != DYNAMIC and (name in _BY_NAME or name in announced):
        return (name,)
    return (_toolset_named(name).name,)


def _members(family: str) -> tuple[str, ...]:
    built = tuple(toolset.name for toolset in TOOLSETS if toolset.family == family)
    return (*built, *ANNOUNCED.get(family, ()))


def _toolset_named(name: str) -> Toolset:
    if name == DYNAMIC:
        raise ToolsetUnknown("dynamic is turned on by --dynamic", hint="pass --dynamic beside --profile or --toolsets")
    if name in _BY_NAME:
        return _BY_NAME[name]
    announced = tuple(toolset for family in ANNOUNCED.values() for toolset in family)
    if name in announced:
        raise ToolsetUnknown(f"{name} is not in this version", hint=f"toolsets here: {', '.join(available_names())}")
    raise ToolsetUnknown(
        f"there is no toolset named {name}{did_you_mean(name, (*_BY_NAME, *announced))}",
        hint=f"toolsets here: {', '.join(available_names())}",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
