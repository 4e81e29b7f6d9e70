"""Toolset `blackboard`: values under keys that everybody can read, set on a condition, and watch.

`domain/board` defines boards, and when an entry has expired.

What the tools of toolset `blackboard` take and return. Types only; entries and changes come from `domain/board`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.board.board import TAGS, Board, EntryUpdate, standing
from handrail.domain.board.entry import (
    DEFAULT,
    BoardChange,
    EntrySnapshot,
    beginning_of,
    brief,
    check_board,
    key_of,
    snapshot,
    tags_of,
)
from handrail.domain.board.queries import EntryQuery, search, watch
from handrail.domain.reply_size import bounds, within
from handrail.kernel.clock import DAY_MS
from handrail.kernel.errors import BoardConflict
from handrail.kernel.limits import WAIT_MS
from handrail.operation import Call, Effect, Example, Operation, Wait
from handrail.toolsets.vocabulary import BLACKBOARD

MOST = 2**53
Text = Annotated[str, Meta(max_length=1000)]
Version = Annotated[int, Meta(ge=0, le=MOST)]


class SetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to stand under a key, and what is expected there now."""

    key: Annotated[Text, Meta(description="board:name; without a colon on the board default")]
    value: Annotated[Any, Meta(description="Any JSON")]
    tags: Annotated[list[Text], Meta(max_length=TAGS)] = []
    ttl_ms: Annotated[int, Meta(ge=1, le=DAY_MS)] | None = None
    expected_version: Annotated[Version, Meta(description="Refuse if another is there; 0: if any is")] | None = None


class GetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry."""

    key: Text


class GotEntry(msgspec.Struct, frozen=True):
    """The key in full, and what stands there."""

    key: str
    entry: EntrySnapshot | None


class QueryEntries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entries; all of it must fit."""

    namespace: Annotated[Text, Meta(description="Board; default all")] | None = None
    keys: Annotated[list[Text], Meta(max_length=500)] = []
    tags: Annotated[list[Text], Meta(max_length=TAGS, description="All of them")] = []
    prefix: Annotated[Text, Meta(description="How keys begin")] | None = None
    after: Annotated[Text, Meta(description="`next` of the page before")] | None = None
    limit: Annotated[int, Meta(ge=1, le=500, description="Default 25")] | UnsetType = UNSET


class EntryPage(msgspec.Struct, frozen=True):
    """Entries in the order of their keys, each whole."""

    entries: tuple[EntrySnapshot, ...]
    total: int | UnsetType = UNSET
    """How many fit, from `after` on. Absent where there are too many to look through for tags."""
    next: str | UnsetType = UNSET
    """The key to go on after, where something was left out."""
    latest_version: int | UnsetType = UNSET
    """Of the board, where one was named: watching from there misses nothing."""


class WatchBoard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From where on a board is watched."""

    namespace: Text = DEFAULT
    start_version: Version = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="Default 100")] | UnsetType = UNSET
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS, description="Wait for a change, at most 25000")] = 0


class WatchedBoard(msgspec.Struct, frozen=True):
    """What happened after `start_version`, in order and without gaps."""

    events: tuple[BoardChange, ...]
    next_version: int
    latest_version: int
    truncated_before: int | UnsetType = UNSET
    """The first version that is still shown, where older ones were asked for and are not."""


class DeleteEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry, and what is expected there now."""

    key: Text
    expected_version: Annotated[int, Meta(ge=1, le=MOST)] | None = None


class DeletedEntry(msgspec.Struct, frozen=True):
    """Whether something was there, and what."""

    key: str
    deleted: bool
    version: int | UnsetType = UNSET
    """The number of the deletion within the board."""
    previous: EntrySnapshot | UnsetType = UNSET


ENTRIES = 25
CHANGES = 100


def bb_set(call: Call, request: SetEntry) -> EntrySnapshot:
    board = Board(call.work, key_of(request.key).board)
    wanted = EntryUpdate(request.key, request.value, request.tags, request.ttl_ms, request.expected_version)
    return brief(board.put(wanted))


def bb_get(call: Call, request: GetEntry) -> GotEntry:
    key = key_of(request.key)
    entry = standing(call.work, key.id)
    return GotEntry(key.id, snapshot(entry) if entry is not None else None)


def bb_query(call: Call, request: QueryEntries) -> EntryPage:
    sought = _sought(request)
    limit, room = bounds(request.limit, ENTRIES)
    found = search(call.work, sought, limit)
    shown = within([snapshot(entry) for entry in found.entries], room)
    cut = len(shown) < len(found.entries)
    following = shown[-1].key if cut else found.next
    return EntryPage(
        tuple(shown),
        UNSET if found.total is None else found.total,
        UNSET if following is None else following,
        UNSET if sought.board is None else Board(call.work, sought.board).version,
    )


def bb_watch(call: Call, request: WatchBoard) -> WatchedBoard:
    check_board(request.namespace)
    limit, room = bounds(request.limit, CHANGES)
    watched = watch(call.work, request.namespace, request.start_version, limit, history=call.bounds.events)
    shown = within(watched.changes, room)
    return WatchedBoard(
        tuple(shown),
        shown[-1].version if shown else request.start_version,
        watched.version,
        watched.truncated_before or UNSET,
    )


