"""Toolset `workspace`, second half: paths that an agent reserves for a while. Worktrees are in `workspace.py`;
`domain/workspaces` decides what overlaps."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.crew.agent import agent_name
from handrail.domain.crew.presence import find_agent
from handrail.domain.work.lookup import find_task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.workspaces.records import Reservation
from handrail.domain.workspaces.reservations import (
    MOST_PATHS,
    MOST_TTL_MS,
    PATH_LENGTH,
    TTL_MS,
    InTheWay,
    ReservationRequest,
    kept_by,
    release,
    reserve,
    tidy_paths,
)
from handrail.kernel.errors import AgentNotFound, PathsReserved, TaskNotFound
from handrail.kernel.wording import shortened
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.agent import ANNA, BEN
from handrail.toolsets.plan.workflow import PLANNED
from handrail.toolsets.vocabulary import WORKSPACE

SHOWN_CONFLICTS = 10
SHOWN_PATHS = 3
TEXT = 80

Paths = Annotated[list[Annotated[str, Meta(max_length=PATH_LENGTH)]], Meta(min_length=1, max_length=MOST_PATHS)]


class ReservePaths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which paths, for whom, for how long."""

    agent_id: str
    paths: Annotated[Paths, Meta(description="Files, folders, globs")]
    task_id: str | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=MOST_TTL_MS)] = TTL_MS
    reason: Annotated[str, Meta(max_length=500)] | None = None


class ReservedPaths(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether all of the paths are the agent's now; where not, what is in the way."""

    granted: bool
    id: str | None = None
    expires_at: int | None = None
    conflicts: tuple[dict[str, Any], ...] = ()
    conflicts_total: int | None = None
    """Where not all of them are shown."""


class ReleasePaths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is given back: a reservation, some paths, or everything."""

    agent_id: str
    id: str | None = None
    paths: Annotated[Paths, Meta(description="Without paths and id: all of yours")] | None = None


class ReleasedPaths(msgspec.Struct, frozen=True):
    """How many paths are free again; false where there was nothing to give back."""

    success: bool
    released: int


def reserve_paths(call: Call, request: ReservePaths) -> ReservedPaths:
    agent = find_agent(call.work, request.agent_id)
    repository = call.here.repository
    if request.task_id is not None:
        task = find_task(call.work, request.task_id)
        repository = workflow_of(call.work, task).repository_path or repository
    paths = tidy_paths(_from_root(call, repository, path) for path in request.paths)
    asked = reserve(
        call.work, agent, ReservationRequest(repository, paths, request.task_id, request.ttl_ms, request.reason or None)
    )
    if asked.reservation is not None:
        return ReservedPaths(True, asked.reservation.id, asked.reservation.expires_at)
    found = len(asked.in_the_way)
    return ReservedPaths(
        False,
        conflicts=tuple(_shown(one) for one in asked.in_the_way[:SHOWN_CONFLICTS]),
        conflicts_total=found if found > SHOWN_CONFLICTS else None,
    )


def release_paths(call: Call, request: ReleasePaths) -> ReleasedPaths:
    agent = find_agent(call.work, request.agent_id)
    if request.id is None:
        kept = kept_by(call.work, agent.id, call.here.only)
    else:
        found = call.work.get(Reservation, request.id)
        if found is not None and found.agent_id != agent.id and agent.role != "coordinator":
            raise PathsReserved(
                f"{request.id} is not {agent.name}'s but {agent_name(call.work, found.agent_id)}'s ({found.agent_id})",
                hint="its agent can release it, or one whose role is coordinator; otherwise it expires by itself",
                id=found.id,
                agent_id=found.agent_id,
                until=found.expires_at,
            )
        counts = found is not None and found.released_at is None and found.expires_at > call.work.now_ms()
        kept = [found] if found is not None and counts else []
    paths = None
    if request.paths is not None:
        paths = [_from_root(call, call.here.repository, path).strip() for path in request.paths]
    given = release(call.work, kept, paths)
    return ReleasedPaths(given > 0, given)


def _from_root(call: Call, repository: str, path: str) -> str:
    """A path relative to the repository's root. Agents also know their files by absolute paths."""
    for root in (call.here.folder, call.here.repository, repository):
        if path == root or path.startswith(f"{root}/"):
            return path.removeprefix(root).removeprefix("/") or "."
    return path


def _shown(found: InTheWay) -> dict[str, Any]:
    reservation = found.reservation
    return {
        "agent_id": reservation.agent_id,
        "name": found.name,
        "paths": [shortened(path, TEXT) for path in reservation.paths[:SHOWN_PATHS]],
        "path": shortened(found.path, TEXT),
        "until": reservation.expires_at,
        "reason": shortened(reservation.reason, 2 * TEXT) if reservation.reason else None,
    }


_KEPT = (
    ANNA,
    BEN,
    ("reserve_paths", {"agent_id": "ag_1", "paths": ["src/fetch/", "docs/*.md"], "reason": "moving things"}),
)
_UNKNOWN_AGENT = "an unknown agent is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="reserve_paths",
        toolset=WORKSPACE,
        effect=Effect.WRITE,
        stored=True,
        acts_as="agent_id",
        summary="Reserves paths for you for a while, all or none; asking again renews",
        request=ReservePaths,
        response=ReservedPaths,
        handler=reserve_paths,
        refusals=(AgentNotFound, TaskNotFound),
        examples=(
            Example(
                title="paths that nobody keeps",
                given=(*PLANNED, ANNA),
                request={"agent_id": "ag_1", "paths": ["src/fetch/"], "task_id": "task_1"},
                response={"granted": True, "id": "rsv_..."},
            ),
            Example(
                title="another is there first",
                given=_KEPT,
                request={"agent_id": "ag_2", "paths": ["src/fetch/retry.py", "README.md"]},
                response={
                    "granted": False,
                    "conflicts": [
                        {"agent_id": "ag_1", "name": "Anna", "path": "src/fetch/retry.py", "reason": "moving things"}
                    ],
                },
            ),
            Example(
                title="asking again renews",
                given=_KEPT,
                request={"agent_id": "ag_1", "paths": ["docs/*.md", "src/fetch/"], "ttl_ms": 60000},
                response={"granted": True, "id": "rsv_1"},
            ),
            Example(
                title="an unknown task is refused",
                given=(ANNA,),
                request={"agent_id": "ag_1", "paths": ["a"], "task_id": "task_9"},
                refused=TaskNotFound,
            ),
            Example(title=_UNKNOWN_AGENT, request={"agent_id": "ag_9", "paths": ["a"]}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="release_paths",
        toolset=WORKSPACE,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        acts_as="agent_id",
        summary="Releases reserved paths",
        request=ReleasePaths,
        response=ReleasedPaths,
        handler=release_paths,
        refusals=(AgentNotFound, PathsReserved),
        examples=(
            Example(
                title="one of two paths is free again",
                given=_KEPT,
                request={"agent_id": "ag_1", "paths": ["docs/*.md"]},
                response={"success": True, "released": 1},
            ),
            Example(
                title="a whole reservation",
                given=_KEPT,
                request={"agent_id": "ag_1", "id": "rsv_1"},
                response={"success": True, "released": 2},
            ),
            Example(
                title="there was nothing to give back",
                given=(ANNA,),
                request={"agent_id": "ag_1"},
                response={"success": False, "released": 0},
            ),
            Example(
                title="another's is not given back",
                given=_KEPT,
                request={"agent_id": "ag_2", "id": "rsv_1"},
                refused=PathsReserved,
            ),
            Example(title=_UNKNOWN_AGENT, request={"agent_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
)
