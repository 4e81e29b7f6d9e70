"""Reserving paths: an agent asks others to leave some paths alone for a while, releases them, or asks whose they are.

A reservation counts while it is not released, has not expired, and its agent is present; that is checked on every read,
and nothing sweeps. All reservations of a repository are in one stream, which every grant has read: if two agents ask
for the same path at once, one comes second and learns of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import Agent, agent_name
from handrail.domain.crew.outbox import SYSTEM, Letter, post
from handrail.domain.crew.presence import is_present
from handrail.domain.journal.areas import are_around, read_areas
from handrail.domain.workspaces.records import Reservation
from handrail.domain.workspaces.scope_overlap import Reach
from handrail.kernel.errors import InvalidParams
from handrail.kernel.records import Query, UnitOfWork

MOST_PATHS = 100
"""The most paths in one reservation."""
PATH_LENGTH = 1000
TTL_MS = 3_600_000
MOST_TTL_MS = 24 * TTL_MS
HELD = 50
"""The most reservations of one agent in one repository: every new request is compared with all of them."""
PATHS_LOST = "paths_lost"


class ReservationRequest(NamedTuple):
    """What is requested. The paths have been through `tidy_paths`."""

    repository: str
    paths: list[str]
    task_id: str | None = None
    ttl_ms: int = TTL_MS
    reason: str | None = None


class InTheWay(NamedTuple):
    """Another agent's reservation, and a path that it shares with the request. The path need not exist."""

    reservation: Reservation
    name: str
    """The other agent's name."""
    path: str


class ReservationOutcome(NamedTuple):
    """The outcome of a request: a reservation, or what is in its way."""

    reservation: Reservation | None
    in_the_way: list[InTheWay]


class ReservedByOther(NamedTuple):
    """Files that another agent has reserved."""

    reservation: Reservation
    name: str
    files: list[str]


def tidy_paths(paths: Iterable[str]) -> list[str]:
    """The paths in stored form, each once, where it stood last: a later path overrules those before it. Refused if they
    reserve nothing or leave the repository."""
    kept = list(dict.fromkeys(path.strip() for path in reversed(list(paths))))[::-1]
    for path in kept:
        if ".." in path.replace("\\", "/").split("/"):
            raise InvalidParams(f"{path} leaves the repository", hint="paths begin at the repository's root")
    if not Reach(kept).claims or "" in kept:
        raise InvalidParams("a blank path, or only what is taken back, reserves nothing", hint='"**" is everything')
    return kept


def reserve(unit: UnitOfWork, agent: Agent, wanted: ReservationRequest) -> ReservationOutcome:
    """Reserves all of the paths, or none. Asking again for the same paths renews.

    Reservations of an absent agent do not count. Taking over one of their paths ends them, so that the agent does not
    get them back by returning.
    """
    standing = _unexpired(unit, wanted.repository)
    reach = Reach(wanted.paths)
    in_the_way: list[InTheWay] = []
    lapsed: list[Reservation] = []
    for other in standing:
        met = reach.meets(Reach(other.paths)) if other.agent_id != agent.id else None
        if met is not None and is_present(unit, other.agent_id):
            in_the_way.append(InTheWay(other, agent_name(unit, other.agent_id), met.path))
        elif met is not None:
            lapsed.append(other)
    if in_the_way:
        return ReservationOutcome(None, in_the_way)
    return ReservationOutcome(_grant(unit, agent, wanted, standing, lapsed), [])


