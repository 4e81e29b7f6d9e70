"""`handrail` with a patience of its own: the first argument is a `Patience` as JSON, the others are the command's. With
`tick_s` time stands still but for that much at every look at the clock."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from typing import Any

import msgspec

from handrail import wiring
from handrail.__main__ import main
from handrail.surfaces.elicitation import Patience


def hurry(settings: dict[str, Any]) -> None:
    tick_s = settings.pop("tick_s", None)
    patience = Patience(**settings)
    if tick_s is not None:
        ticks = itertools.count()
        patience = msgspec.structs.replace(patience, now_s=lambda: next(ticks) * tick_s)
    for name in ("CatalogTools", "CatalogMethods"):
        setattr(wiring, name, partial(getattr(wiring, name), patience=patience))


if __name__ == "__main__":
    hurry(msgspec.json.decode(sys.argv.pop(1), type=dict[str, Any]))
    main()
