"""What a run may spend and has spent: tokens, minutes of agent work, money at the user's own prices. Pure.

A soft limit warns; a hard one stops the run where it is until a person allows more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.kernel.errors import InvalidParams, SettingInvalid
from handrail.kernel.wording import did_you_mean

UNITS = ("tokens", "minutes", "money")
LIMITS = tuple(f"{kind}_{unit}" for kind in ("soft", "hard") for unit in UNITS)
MILLION = 1_000_000
ANY = "*"
"""The price for models without one of their own."""


class Budget(msgspec.Struct, frozen=True):
    """Limits by name, `soft_tokens` to `hard_money`, and the price per million tokens for each model."""

    limits: Mapping[str, float] = {}
    prices: Mapping[str, float] = {}


class Spent(NamedTuple):
    """The reported cost of a run's actions."""

    tokens: int = 0
    minutes: float = 0.0
    money: float = 0.0
    unpriced: tuple[str, ...] = ()
    """Models without a known price."""


def check_limits(limits: Mapping[str, Any]) -> None:
    """Raises InvalidParams for an unknown limit or a value that is not an amount."""
    for name, value in limits.items():
        if name not in LIMITS:
            raise InvalidParams(
                f"there is no limit {name}{did_you_mean(name, LIMITS)}", hint=f"limits: {', '.join(LIMITS)}"
            )
        if not _is_amount(value):
            raise InvalidParams(f"{name} is an amount of {name.partition('_')[2]}, 0 or more", hint=f"not {value}")


def check_budget(budget: Budget) -> None:
    """Raises SettingInvalid for invalid settings: an unknown limit would stop nothing."""
    try:
        check_limits(budget.limits)
    except InvalidParams as problem:
        raise SettingInvalid(f"[budget]: {problem.message}", hint=problem.hint) from None
    for model, price in budget.prices.items():
        if not _is_amount(price):
            raise SettingInvalid(
                f"[prices]: {model} costs {price}, which is no price", hint="money for a million tokens, 0 or more"
            )


def stricter(here: Mapping[str, float], asked: Mapping[str, float]) -> dict[str, float]:
    """What may be spent if both sets of limits apply: a request can lower a limit set here, not raise it."""
    return {**here, **{name: min(value, here.get(name, value)) for name, value in asked.items()}}


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def spent(log: Sequence[Mapping[str, Any]], prices: Mapping[str, float]) -> Spent:
    """The totals of a run's log."""
    money = 0.0
    unpriced: dict[str, None] = {}
    for entry in log:
        model = entry.get("model") or ""
        price = prices.get(model, prices.get(ANY))
        if price is not None:
            money += entry["tokens"] * price / MILLION
        elif entry["tokens"]:
            unpriced[model or "a model without a name"] = None
    tokens = sum(entry["tokens"] for entry in log)
    return Spent(tokens, sum(entry["duration_ms"] for entry in log) / 60_000, money, tuple(unpriced))


def exceeded(have: Spent, limits: Mapping[str, float], kind: str) -> str:
    """Which limit of a kind, `soft` or `hard`, is reached, in words; empty if none is."""
    for name, amount in reached(have, limits, kind).items():
        return f"{_amount(amount)} of {_amount(limits[name])} {name.partition('_')[2]} are spent"
    return ""


def reached(have: Spent, limits: Mapping[str, float], kind: str) -> dict[str, float]:
    """Every limit of a kind that is reached, by name, with the amount spent."""
    amounts = {f"{kind}_{unit}": getattr(have, unit) for unit in UNITS}
    return {name: amount for name, amount in amounts.items() if name in limits and amount >= limits[name]}


def warning_about(have: Spent, limits: Mapping[str, float]) -> str:
    """What to tell the one driving the run before a limit stops it."""
    said = exceeded(have, limits, "soft")
    money = any(name.endswith("_money") for name in limits)
    if money and have.unpriced:
        models = ", ".join(have.unpriced[:5])
        said = f"{said}; " if said else ""
        said += f"no price is known for {models}, so its tokens count as free"
    return said


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.2f}"


FIGURES = (("p50", 0.5), ("p90", 0.9))


class Cost(NamedTuple):
    """What one finished run cost."""

    tokens: int
    duration_ms: int
    money: float | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed: always one that actually occurred."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def estimate(costs: Sequence[Cost]) -> dict[str, Any] | None:
    """The estimate as shown; None if nothing is known. Runs that reported no cost are ignored."""
    known = [cost for cost in costs if cost.tokens or cost.duration_ms]
    if not known:
        return None
    shown: dict[str, Any] = {
        "runs": len(known),
        "tokens": {name: int(percentile([cost.tokens for cost in known], share)) for name, share in FIGURES},
        "minutes": {
            name: round(percentile([cost.duration_ms for cost in known], share) / 60_000, 1) for name, share in FIGURES
        },
    }
    priced = [cost.money for cost in known if cost.money is not None]
    if priced:
        shown["money"] = {name: round(percentile(priced, share), 2) for name, share in FIGURES}
    return shown
