"""`bench/pipeline` measures what it says: runs that end, past runs that teach, ratios within a round."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.pipeline.__main__ import ROWS, model, opened, ratios, table
from bench.pipeline.driving import VERDICTS, document
from bench.pipeline.filling import FILLING, Model, fill, lessons, past_run
from handrail.domain.pipeline.documents import findings_in, judgement_in, tasks_in
from handrail.domain.pipeline.lessons import FRICTION, PATTERNS
from handrail.domain.pipeline.start import finished_runs, lessons_from


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model(tmp_path_factory.mktemp("pipeline").resolve())


def test_a_ratio_is_taken_within_a_round() -> None:
    assert ratios([1.0, 10.0, 4.0], [2.0, 10.0, 12.0]) == 2.0


def test_every_size_but_the_smallest_has_its_ratio() -> None:
    rounds = [[dict.fromkeys(ROWS, us) for us in (100.0, 110.0, 250.0)]]
    lines = list(table((1, 100, 10_000), rounds))
    assert lines[0] == "| CPU of one call | 1 past, µs | 100 past, µs | x | 10,000 past, µs | x |"
    assert lines[2] == f"| {ROWS[0]} | 100 | 110 | 1.10 | 250 | 2.50 |"
    assert len(lines) == 2 + len(ROWS)


def test_what_the_agents_write_can_be_read() -> None:
    assert [task.number for task in tasks_in(document("tasks.md"))] == [1, 2, 3]
    assert judgement_in(document("review-design.md"), VERDICTS.values(), ()).verdict == "APPROVE_WITH_NOTES"
    assert judgement_in(document("review-2.md"), ["PASS"], ["FAIL"]).verdict == "PASS"
    assert [finding.severity for finding in findings_in(document("review-2.md"))] == ["MAJOR", "MINOR"]


def test_a_past_run_has_a_name_and_words_of_its_own(driven: Model) -> None:
    chance = random.Random(1)
    taught = lessons(chance)
    one, other = (past_run(driven, f"wf_{number}", number, chance, taught).run for number in (1, 2))
    assert one.run_state().ended == "completed"
    assert one.workspace != other.workspace
    assert one.request != other.request
    assert one.findings != other.findings
    assert one.updated_at < other.updated_at < driven.run.created_at


def test_a_filled_store_teaches_as_much_as_is_ever_kept(driven: Model, tmp_path: Path) -> None:
    with opened(tmp_path, tmp_path / "past.db") as (_, store):
        fill(store, driven.at("elsewhere"), 30)
        taught = store.run(FILLING, lambda unit: lessons_from(finished_runs(unit, "elsewhere"), driven.run.request))
    assert len(taught.similar) == 3
    assert (len(taught.patterns), len(taught.friction)) == (PATTERNS, FRICTION)
