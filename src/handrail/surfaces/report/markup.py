"""HTML built from parts: whatever is not made here is text, and text stays text. No template, no string that is trusted
because somebody remembered to escape it."""

from __future__ import annotations

import html
from collections.abc import Iterable

_KEPT = frozenset("\n\t")
_EMPTY = frozenset(("meta", "br", "rect", "path", "line", "circle", "polyline"))
"""Elements that hold nothing."""


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


Part = str | Iterable["Part"] | None
"""Text, markup, several of them, or nothing."""


def readable(text: str) -> str:
    """A text without letters that cannot be seen: those could turn a line around or end what they stand in."""
    return "".join(letter if letter.isprintable() or letter in _KEPT else " " for letter in text)


def text(value: str) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(readable(value), quote=True))


def joined(parts: Part) -> Html:
    if parts is None:
        return Html("")
    if isinstance(parts, str):
        return text(parts)
    return Html("".join(joined(part) for part in parts))


def tag(name: str, /, *parts: Part, **attributes: str | float | bool | None) -> Html:
    """One element. A trailing `_` of an attribute's name is left out, another `_` is a hyphen; None and False leave the
    attribute out, True writes its name alone."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY:
        return Html(f"<{name}{written}>" if name in ("meta", "br") else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(parts)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(readable(shown), quote=True)}"'
