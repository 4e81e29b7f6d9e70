"""Who appends and follows, against whom, and whether all that was acknowledged is there. Starts nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.registry.ledger import PAGE, RARELY, problems_of
from bench.store.__main__ import Section, _opened
from bench.store.contestants import Contestant, Place
from bench.store.crews import Effort

AIM = 0.5
MANY = 100
POSTGRES = "postgres"


def _worker(kind: str, size: int = 1) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        if place.server is None:
            module, address = "on_sqlite", str(place.folder / "bench.db")
        else:
            module, address = "on_postgres", place.schema()
        return [[sys.executable, "-m", f"bench.registry.{module}", kind, address, str(size)]]

    return commands


def _append(driver: str, size: int, units: int) -> list[Contestant]:
    each = "1 event a commit" if size == 1 else f"{size} events a commit"
    raw, ours = f"raw {driver}, {each}", f"units, {each}"
    return [
        Contestant(raw, _worker("raw-append", size), Effort(units), by="per_s", keeps=False),
        Contestant(ours, _worker("append", size), Effort(units), raw, "per_s", AIM),
    ]


def _watch(driver: str, pages: int) -> list[Contestant]:
    raw_feed, raw_stream = f"raw {driver}, all events", f"raw {driver}, one stream"

    def of(name: str, kind: str, against: str, aim: float | None) -> Contestant:
        return Contestant(name, _worker(kind), Effort(pages), against, "per_s", aim, keeps=False)

    return [
        Contestant(raw_feed, _worker("raw-feed"), Effort(pages), by="per_s", keeps=False),
        of(f"{raw_feed}, bodies decoded", "raw-decoded", raw_feed, None),
        of("unit.feed", "feed", raw_feed, AIM),
        of("unit.feed, and what each event changed", "feed-changes", raw_feed, None),
        of(f"the same, collecting garbage every {RARELY:,} objects", "feed-changes-rarely", raw_feed, None),
        of("unit.feed, one family of kinds", "feed-family", raw_feed, None),
        Contestant(raw_stream, _worker("raw-stream"), Effort(pages), by="per_s", keeps=False),
        of("unit.events, one stream", "stream", raw_stream, AIM),
        of("unit.feed, one stream", "feed-stream", raw_stream, None),
    ]


def sections(scale: float) -> dict[str, list[Contestant]]:
    """Everything, in the order it is told. `scale` shortens all slices alike. A step is a commit, or a page."""

    def of(count: int) -> int:
        return max(5, int(count * scale))

    return {
        "append-sqlite": [*_append("apsw", 1, of(1000)), *_append("apsw", MANY, of(60))],
        "watch-sqlite": _watch("apsw", of(320)),
        "append-postgres": [*_append("psycopg", 1, of(400)), *_append("psycopg", MANY, of(40))],
        "watch-postgres": _watch("psycopg", of(240)),
    }


def events_of(contestant: Contestant) -> int:
    """The events of one step."""
    if "a commit" not in contestant.name:
        return PAGE
    return MANY if f"{MANY} events" in contestant.name else 1


class RegistrySection(Section):
    """The contestants of one section, measured together and looked over afterwards."""

    def problems(self) -> list[str]:
        found = []
        for contestant in self._all:
            if contestant.keeps and contestant.name in self._crews:
                engine = _opened(self._places[contestant.name])
                told = problems_of(engine, self._acknowledged[contestant.name] * events_of(contestant))
                found += [f"{contestant.name}: {problem}" for problem in told]
                engine.close()
        return found
