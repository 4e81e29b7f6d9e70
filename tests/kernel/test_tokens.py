"""The token estimate against a real vocabulary, on texts of this project."""

from __future__ import annotations

from pathlib import Path

import pytest
from rs_bpe.bpe import openai

from handrail.kernel.tokens import estimate_tokens

ROOT = Path(__file__).parent.parent.parent
TEXTS = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src" / "handrail" / "guides").glob("*.yaml")),
    *sorted((ROOT / "tests" / "golden" / "guide_md").glob("*.jsonl")),
    *sorted((ROOT / "src" / "handrail" / "toolsets").glob("*.py")),
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_the_estimate_comes_near_the_count(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    count = len(openai.o200k_base().encode(text))
    assert abs(estimate_tokens(text) - count) <= max(10, 0.12 * count)


def test_the_mean_error_is_within_a_twentieth() -> None:
    errors = []
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        count = len(openai.o200k_base().encode(text))
        errors.append(abs(estimate_tokens(text) - count) / max(count, 1))
    assert sum(errors) / len(errors) <= 0.05


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == 0
