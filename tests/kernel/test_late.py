"""What is loaded late is loaded at its first use, and every name that a declaration gives is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from handrail.catalog import whole_catalog
from handrail.kernel.late import by_name, late_module


def named() -> list[by_name]:
    """Every function that an operation declares by its name."""
    found: list[by_name] = []
    for operation in whole_catalog():
        parts: list[Any] = [operation.handler, operation.prepare, operation.follow]
        if operation.asks is not None:
            parts += [operation.asks.question, operation.asks.answered, operation.asks.again]
        found += [part for part in parts if isinstance(part, by_name)]
    return found


def test_every_named_function_is_there() -> None:
    functions = [one.load() for one in named()]

    assert functions
    assert all(map(callable, functions))


def test_a_name_that_is_not_there_is_told_by_its_first_call() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        by_name("handrail.kernel.ids:no_such_thing")()


def test_a_module_is_loaded_when_something_of_it_is_used() -> None:
    script = (
        "import sys; from handrail.kernel.late import by_name, late_module; "
        "fractions = late_module('fractions'); loads = by_name('colorsys:rgb_to_hsv'); "
        "before = {'fractions', 'colorsys'} & set(sys.modules); fractions.Fraction(1, 2); loads(0, 0, 0); "
        "print(before, sorted({'fractions', 'colorsys'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set() ['colorsys', 'fractions']"


def test_what_it_stands_for_is_passed_on() -> None:
    assert by_name("operator:add")(2, 3) == 5
    assert late_module("operator").add(2, 3) == 5


def test_a_module_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    late = late_module("colorsys")
    first = late.rgb_to_hsv
    monkeypatch.delitem(sys.modules, "colorsys")

    assert late.rgb_to_hsv is first
    assert "colorsys" not in sys.modules


def test_what_a_module_holds_is_read_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    late = late_module("colorsys")
    assert late.ONE_THIRD < 1
    monkeypatch.setattr("colorsys.ONE_THIRD", 3)

    assert late.ONE_THIRD == 3


def test_it_costs_a_hook_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import handrail.kernel.late; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) <= {"__future__", "handrail", "handrail.kernel", "handrail.kernel.late"}
