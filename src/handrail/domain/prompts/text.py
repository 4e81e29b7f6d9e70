"""A prompt as data, and how it is filled in. Knows no file, no tool and no client.

A name in braces stands for a tool or a value. A line that names something that is not there is left out, so one text
serves every choice of toolsets. `{?name}` at the beginning keeps a line only where the name is there, `{!name}` only
where it is not. Steps all begin with `1.` and are counted anew. What is filled in is never looked at again: a value
with braces stays a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

_NAMED = re.compile(r"\{([a-z_]+)\}")
_CONDITION = re.compile(r"\{([?!])([a-z_]+)\}")
_STEP = "1. "
_FENCE = re.compile(r"`{3,}")


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something a person may say with a prompt."""

    name: str
    description: str
    required: bool = False
    needs: str | None = None
    """The tool without which it means nothing."""


class PromptText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt, not filled in."""

    name: str
    title: str
    description: str
    needs: tuple[str, ...]
    """Tools it is nothing without; `a | b` is either."""
    arguments: tuple[PromptArgument, ...] = ()
    body: str = ""

    def misses(self, there: Collection[str]) -> str | None:
        """The first need that is not met, or None."""
        return next((need for need in self.needs if not any(name in there for name in alternatives(need))), None)

    def taken(self, there: Collection[str]) -> tuple[PromptArgument, ...]:
        """The arguments that mean something here."""
        return tuple(argument for argument in self.arguments if argument.needs is None or argument.needs in there)

    def names(self) -> set[str]:
        """Everything that the text refers to."""
        return {*_NAMED.findall(self.body), *(name for _, name in _CONDITION.findall(self.body))}


def alternatives(need: str) -> list[str]:
    return [name.strip() for name in need.split("|")]


def filled(body: str, there: Mapping[str, str]) -> str:
    """The text with every name replaced by what it stands for, and without the lines that have nothing to say."""
    lines: list[str] = []
    step = 0
    for written in body.strip().splitlines():
        is_step = written.startswith(_STEP)
        line = _kept(written.removeprefix(_STEP) if is_step else written, there)
        if line is None or (not line and (not lines or not lines[-1])):
            continue
        step += is_step
        lines.append(f"{step}. {line}" if is_step else line)
    return "\n".join(lines).strip()


def _kept(line: str, there: Mapping[str, str]) -> str | None:
    """The line with its names replaced; None where it is left out."""
    while (condition := _CONDITION.match(line)) is not None:
        wanted, name = condition.groups()
        if (name in there) != (wanted == "?"):
            return None
        line = line[condition.end() :]
    if any(name not in there for name in _NAMED.findall(line)):
        return None
    return _NAMED.sub(lambda found: there[found[1]], line)


def quoted(text: str, told: str = "") -> str:
    """Text that somebody else wrote, as data: between fences that it cannot close, after a sentence on what it is."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    block = f"{fence}\n{text}\n{fence}"
    return f"{told}\n{block}" if told else block
