"""A store that the machine of a test recognises as its own, as its commands and servers would have made it."""

from __future__ import annotations

from pathlib import Path

from handrail.kernel.clock import Clock
from handrail.kernel.ids import Ids
from handrail.outside.machine_key import machine_key
from handrail.store.open_engine import open_engine
from handrail.store.ports import LastingEngine
from handrail.store.store import Store


def own_engine(project: Path, home: Path, *, db: str = "", version: str = "0") -> LastingEngine:
    return open_engine(db, project=project, version=version, durable=False, key=machine_key(home))


def own_store(project: Path, home: Path, *, clock: Clock, ids: Ids, db: str = "") -> Store:
    return Store(own_engine(project, home, db=db), clock=clock, ids=ids, key=machine_key(home))