def _grant(
    unit: UnitOfWork,
    agent: Agent,
    wanted: ReservationRequest,
    standing: Sequence[Reservation],
    lapsed: Sequence[Reservation],
) -> Reservation:
    now = unit.now_ms()
    own = [one for one in standing if one.agent_id == agent.id]
    same = next((one for one in own if set(one.paths) == set(wanted.paths)), None)
    if same is not None:
        mine = msgspec.structs.replace(
            same,
            expires_at=now + wanted.ttl_ms,
            task_id=wanted.task_id or same.task_id,
            reason=wanted.reason or same.reason,
        )
    elif len(own) >= HELD:
        raise InvalidParams(
            f"{agent.name} has {len(own)} reservations here already", hint="release_paths gives some back"
        )
    else:
        mine = Reservation(
            id=unit.new_id("rsv"),
            repository=wanted.repository,
            agent_id=agent.id,
            task_id=wanted.task_id,
            paths=wanted.paths,
            reason=wanted.reason,
            created_at=now,
            expires_at=now + wanted.ttl_ms,
            released_at=None,
        )
    ended = [msgspec.structs.replace(one, released_at=now) for one in lapsed]
    told = {"agent_id": agent.id, **({"taken_over": [one.id for one in ended]} if ended else {})}
    unit.record("paths.renewed" if same is not None else "paths.reserved", mine, *ended, data=told)
    for loser_id in dict.fromkeys(one.agent_id for one in ended):
        _post_lost(unit, loser_id, agent, [one for one in ended if one.agent_id == loser_id])
    return mine


def _post_lost(unit: UnitOfWork, loser_id: str, taker: Agent, lost: Sequence[Reservation]) -> None:
    """Leaves a notice for an agent that its paths are no longer reserved."""
    ids = [one.id for one in lost]
    body = {"event": PATHS_LOST, "ids": ids, "now_kept_by": taker.id, "name": taker.name, "at": unit.now_ms()}
    post(unit, SYSTEM, loser_id, Letter("notification", body, f"{taker.name} keeps paths that you had", "high"))


def release(unit: UnitOfWork, kept: Iterable[Reservation], paths: Sequence[str] | None = None) -> int:
    """Releases these reservations, or only some of their paths; returns how many paths that were.

    A path that takes back (`!…`) cannot be released: without it more would be reserved, perhaps somebody else's.
    """
    now, given = unit.now_ms(), 0
    for reservation in kept:
        left = [path for path in reservation.paths if paths is not None and (path.startswith("!") or path not in paths)]
        if len(left) == len(reservation.paths):
            continue
        given += len(reservation.paths) - len(left)
        if Reach(left).claims:
            changed = msgspec.structs.replace(reservation, paths=left)
        else:
            changed = msgspec.structs.replace(reservation, released_at=now)
        unit.record("paths.released", changed, data={"agent_id": reservation.agent_id})
    return given


def kept_by(unit: UnitOfWork, agent_id: str, repository: str | None = None) -> list[Reservation]:
    """What an agent has reserved, in one repository or anywhere."""
    conditions: list[tuple[str, object]] = [("agent_id", agent_id), ("released_at", None)]
    conditions.append(("expires_at >", unit.now_ms()))
    found = unit.select(Reservation, Query(tuple(conditions), ("expires_at",)))
    return [one for one in found if repository is None or one.repository == repository]


def live(unit: UnitOfWork, repository: str) -> list[Reservation]:
    """The reservations that count now, oldest first."""
    standing = _unexpired(unit, repository)
    here = {agent_id: is_present(unit, agent_id) for agent_id in dict.fromkeys(one.agent_id for one in standing)}
    return [one for one in standing if here[one.agent_id]]


def kept_from(unit: UnitOfWork, repository: str, files: Sequence[str], agent_id: str | None) -> list[ReservedByOther]:
    """Which of these files are reserved by agents other than this one."""
    found: list[ReservedByOther] = []
    for other in live(unit, repository):
        if other.agent_id == agent_id:
            continue
        areas = read_areas(other.paths)
        theirs = [path for path in files if are_around(path, areas)]
        if theirs:
            found.append(ReservedByOther(other, agent_name(unit, other.agent_id), theirs))
    return found


def _unexpired(unit: UnitOfWork, repository: str) -> list[Reservation]:
    """Reservations neither released nor expired, whether or not their agents are present."""
    conditions = (("repository", repository), ("released_at", None), ("expires_at >", unit.now_ms()))
    found = unit.select(Reservation, Query(conditions, ("expires_at",)))
    return sorted(found, key=lambda one: (one.created_at, one.id))
