"""The token estimate against a real vocabulary, on texts of this project and on bundles it makes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe.bpe import openai

from handrail.kernel.tokens import estimate_tokens, length_within, token_weight
from tests.domain.recovery.samples.shelf import SAMPLES

ROOT = Path(__file__).parent.parent.parent
FILES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src" / "handrail" / "guides").glob("*.yaml")),
    *sorted((ROOT / "tests" / "golden" / "guide_md").glob("*.jsonl")),
    *sorted((ROOT / "tests" / "golden" / "tools").glob("*.json")),
    *sorted((ROOT / "src" / "handrail" / "toolsets").glob("*.py")),
]
OTHER_SCRIPTS = {
    "Chinese": "导入任务在连接断开后必须能够恢复。我们使用指数退避重试,并记录每一次失败的原因。",
    "Japanese": "接続が切れたときにインポートを再試行する。テストではサーバーが途中で切断することを確認する。",
    "Korean": "연결이 끊어지면 가져오기를 다시 시도합니다. 테스트는 서버가 연결을 끊는 상황을 확인합니다.",
    "German": "Der Import wird nach einem Verbindungsabbruch wiederholt; größere Änderungen müssen überprüft werden.",
    "Russian": "Повторять запрос с задержкой, пока соединение не восстановится, и не отправлять заказ дважды.",
    "emojis": "🚀 shipped ✅ tests green 🎉 fix 🐛 in parser 👩‍💻 👍🏽 🇩🇪",
}


@cache
def texts() -> dict[str, str]:
    found = {path.name: path.read_text(encoding="utf-8") for path in FILES}
    for name, sample in SAMPLES.items():
        for max_tokens in (256, 1500, 8000):
            bundle = sample().load(max_tokens=max_tokens)
            found[f"{name} in {max_tokens}"] = msgspec.json.encode(bundle).decode()
    return found


def count(text: str) -> int:
    return len(openai.o200k_base().encode(text))


def test_the_estimate_is_within_a_tenth_of_the_count_for_every_text() -> None:
    wrong = {
        name: (estimate_tokens(text), count(text))
        for name, text in texts().items()
        if abs(estimate_tokens(text) - count(text)) > max(10, 0.1 * count(text))
    }
    assert wrong == {}


def test_the_mean_error_is_within_a_fortieth() -> None:
    errors = [abs(estimate_tokens(text) - count(text)) / count(text) for text in texts().values()]
    assert sum(errors) / len(errors) <= 0.025


@pytest.mark.parametrize("language", OTHER_SCRIPTS)
def test_other_scripts_are_within_a_third(language: str) -> None:
    text = OTHER_SCRIPTS[language]
    assert abs(estimate_tokens(text) - count(text)) <= count(text) / 3


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == 0


@pytest.mark.parametrize("character", ["a", "A", "é", "=", " ", "\n", "7", "語", "🚀"])
def test_what_goes_on_and_on_costs_more_and_more(character: str) -> None:
    assert estimate_tokens(character * 100_000) > 500


@given(st.text(), st.text())
def test_two_texts_together_cost_hardly_more_than_apart(first: str, second: str) -> None:
    assert token_weight(first + second) <= token_weight(first) + token_weight(second) + 200


@given(st.text(max_size=300), st.integers(0, 40))
def test_the_first_characters_cost_no_more_than_asked(text: str, tokens: int) -> None:
    end = length_within(text, tokens)
    assert token_weight(text[:end]) <= tokens * 100 + 100
    assert end == len(text) or token_weight(text) > tokens * 100
