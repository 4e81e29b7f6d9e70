"""A prompt as data, and how it is filled in. Knows no file, no tool and no client.

A name in braces stands for a tool or a value. A line that names something unavailable is dropped, so one text serves
every choice of toolsets. `{?name}` at the start of a line keeps it only if the name is available, `{!name}` only if it
is not. Steps all start with `1.` and are renumbered. Inserted text is not expanded again: a value with braces stays as
it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

# Plain strings, not compiled here: that would slow down every start.
_NAMED = r"\{([a-z_]+)\}"
_CONDITION = r"\{([?!])([a-z_]+)\}"
_STEP = "1. "
_FENCE = r"`{3,}"
_LIVE = r"@|(?<=!)[`{]|\$(?=[0-9A-Z{(])"
"""Where clients put a file, the output of a command or an argument into a prompt's text: `@file`, !`command`, `$1`."""


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something a person may pass with a prompt."""

    name: str
    description: str
    required: bool = False
    needs: str | None = None
    """The tool without which it has no meaning."""


class PromptText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt, not filled in."""

    name: str
    title: str
    description: str
    needs: tuple[str, ...]
    """Tools it cannot do without; `a | b` means either."""
    aliases: tuple[str, ...] = ()
    """Names under which it is found, too, but not listed."""
    arguments: tuple[PromptArgument, ...] = ()
    body: str = ""

    def misses(self, there: Collection[str]) -> str | None:
        """The first unmet need, or None."""
        return next((need for need in self.needs if not any(name in there for name in alternatives(need))), None)

    def taken(self, there: Collection[str]) -> tuple[PromptArgument, ...]:
        """The arguments that have a meaning here."""
        return tuple(argument for argument in self.arguments if argument.needs is None or argument.needs in there)

    def names(self) -> set[str]:
        """Every name the text refers to."""
        return {*re.findall(_NAMED, self.body), *(name for _, name in re.findall(_CONDITION, self.body))}


def alternatives(need: str) -> list[str]:
    return [name.strip() for name in need.split("|")]


def filled(body: str, there: Mapping[str, str]) -> str:
    """The text with every name replaced, without lines that name something unavailable."""
    lines: list[str] = []
    step = 0
    for written in body.strip().splitlines():
        is_step = written.startswith(_STEP)
        line = _filled_line(written.removeprefix(_STEP) if is_step else written, there)
        if line is None or (not line and (not lines or not lines[-1])):
            continue
        step += is_step
        lines.append(f"{step}. {line}" if is_step else line)
    return "\n".join(lines).strip()


def _filled_line(line: str, there: Mapping[str, str]) -> str | None:
    """The line with its names replaced; None if it is dropped."""
    while (condition := re.match(_CONDITION, line)) is not None:
        wanted, name = condition.groups()
        if (name in there) != (wanted == "?"):
            return None
        line = line[condition.end() :]
    if any(name not in there for name in re.findall(_NAMED, line)):
        return None
    return re.sub(_NAMED, lambda found: there[found[1]], line)


def inert(json: str) -> str:
    """The same JSON without anything that a client would expand: those characters are written as escapes. Whoever wrote
    the words did not type them into that client."""
    return re.sub(_LIVE, lambda found: f"\\u{ord(found[0]):04x}", json)


def quoted(text: str, told: str = "") -> str:
    """Someone else's text, as data: between fences that it cannot close, after a sentence saying what it is."""
    longest = max((len(run) for run in re.findall(_FENCE, text)), default=2)
    fence = "`" * (longest + 1)
    block = f"{fence}\n{text}\n{fence}"
    return f"{told}\n{block}" if told else block
