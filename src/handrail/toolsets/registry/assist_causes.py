"""Toolset `assist`: shows what led to an outcome. Loaded when first used; the tool is declared in `assist.py`."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from handrail.domain.knowledge.causes import trace
from handrail.domain.knowledge.event_sentences import Named, sentence_of, summary_of
from handrail.domain.work.task import task_name
from handrail.kernel.ledger import Event
from handrail.kernel.records import UnitOfWork

ROOM = 4_800
"""Bytes for the events that are shown."""
EDGES = 40


def explain(unit: UnitOfWork, outcome_id: str, max_depth: int) -> dict[str, Any]:
    """What led to it, as the members of the answer."""
    named = functools.partial(task_name, unit)
    found = trace(unit, outcome_id, max_depth)
    outcome = _shown(found.outcome, found.task_id, named)
    shown, room = [], ROOM
    for one in sorted(found.ancestors, key=lambda one: (one.depth, -one.event.position)):
        entry = {**_shown(one.event, one.task_id, named), "depth": one.depth}
        room -= len(msgspec.json.encode(entry))
        if room < 0:
            break
        shown.append(entry)
    shown.sort(key=lambda entry: int(entry["seq"]))
    told = {entry["seq"] for entry in (*shown, outcome)}
    edges = [
        {"from": link.cause.position, "to": link.effect.position, "why": link.why}
        for link in found.links
        if {link.cause.position, link.effect.position} <= told
    ]
    return {
        "summary": summary_of(found, outcome["sentence"], named),
        "outcome": outcome,
        "ancestors": tuple(shown),
        "ancestors_total": len(found.ancestors),
        "edges": tuple(edges[-EDGES:]),
        "whole": found.is_whole and len(shown) == len(found.ancestors) and len(edges) <= EDGES,
    }


def _shown(event: Event, task_id: str | None, named: Named) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "seq": event.position,
        "ts": event.at_ms,
        "kind": event.kind,
        "by": event.actor,
        "sentence": sentence_of(event, task_id, named),
    }
    return {**shown, "task_id": task_id} if task_id is not None else shown
