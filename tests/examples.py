"""How an operation's example is compared with a real answer: what is shown must be there, more may be."""

from __future__ import annotations

import re
from typing import Any


def shows(shown: Any, real: Any) -> bool:
    """A mapping shows members, a list shows items in order, `...` in a text stands for any text and space for any
    space."""
    if isinstance(shown, dict):
        return isinstance(real, dict) and all(key in real and shows(value, real[key]) for key, value in shown.items())
    if isinstance(shown, list | tuple):
        if not isinstance(real, list | tuple):
            return False
        rest = iter(real)
        return all(any(shows(item, candidate) for candidate in rest) for item in shown)
    if isinstance(shown, str) and "..." in shown:
        pattern = r".*".join(r"\s+".join(map(re.escape, part.split())) for part in shown.split("..."))
        return isinstance(real, str) and re.fullmatch(rf"\s*{pattern}\s*", real, flags=re.DOTALL) is not None
    return bool(shown == real and isinstance(shown, bool) == isinstance(real, bool))
