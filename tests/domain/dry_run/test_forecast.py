"""The forecast of a plan, held against rules that everybody can check: nothing before what it waits for, never more at
once than may be, and a critical path that brute force finds no longer one than."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.dry_run.forecast import ForecastStep, StepSpan, foresee, go_through, longest_path, stuck_steps

NAMES = "abcdefgh"


def steps(draw: st.DrawFn, *, circles: bool) -> list[ForecastStep]:
    """A few steps; without circles each waits for earlier ones only."""
    count = draw(st.integers(0, len(NAMES)))
    found = []
    for at in range(count):
        others = [name for place, name in enumerate(NAMES[:count]) if place != at and (circles or place < at)]
        needs = draw(st.lists(st.sampled_from(others), unique=True, max_size=4)) if others else []
        found.append(
            ForecastStep(
                NAMES[at],
                NAMES[at].upper(),
                tuple(needs),
                draw(st.integers(0, 9)),
                (draw(st.integers(-2, 2)),),
                under_way=not needs and draw(st.booleans()),
                held=draw(st.sampled_from(["", "", "", "it failed"])) if circles else "",
            )
        )
    return draw(st.permutations(found))


dags = st.composite(lambda draw: steps(draw, circles=False))()
plans = st.composite(lambda draw: steps(draw, circles=True))()


def overlapping(spans: dict[str, StepSpan]) -> list[tuple[str, str]]:
    """Pairs that run at the same time."""
    return [
        (one, other)
        for one, other in combinations(spans, 2)
        if spans[one].begins < spans[other].ends and spans[other].begins < spans[one].ends
    ]


@given(dags, st.integers(1, 4), st.sets(st.sampled_from(list(combinations(NAMES, 2))), max_size=6), st.booleans())
def test_nothing_begins_too_early_or_beside_too_much(
    found: list[ForecastStep], at_once: int, apart: set[tuple[str, str]], equal: bool
) -> None:
    spans = go_through(found, at_once, lambda one, other: tuple(sorted((one, other))) in apart, equal=equal)
    assert spans.keys() == {step.id for step in found}
    for step in found:
        span = spans[step.id]
        assert span.ends - span.begins == (1 if equal else step.work_ms)
        assert all(spans[need].ends <= span.begins for need in step.needs)
    begun = [step.id for step in found if not step.under_way]
    for moment in {span.begins for span in spans.values()}:
        under_way = [key for key in spans if spans[key].begins <= moment < spans[key].ends]
        added = [key for key in under_way if key in begun]
        assert len(under_way) <= max(at_once, len(under_way) - len(added))
    for pair in overlapping(spans):
        if set(pair) & set(begun):
            assert tuple(sorted(pair)) not in apart


@given(dags, st.integers(1, 4))
def test_waves_respect_dependencies_and_places(found: list[ForecastStep], at_once: int) -> None:
    found = [step._replace(under_way=False) for step in found]
    foreseen = foresee(found, at_once)
    number = {step.id: place for place, wave in enumerate(foreseen.waves) for step in wave}
    assert len(number) == len(found) == sum(map(len, foreseen.waves))
    assert all(len(wave) <= at_once for wave in foreseen.waves)
    assert all(number[need] < number[step.id] for step in found for need in step.needs)
    # Whoever waits for nothing and is not in the first round had no place there.
    if len(foreseen.waves) > 1 and len(foreseen.waves[0]) < at_once:
        assert not [step for step in found if not step.needs and number[step.id]]


@given(dags, st.integers(1, 4))
def test_the_end_lies_between_what_must_be_and_one_after_the_other(found: list[ForecastStep], at_once: int) -> None:
    found = [step._replace(under_way=False) for step in found]
    foreseen = foresee(found, at_once)
    assert foreseen.path_ms <= foreseen.ends_ms <= foreseen.work_ms
    assert foreseen.ends_ms * at_once >= foreseen.work_ms
    if at_once == 1:
        assert foreseen.ends_ms == foreseen.work_ms
    assert foresee(found, len(NAMES)).ends_ms == foreseen.path_ms


def every_path(found: list[ForecastStep], end: str) -> list[list[str]]:
    by_id = {step.id: step for step in found}
    before = [path for need in by_id[end].needs for path in every_path(found, need)]
    return [[*path, end] for path in before] or [[end]]


@given(dags)
def test_the_critical_path_is_a_longest_one(found: list[ForecastStep]) -> None:
    work = {step.id: step.work_ms for step in found}
    path = longest_path(found)
    for one, other in pairwise(path):
        assert one.id in other.needs
    longest = max((sum(map(work.__getitem__, way)) for step in found for way in every_path(found, step.id)), default=0)
    assert sum(step.work_ms for step in path) == longest


@given(plans)
def test_what_cannot_run_is_exactly_what_never_comes_to_its_turn(found: list[ForecastStep]) -> None:
    done: set[str] = set()
    while more := [s.id for s in found if s.id not in done and not s.held and set(s.needs) <= done]:
        done.update(more)
    stuck = stuck_steps(found)
    assert stuck.keys() == {step.id for step in found} - done
    assert all(stuck.values())
    assert foresee(found, 2).spans.keys() == done


def test_the_reason_is_told() -> None:
    plan = [
        ForecastStep("a", "A", held="it failed: no network"),
        ForecastStep("b", "B", ("a",)),
        ForecastStep("c", "C", ("b",)),
        ForecastStep("x", "X", ("y",)),
        ForecastStep("y", "Y", ("x",)),
        ForecastStep("z", "Z", ("y",)),
    ]
    assert stuck_steps(plan) == {
        "a": "it failed: no network",
        "b": 'it waits for "A", which cannot run',
        "c": 'it waits for "A", which cannot run, over "B"',
        "x": "it waits for itself: X → Y → X",
        "y": "it waits for itself: X → Y → X",
        "z": 'it waits for "Y", which cannot run',
    }


def test_a_large_plan_is_gone_through_at_once() -> None:
    plan = [ForecastStep(f"s{n:05}", "", (f"s{n - 1:05}",) if n % 10 else (), 1, (n,)) for n in range(10_000)]
    foreseen = foresee(plan, 100)
    assert (foreseen.ends_ms, foreseen.path_ms, len(foreseen.waves)) == (100, 10, 100)


def test_a_large_circle_has_a_short_reason() -> None:
    plan = [ForecastStep(str(n), str(n), (str((n + 1) % 5000),)) for n in range(5000)]
    assert max(map(len, stuck_steps(plan).values())) < 60
