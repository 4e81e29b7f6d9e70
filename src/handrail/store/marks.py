"""The mark of a store that has moved: nobody opens it or writes to it any more, and anyone who tries is told where it
is.

The mark is part of the schema number, so checking it costs no query of its own, and a Handrail that does not know the
mark refuses the store as too new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail.kernel.errors import StoreUnusable
from handrail.kernel.late import late_module

if TYPE_CHECKING:
    import json
    import shlex
else:
    json = late_module("json")
    shlex = late_module("shlex")

MOVED = 1_000_000
"""Added to the schema number."""
MOVED_KEY = "moved_to"
"""The key in `meta` under which the new address is kept, without any password."""


def is_moved(schema: int) -> bool:
    return schema > MOVED


def moved(location: str, moved_to: str | None) -> StoreUnusable:
    """The refusal for a store that has moved."""
    where = moved_to or "another place"
    secret = " (there with its password, if it has one)" if "://" in where else ""
    said = json.dumps(where, ensure_ascii=False)
    return StoreUnusable(
        f"{location} has moved to {where}; nothing was written",
        hint=f"say db = {said} in .handrail/config.toml, or set HANDRAIL_DB{secret}, and start again; "
        f"`handrail db release --db {shlex.quote(location)}` makes the old one usable as it was",
        moved_to=where,
    )
