"""What README.md and docs/faq.md say that a profile costs, held against what it does cost, counted with a vocabulary.

`bench/tokens` measures it on the wire; here it is counted in this process, so that a claim cannot outlive its number.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import click.testing
import msgspec
import pytest
from rs_bpe.bpe import openai

from handrail.selection import select
from handrail.surfaces.cli.main import cli
from handrail.wiring import instructions
from tests.docs.pages import ROOT

ABOUT = 0.02
"""How far off `about` may be."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project's own settings change what is counted."""
    monkeypatch.chdir(tmp_path)


def o200k(text: str) -> int:
    return len(openai.o200k_base().encode(text))


def typed(*words: str) -> str:
    done = click.testing.CliRunner().invoke(cli, ["tools", *words])
    assert done.exit_code == 0, done.output
    return done.output


def listing_cost(profile: str) -> int:
    """What a client pays that loads every schema: what `tools/list` answers, without the annotations, which no model
    reads."""
    listed = json.loads(typed("--profile", profile, "--json"))["tools"]
    read = [{name: tool[name] for name in tool if name != "annotations"} for tool in listed]
    return o200k(msgspec.json.encode(read).decode())


def told_cost(profile: str) -> int:
    return o200k(instructions(select(profile=profile, toolsets=(), enable=(), dynamic=False)))


def said(page: str, pattern: str) -> int:
    """The one number that a page says there."""
    (found,) = re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"))
    return int(found.replace(",", ""))


@pytest.mark.parametrize(
    ("page", "pattern"),
    [
        ("README.md", r"The default profile costs a client under ([\d,]+) tokens"),
        ("docs/faq.md", r"The default profile under ([\d,]+) with its instructions"),
    ],
)
def test_the_default_profile_costs_less_than_it_is_said_to(page: str, pattern: str) -> None:
    claimed = said(page, pattern)
    assert claimed * 0.9 < listing_cost("solo") + told_cost("solo") < claimed


@pytest.mark.parametrize("profile", ["team", "all"])
def test_the_others_cost_about_what_they_are_said_to(profile: str) -> None:
    claimed = said("docs/faq.md", rf"`{profile}` about ([\d,]+)")
    assert abs(listing_cost(profile) - claimed) <= claimed * ABOUT


@pytest.mark.parametrize("profile", ["solo", "team", "all"])
def test_what_the_command_estimates_is_within_a_tenth_as_the_page_says(profile: str) -> None:
    (estimated,) = re.findall(r"about ([\d,]+) tokens", typed("--profile", profile))
    exact = listing_cost(profile)
    assert abs(int(estimated.replace(",", "")) - exact) <= exact / 10
