"""Standard output and error where they are a terminal: whatever is written there passes through here, and only text and
our own colours get to the terminal. Everything else is shown as JSON would write it: no text can move the cursor, hide
or reverse a line, and JSON stays the same JSON. What goes to a file or a pipe is not touched.

Whether colour is wanted, and text in colour. Click finds out, when printing, whether there is a terminal to show it.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from handrail.kernel.late import late_module

if TYPE_CHECKING:
    import unicodedata
else:
    unicodedata = late_module("unicodedata")

_COLOUR = re.compile(r"(\x1b\[(?:0|1|2|3[1-6]|9[1-6])m)")
"""The colours and weights that `colour.styled` makes. Neither hidden nor black nor white is among them: at worst a text
that brings some along is coloured."""
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_BLANK = frozenset(
    map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"),
) | {*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)}
"""Letters and marks that nobody sees, though they count as printable. The two selectors that make a sign a text or a
picture are not among them: signs need them."""


class _Shown(dict[int, int | str]):
    """How each character is shown, found out when it is first met."""

    def __missing__(self, code: int) -> int | str:
        is_seen = unicodedata.category(chr(code)) not in _UNSEEN and code not in _BLANK
        self[code] = code if is_seen or code in (0x09, 0x0A) else _escape(code)
        return self[code]


_shown = _Shown()


def shown(text: str) -> str:
    """A text as a terminal may have it, with our colours, line ends and tabs."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    parts = _COLOUR.split(text)
    parts[::2] = [part.translate(_shown) for part in parts[::2]]
    return "".join(parts)


def _escape(code: int) -> str:
    """As JSON writes it: above 0xFFFF in two halves."""
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"


class TerminalStream(io.TextIOWrapper):
    """A text stream to a terminal."""

    replaced: TextIO
    """The stream of before. It is kept, because with it the terminal would be closed."""

    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)

    def steer(self, codes: str) -> None:
        """Writes what is meant to move the cursor or take the screen."""
        super().write(codes)


def guard_terminals() -> None:
    """Lets all that this process prints on a terminal pass through a `TerminalStream`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, TerminalStream) and stream.isatty():
            setattr(sys, name, _guarded(stream))


def _guarded(stream: io.TextIOWrapper) -> TerminalStream:
    is_ascii = codecs.lookup(stream.encoding).name == "ascii"  # then click would write past us, in UTF-8
    stream.flush()
    encoding = "utf-8" if is_ascii else stream.encoding
    made = TerminalStream(stream.buffer, encoding=encoding, errors="backslashreplace", line_buffering=True)
    made.replaced = stream
    return made


def steer(stream: TextIO, codes: str) -> None:
    """Writes codes that steer a terminal: never anything that anybody else wrote."""
    if isinstance(stream, TerminalStream):
        stream.steer(codes)
    else:
        stream.write(codes)


def colour_wanted(environ: Mapping[str, str]) -> bool | None:
    """True or False if somebody said so; None for colour on terminals only. NO_COLOR wins."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    forced = any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return True if forced else None


def styled(text: str, **looks: Any) -> str:
    """A text in a click style, unless colour is unwanted."""
    return text if colour_wanted(os.environ) is False else click.style(text, **looks)
