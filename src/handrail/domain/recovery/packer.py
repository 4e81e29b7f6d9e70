"""Packing into a token budget: pieces in several lengths, taken by relevance as long as they fit.

Every piece is a chain of steps, each longer than the one before and each with a rank. Steps are taken in order of rank;
one that does not fit is skipped, and with it the longer steps of its piece. So whatever is taken after a skipped step
is both less relevant and smaller. This module knows nothing of tasks: `pieces.py` says what the pieces are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.recovery.truncate import json_weight
from handrail.kernel.tokens import token_weight

Rank = tuple[int, ...]
Place = tuple[str, ...]
SEAM = 110
"""The cost of joining a member to its neighbours: a comma, or a comma between braces."""
SLACK = 150
"""Reserved because parts can cost more together than apart; without it a large part might have to go at the end."""


class PieceLength(NamedTuple):
    """One length of a piece, and what it costs as JSON."""

    rank: Rank
    value: Any
    weight: int


class BundlePiece(NamedTuple):
    """Something that may go into a bundle. `place` is the path of its member or, for an `item`, of its list."""

    section: str
    place: Place
    steps: tuple[PieceLength, ...]
    item: bool = False
    order: tuple[int, ...] = ()
    """An item's sort key within its list."""
    enough: int = 1
    """The number of steps from which on nothing worth mentioning is missing."""
    beyond: int = 0
    """Roughly what the content that no step includes would cost, in hundredths of a token."""


class Packed(NamedTuple):
    """A bundle, how many steps of each piece are in it, and what all of them would cost."""

    bundle: dict[str, Any]
    taken: tuple[int, ...]
    whole_tokens: int


Note = Callable[[Sequence[int], int], Mapping[str, Any]]
"""Takes the steps taken and the cost of everything; returns the members that say what is missing."""


def pack(skeleton: Mapping[str, Any], pieces: Sequence[BundlePiece], max_tokens: int, note: Note) -> Packed:
    """The bundle: the skeleton, as much of the pieces as fits, a note of what is missing, its own `token_estimate`.

    The skeleton is always included; a member that is None in it is a placeholder for a piece.
    """
    chest = _Chest(skeleton, pieces)
    nothing = [0] * len(pieces)
    whole = chest.whole_weight // 100 + 1
    base = json_weight(_finished(skeleton, note(nothing, whole)))
    whole += base // 100 + 1
    taken = chest.fill(nothing, max_tokens * 100 - base - SLACK)
    bundle = chest.bundle(taken, note(taken, whole))
    room = (max_tokens - bundle["token_estimate"]) * 100 - SLACK  # a note that got shorter leaves more room
    taken = chest.fill(taken, room)
    bundle = chest.bundle(taken, note(taken, whole))
    while bundle["token_estimate"] > max_tokens and any(taken):
        taken = chest.drop(taken, (bundle["token_estimate"] - max_tokens) * 100)
        bundle = chest.bundle(taken, note(taken, whole))
    return Packed(bundle, tuple(taken), whole)


class _Chest:
    """The pieces with their costs."""

    def __init__(self, skeleton: Mapping[str, Any], pieces: Sequence[BundlePiece]) -> None:
        self._skeleton = skeleton
        self._pieces = pieces
        self._costs = [self._costs_of(piece) for piece in pieces]
        self._ranked = sorted(
            (step.rank, index, number)
            for index, piece in enumerate(pieces)
            for number, step in enumerate(piece.steps, start=1)
        )
        self._headings = {piece.place: self._heading(piece) for piece in pieces}
        self.whole_weight = (
            sum(sum(costs) for costs in self._costs)
            + sum(self._headings.values())
            + sum(piece.beyond for piece in pieces)
        )

    def _costs_of(self, piece: BundlePiece) -> list[int]:
        """What each step costs on top of the one before it."""
        standing = _at(self._skeleton, piece.place)
        before = 0 if piece.item or standing is None else json_weight(standing)
        costs = []
        for step in piece.steps:
            weight = step.weight + (SEAM if piece.item else 0)
            costs.append(weight - before)
            before = weight
        return costs

    def _heading(self, piece: BundlePiece) -> int:
        """What a member that the skeleton lacks costs extra: its name, and the brackets of a list."""
        if _at(self._skeleton, piece.place) is not None:
            return 0
        return json_weight({piece.place[-1]: [] if piece.item else 0}) + SEAM

    def fill(self, taken: Sequence[int], room: int) -> list[int]:
        """Takes more steps in order of rank, skipping those that do not fit."""
        now = list(taken)
        opened = {self._pieces[index].place for index, count in enumerate(now) if count}
        for _, index, number in self._ranked:
            place = self._pieces[index].place
            cost = self._costs[index][number - 1] + (0 if place in opened else self._headings[place])
            if now[index] == number - 1 and cost <= room:
                now[index] = number
                opened.add(place)
                room -= cost
        return now

    def drop(self, taken: Sequence[int], excess: int) -> list[int]:
        """Gives back the least relevant steps."""
        now = list(taken)
        for _, index, number in reversed(self._ranked):
            if excess <= 0:
                break
            if now[index] == number:
                now[index] = number - 1
                excess -= max(self._costs[index][number - 1], 0)
        return now

    def bundle(self, taken: Sequence[int], note: Mapping[str, Any]) -> dict[str, Any]:
        """The bundle made of these steps."""
        whole = _copied(self._skeleton)
        found = [(piece, count) for piece, count in zip(self._pieces, taken, strict=True) if count]
        for piece, count in sorted(found, key=lambda entry: entry[0].order):
            holder = whole
            for name in piece.place[:-1]:
                holder = holder.setdefault(name, {})
            value = piece.steps[count - 1].value
            if piece.item:
                holder[piece.place[-1]] = [*(holder.get(piece.place[-1]) or ()), value]
            else:
                holder[piece.place[-1]] = value
        return _finished(whole, note)


def _finished(bundle: Mapping[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle with its note and an estimate of the whole, which counts its own digits."""
    shown = {**_without_empty_places(bundle), **note, "token_estimate": 0}
    rest = json_weight(shown) - token_weight("0")
    estimate = 0
    while (cost := (rest + token_weight(str(estimate)) + 50) // 100) != estimate:
        estimate = cost
    return {**shown, "token_estimate": estimate}


def _at(values: Any, place: Place) -> Any:
    for name in place:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values


def _copied(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(member) if isinstance(member, Mapping) else member for name, member in value.items()}


def _without_empty_places(bundle: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {inner: value for inner, value in member.items() if value is not None}
        if isinstance(member, Mapping)
        else member
        for name, member in bundle.items()
        if member is not None
    }