def bb_delete(call: Call, request: DeleteEntry) -> DeletedEntry:
    key = key_of(request.key)
    board = Board(call.work, key.board)
    removed = board.remove(key.id, request.expected_version)
    if removed is None:
        return DeletedEntry(key.id, False)
    return DeletedEntry(key.id, True, board.version, brief(removed))


def _sought(request: QueryEntries) -> EntryQuery:
    if request.namespace is not None:
        check_board(request.namespace)
    beginning = beginning_of(request.prefix, request.namespace) if request.prefix else None
    return EntryQuery(
        beginning.board if beginning is not None else request.namespace,
        tuple(key_of(key, request.namespace).id for key in request.keys),
        tuple(tags_of(request.tags)),
        beginning.id if beginning is not None else "",
        key_of(request.after, request.namespace).id if request.after else "",
    )


def _set(key: str, value: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    return "bb_set", {"key": key, "value": value, **more}


_TWO = (_set("plan:next", {"task": "wrap"}, tags=["plan"]), _set("plan:port", 8765))

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="bb_set",
        toolset=BLACKBOARD,
        effect=Effect.WRITE,
        stored=True,
        summary="Sets a value on a shared board, for all agents",
        request=SetEntry,
        response=EntrySnapshot,
        handler=bb_set,
        refusals=(BoardConflict,),
        examples=(
            Example(
                title="what was seen is replaced",
                given=_TWO,
                request={"key": "plan:port", "value": 9000, "expected_version": 2, "ttl_ms": 60_000},
                response={"key": "plan:port", "value": 9000, "tags": [], "version": 3},
            ),
            Example(
                title="a key without a board is on the board default",
                request={"key": "note", "value": None, "tags": ["a", "a"]},
                response={"key": "default:note", "value": None, "tags": ["a"], "expiresAt": None, "version": 1},
            ),
            Example(
                title="where something is that was not expected, nothing is set",
                given=_TWO,
                request={"key": "plan:port", "value": 9000, "expected_version": 0},
                refused=BoardConflict,
            ),
        ),
    ),
    Operation(
        name="bb_get",
        toolset=BLACKBOARD,
        effect=Effect.READ,
        stored=True,
        summary="Shows an entry, or null if there is none",
        request=GetEntry,
        response=GotEntry,
        handler=bb_get,
        examples=(
            Example(
                title="an entry",
                given=_TWO,
                request={"key": "plan:next"},
                response={"key": "plan:next", "entry": {"value": {"task": "wrap"}, "tags": ["plan"], "version": 1}},
            ),
            Example(title="nothing there", request={"key": "x"}, response={"key": "default:x", "entry": None}),
        ),
    ),
    Operation(
        name="bb_query",
        toolset=BLACKBOARD,
        effect=Effect.READ,
        stored=True,
        summary="Lists entries of boards by key",
        request=QueryEntries,
        response=EntryPage,
        handler=bb_query,
        examples=(
            Example(
                title="a board's entries with a tag",
                given=(*_TWO, _set("other:next", 1, tags=["plan"])),
                request={"namespace": "plan", "tags": ["plan"]},
                response={"entries": [{"key": "plan:next"}], "total": 1, "latest_version": 2},
            ),
            Example(
                title="the first of several",
                given=_TWO,
                request={"prefix": "plan:", "limit": 1},
                response={"entries": [{"key": "plan:next"}], "total": 2, "next": "plan:next"},
            ),
        ),
    ),
    Operation(
        name="bb_watch",
        toolset=BLACKBOARD,
        effect=Effect.READ,  # it may record an expiry, which any reader would
        stored=True,
        wait=Wait(for_ms=lambda request: request.wait_ms, is_over=lambda answer: bool(answer.events)),
        summary="Shows what changed on a board after a version; may wait for it",
        request=WatchBoard,
        response=WatchedBoard,
        handler=bb_watch,
        examples=(
            Example(
                title="every change since",
                given=(*_TWO, ("bb_delete", {"key": "plan:port"})),
                request={"namespace": "plan", "start_version": 1},
                response={
                    "events": [
                        {"version": 2, "kind": "set", "key": "plan:port", "entry": {"value": 8765}},
                        {"version": 3, "kind": "delete", "key": "plan:port", "previous": {"version": 2}},
                    ],
                    "next_version": 3,
                    "latest_version": 3,
                },
            ),
        ),
    ),
    Operation(
        name="bb_delete",
        toolset=BLACKBOARD,
        effect=Effect.DESTRUCTIVE,
        idempotent=True,
        stored=True,
        summary="Removes an entry",
        request=DeleteEntry,
        response=DeletedEntry,
        handler=bb_delete,
        refusals=(BoardConflict,),
        examples=(
            Example(
                title="an entry is removed",
                given=_TWO,
                request={"key": "plan:port"},
                response={"key": "plan:port", "deleted": True, "version": 3, "previous": {"value": 8765}},
            ),
            Example(title="nothing was there", request={"key": "x"}, response={"key": "default:x", "deleted": False}),
            Example(
                title="another version than the expected one stays",
                given=_TWO,
                request={"key": "plan:port", "expected_version": 1},
                refused=BoardConflict,
            ),
        ),
    ),
)
