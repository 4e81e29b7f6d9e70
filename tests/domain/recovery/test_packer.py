"""The packer: never over budget, and never something less relevant instead of something more relevant that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.recovery.packer import SEAM, BundlePiece, PieceLength, pack
from handrail.domain.recovery.truncate import json_weight
from handrail.kernel.tokens import estimate_tokens

SKELETON: dict[str, Any] = {"task": {"id": "task_1", "text": "", "extra": None}, "items": [], "more": None}
PLACES: dict[str, tuple[tuple[str, ...], bool]] = {
    "text": (("task", "text"), False),
    "extra": (("task", "extra"), False),
    "items": (("items",), True),
    "more": (("more",), True),
}


def nothing_said(taken: Sequence[int], whole: int) -> Mapping[str, Any]:
    return {}


def said(taken: Sequence[int], whole: int) -> Mapping[str, Any]:
    missing = sum(count == 0 for count in taken)
    return {"omitted": {"pieces": missing, "max_tokens": whole}} if missing else {}


def a_piece(section: str, order: int, rounds: Sequence[int], lengths: Sequence[int], relevance: int) -> BundlePiece:
    place, item = PLACES[section]
    steps = []
    for number, (begin, length) in enumerate(zip(rounds, lengths, strict=True)):
        value = "lorem 語 ipsum, " * length
        steps.append(PieceLength((begin, relevance, number), value, json_weight(value)))
    return BundlePiece(section, place, tuple(steps), item=item, order=(order,))


@st.composite
def pieces(draw: st.DrawFn) -> list[BundlePiece]:
    found = []
    single = draw(st.sets(st.sampled_from(("text", "extra"))))
    many = draw(st.lists(st.sampled_from(("items", "more")), max_size=8))
    for order, section in enumerate((*sorted(single), *many)):
        count = draw(st.integers(1, 4))
        rounds = sorted(draw(st.lists(st.integers(1, 6), min_size=count, max_size=count)))
        lengths = sorted(draw(st.sets(st.integers(1, 200), min_size=count, max_size=count)))
        found.append(a_piece(section, order, rounds, lengths, draw(st.integers(0, 9))))
    return found


def cost_of(bundle: Mapping[str, Any]) -> int:
    return estimate_tokens(msgspec.json.encode(bundle).decode())


@given(pieces(), st.integers(60, 3000))
def test_a_bundle_costs_what_it_says_and_no_more_than_asked(chosen: list[BundlePiece], max_tokens: int) -> None:
    bundle = pack(SKELETON, chosen, max_tokens, said).bundle
    assert bundle["token_estimate"] == cost_of(bundle) <= max_tokens


@given(pieces(), st.integers(60, 3000))
def test_nothing_less_relevant_stands_where_something_more_relevant_would_fit(
    chosen: list[BundlePiece], max_tokens: int
) -> None:
    taken = pack(SKELETON, chosen, max_tokens, nothing_said).taken
    passed_over = [
        (piece.steps[n].rank, step_cost(piece, n) + heading_cost(piece))
        for piece, n in zip(chosen, taken, strict=True)
        if n < len(piece.steps)
    ]
    for piece, count in zip(chosen, taken, strict=True):
        for number in range(count):
            for rank, cost in passed_over:
                if piece.steps[number].rank > rank:
                    assert step_cost(piece, number) <= cost


def step_cost(piece: BundlePiece, number: int) -> int:
    """What a step costs on top of the one before it, or of what the skeleton has in its place."""
    if number:
        return piece.steps[number].weight - piece.steps[number - 1].weight
    return piece.steps[0].weight + (SEAM if piece.item else -json_weight("") if piece.section == "text" else 0)


def heading_cost(piece: BundlePiece) -> int:
    """What the first piece in a place costs besides, where the skeleton has nothing."""
    if piece.section in ("text", "items"):
        return 0
    return json_weight({piece.section: [] if piece.item else 0}) + SEAM


@given(pieces())
def test_with_the_budget_that_is_named_everything_is_there(chosen: list[BundlePiece]) -> None:
    whole = pack(SKELETON, chosen, 60, said).whole_tokens
    packed = pack(SKELETON, chosen, whole * 21 // 20 + 50, said)
    assert packed.taken == tuple(len(piece.steps) for piece in chosen)
    assert "omitted" not in packed.bundle


@given(pieces(), st.integers(60, 3000))
def test_a_larger_budget_never_tells_less_of_the_most_relevant(chosen: list[BundlePiece], max_tokens: int) -> None:
    if not chosen:
        return
    first = min(range(len(chosen)), key=lambda index: (chosen[index].steps[0].rank, index))
    small = pack(SKELETON, chosen, max_tokens, nothing_said)
    large = pack(SKELETON, chosen, max_tokens * 2, nothing_said)
    assert large.taken[first] >= min(small.taken[first], 1)


def test_what_turns_out_too_dear_is_given_back_from_the_least_relevant_on() -> None:
    def dear(taken: Sequence[int], whole: int) -> Mapping[str, Any]:
        return {"omitted": "lorem ipsum " * 30} if sum(taken) > 1 else {}

    chosen = [a_piece("items", order, [1], [5], order) for order in range(4)]
    packed = pack(SKELETON, chosen, 150, dear)
    assert packed.taken == (1, 1, 1, 0)
    assert packed.bundle["token_estimate"] <= 150


def test_items_stand_in_their_order_whatever_their_relevance() -> None:
    chosen = [a_piece("items", order, [1], [order + 1], 9 - order) for order in range(3)]
    bundle = pack(SKELETON, chosen, 500, nothing_said).bundle
    assert [len(text) for text in bundle["items"]] == sorted(len(text) for text in bundle["items"])


def test_what_does_not_fit_is_left_out_and_smaller_things_still_come() -> None:
    chosen = [a_piece("text", 0, [1], [190], 0), a_piece("items", 1, [1], [2], 1)]
    packed = pack(SKELETON, chosen, 100, nothing_said)
    assert packed.taken == (0, 1)
    assert packed.bundle["task"] == {"id": "task_1", "text": ""}


def test_a_place_that_stays_empty_is_not_shown() -> None:
    bundle = pack(SKELETON, [], 100, nothing_said).bundle
    assert {**bundle, "token_estimate": 0} == {"task": {"id": "task_1", "text": ""}, "items": [], "token_estimate": 0}
