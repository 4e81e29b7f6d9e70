"""What a project's own file may say about each setting before a person here has trusted it, and what of it a running
server follows. One table for all settings; a test holds it complete. Pure: no file is read here.

A config file comes with its repository and may be written by an agent. So what it would run, reach or loosen waits
until this person has seen it (`handrail trust`), and what restricts applies at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from handrail.kernel.late import late_module

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")

ANY_MODEL = "*"
"""The price of models without one of their own."""


class Obeyed(Enum):
    """What a line in the project's file does while nobody here has trusted it."""

    ALWAYS = "as it is"
    """Harmless: it runs nothing, reaches nothing and loosens nothing."""
    STRICTER = "as far as it is stricter"
    TRUSTED = "once trusted"


class Heard(Enum):
    """When a change of the file reaches a server that is running."""

    AT_START = "at its next start"
    WHEN_STRICTER = "from the next call, if stricter"
    WHEN_TRUSTED = "from the next call, once trusted"


class Caution(NamedTuple):
    """How careful to be with one setting."""

    obeyed: Obeyed
    heard: Heard = Heard.AT_START
    stricter: Callable[[Any, Any], Any] = lambda one, other: one if one == other else other
    """What holds if both values are demanded. Only where a stricter value is obeyed."""


def _word(strict: str) -> Callable[[str, str], str]:
    return lambda one, other: strict if strict in (one, other) else one


def _later(*words: str) -> Callable[[str, str], str]:
    """The stricter of some words, of which each is stricter than those before it."""
    return lambda one, other: max(one, other, key=lambda word: words.index(word) if word in words else len(words))


def _fewer(one: int, other: int) -> int:
    """The smaller limit, where 0 is none."""
    return min(one or other, other or one)


def _lower_limits(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: min(limits[name] for limits in (one, other) if name in limits) for name in {**one, **other}}


def _higher_prices(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """What costs more is spent sooner. A model without a price has the one of any other model."""

    def price(prices: Mapping[str, float], model: str) -> float:
        return prices.get(model, prices.get(ANY_MODEL, 0.0))

    return {model: max(price(one, model), price(other, model)) for model in {**one, **other}}


def _in_both(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    others = set(other)
    return tuple(name for name in one if name in others)


_HARMLESS = Caution(Obeyed.ALWAYS)
_TRUSTED = Caution(Obeyed.TRUSTED)

CAUTIONS: dict[str, Caution] = {
    "db": _TRUSTED,
    "global_store": _TRUSTED,
    "durable": _HARMLESS,
    "profile": _HARMLESS,
    "toolsets": _HARMLESS,
    "enable": _HARMLESS,
    "dynamic": _HARMLESS,
    "output_schemas": _HARMLESS,
    "max_message_bytes": Caution(Obeyed.STRICTER, Heard.AT_START, min),
    "checks": Caution(Obeyed.TRUSTED, Heard.WHEN_TRUSTED),
    "snapshot_days": Caution(Obeyed.STRICTER, Heard.AT_START, max),
    "snapshot_count": Caution(Obeyed.STRICTER, Heard.AT_START, max),
    "check_timeout_s": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, min),
    "heartbeat_ms": _HARMLESS,
    "identity": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _word("strict")),
    "approvals": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _word("human")),
    "own_flows": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _in_both),
    "reservations": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _later("warn", "ask", "deny")),
    "event_history": _HARMLESS,
    "max_wait_ms": _HARMLESS,
    "max_children": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _fewer),
    "budget": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _lower_limits),
    "prices": Caution(Obeyed.STRICTER, Heard.WHEN_STRICTER, _higher_prices),
    "http": _TRUSTED,
    "allow_hosts": _TRUSTED,
}
"""For every setting: evidence that is kept for less time, a limit that is raised and a flow that asks less are weaker,
as an agent's answer at a gate is. Any setting that names a program, an address or a place is TRUSTED."""

STORES = ("db", "global_store")
"""Settings that are refused rather than ignored while they wait: with another store, the work would seem to be gone."""


class Agreed(msgspec.Struct, frozen=True, kw_only=True):
    """What a person on this machine has agreed to for one project."""

    project: str = ""
    """The project's real path."""
    marks: Mapping[str, str] = {}
    """For each setting that waits for trust, the hash of the value that was shown."""
    limits: Mapping[str, Any] = {}
    """For each setting that can be stricter or weaker, the value that was agreed to; the file alone weakens none."""

    def trusts(self, name: str, value: Any) -> bool:
        return name in self.marks and self.marks[name] == mark_of(self.project, name, value)


def mark_of(project: str, name: str, value: Any) -> str:
    """A full hash of one setting's value in one project: the value may hold a password."""
    written = msgspec.json.encode([name, value], enc_hook=str)
    return hashlib.sha256(project.encode(errors="surrogateescape") + b"\0" + written).hexdigest()


class Waiting(NamedTuple):
    """A line of the project's file that is not followed until somebody here trusts it."""

    name: str
    said: Any
    """What the file says; None if it no longer says anything and what was agreed to stays in force."""
    in_force: Any
    """What holds meanwhile."""


def waiting_text(waiting: Waiting) -> str:
    """One line, in ASCII: the values came with the repository and must not control a terminal."""
    said = "nothing any more" if waiting.said is None else ascii_json(waiting.said)
    return f"{waiting.name} = {said}"


def ascii_json(value: Any) -> str:
    """A value as JSON in which every character is visible."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return "".join(one if " " <= one <= "~" else one.encode("unicode-escape").decode() for one in text)
